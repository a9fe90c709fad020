"""Rules from public lists of clinical edits: which codes hardly ever stand beside a sex or an age.

`clinical_edits.csv` has ranges of codes, each with the sex or the ages that public lists give it,
our own words for what it means, and the source. Nearly all are *possible* errors there, not errors:
the sex of a record is the one in the register, and a record can be about somebody else, as a
mother's with the code of her child. So a rule is proposed, with its reason, and a person who knows
the documents decides. Nothing here reads a row.

Sources: ICD-10-GM 2023 metadata (Federal Institute for Drugs and Medical Devices; ranges and our
words only, the source named); Medicare Code Editor and ICD-9-CM titles (United States government
works); OHDSI DataQualityDashboard 2.8.4 (Apache License 2.0). Where lists differ in ages, the
widest range is proposed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dpsynth.draft.clinical import find
from dpsynth.draft.names import compact, words
from dpsynth.schema import (
    ChildTable,
    Column,
    LinkedSchema,
    Schema,
    level_in_rule,
    quoted,
)
from dpsynth.schema.code_systems import code_list

WOMAN, MAN = "F", "M"
SEXES = {
    WOMAN: frozenset(
        "f w v k female woman women weiblich frau femme feminin mujer femenino vrouw vrouwelijk "
        "donna femmina femminile kobieta zenska mulher feminino kvinna kvinnlig".split()
    ),
    MAN: frozenset(
        "m male man men mannlich maennlich mann h homme masculin hombre masculino varon mannelijk "
        "uomo maschio maschile mezczyzna meska homem masculina manlig".split()
    ),
}
_ICD10 = re.compile(r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?-?")
_ICD9 = re.compile(r"([0-9]{3}|V[0-9]{2}|E[0-9]{3})(\.[0-9]{1,2})?")
_BLOCK = re.compile(r"([A-Z][0-9][0-9A-Z])-([A-Z][0-9][0-9A-Z])")
_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WORDS = "words"  # a system of the table whose codes are the beginnings of words
_RELATIVES = frozenset(
    "family fam familial mother father relative relatives parent parents familie mutter vater "
    "moeder vader famille mere pere familia madre padre famiglia rodzina mae pai familj mor far "
    "anamnese anamnesis history".split()
)
_LONGEST = 2000  # characters of a rule


@dataclass(frozen=True)
class ProposedRule:
    """A rule that public lists suggest.

    Attributes:
        text: in the language of rules.
        reason: what the lists say, in a few words.
    """

    text: str
    reason: str


@dataclass(frozen=True)
class _Edit:
    """One range of codes, and whom they are about."""

    system: str
    first: str
    last: str
    sex: str
    ages: tuple[int | None, int | None]
    meaning: str

    def covers(self, code: str) -> bool:
        """Tell whether a code, and all below it, is in the range."""
        return self.first <= code[: len(self.first)] and code[: len(self.last)] <= self.last


@dataclass(frozen=True)
class _Limits:
    """Whom a category is about: a sex, and ages in completed years; "" and None for anybody."""

    sex: str
    low: int | None
    high: int | None


def clinical_rules(schema: Schema | LinkedSchema) -> tuple[ProposedRule, ...]:
    """Propose rules for columns of codes beside a column of sex or age.

    Args:
        schema: of which the categories are declared; columns without them are passed over.

    Returns:
        Rules that the schema does not state yet. In one table they name its own columns; in linked
        ones, codes of rows and events beside the sex of patients.

    Example:
        >>> schema = Schema.load("diabetes130")
        >>> [rule.text for rule in clinical_rules(schema)][1:2]
        ["diag_1 == 'pregnancy' implies gender == 'Female'"]
    """
    if isinstance(schema, LinkedSchema):
        found = list(_of_linked(schema))
        stated = {rule.text for rule in schema.rules}
    else:
        found = list(_of_table(schema))
        stated = {rule.text for rule in schema.rules}
    return tuple(rule for rule in found if rule.text not in stated)


def _of_table(schema: Schema) -> Iterator[ProposedRule]:
    sex, age = _column(schema.modelled, "sex"), _column(schema.modelled, "age")

    def beside(limits: _Limits) -> tuple[str, ...]:
        return (*_sex(sex, limits, ""), *_ages(age, limits))

    for column in schema.modelled:
        several = column.codes is not None and column.codes.several is not None
        for levels, parts, reason in _groups(column, beside) if not several else ():
            yield from _rules(_listed(quoted(column.name), column, levels), parts, reason)


def _of_linked(schema: LinkedSchema) -> Iterator[ProposedRule]:
    patients = schema.patients
    sex = _column(patients.modelled, "sex")
    prefix = f"{quoted(patients.name)}."

    def beside(limits: _Limits) -> tuple[str, ...]:
        return tuple(_sex(sex, limits, prefix))

    for column in patients.modelled:
        for levels, parts, reason in _groups(column, beside):
            condition = _listed(f"{prefix}{quoted(column.name)}", column, levels)
            yield from _rules(condition, parts, reason)
    for child in schema.children:
        for column in child.schema.modelled:
            for levels, parts, reason in _groups(column, beside):
                yield from _rules(_in_rows(child, column, levels), parts, reason)


def _in_rows(child: ChildTable, column: Column, levels: Sequence[str]) -> str:
    table = quoted(child.name)
    if column.name == child.once:
        return " or ".join(f"count({table}, {quoted(level)}) > 0" for level in levels)
    return _listed(f"each({table}).{quoted(column.name)}", column, levels)


def _rules(condition: str, beside: Sequence[str], reason: str) -> Iterator[ProposedRule]:
    if " or " in condition:
        condition = f"({condition})"
    text = f"{condition} implies {' and '.join(beside)}"
    if len(text) <= _LONGEST:
        yield ProposedRule(text, reason)


def _groups(
    column: Column, beside: Callable[[_Limits], tuple[str, ...]]
) -> Iterator[tuple[list[str], tuple[str, ...], str]]:
    """Yield categories that are about the same persons, the conditions, and what they mean.

    Args:
        column: of codes, of words, or of yes and no.
        beside: what must hold of other columns.
    """
    found: dict[tuple[str, ...], dict[str, str]] = {}
    truth = column.kind.is_truth
    levels = ("true",) if truth else column.levels if column.is_categorical else ()
    systems = () if truth else _systems(column, levels)
    for level in levels:
        if systems:
            edits = [_edits_of(code, systems) for code in _codes_of(column, level)]
        else:
            named = column.title or column.name if truth else column.labels.get(level, level)
            edits = [_edits_in(named)] if column.codes is None else []
        if edits and all(edits) and (parts := beside(_limits(edits))):
            found.setdefault(parts, {})[level] = edits[0][0].meaning
    for parts, meanings in found.items():
        said = list(dict.fromkeys(meanings.values()))
        rest = f" and {len(said) - 3} more" if len(said) > 3 else ""
        yield list(meanings), parts, f"{'; '.join(said[:3])}{rest}"


def _limits(edits: Sequence[Sequence[_Edit]]) -> _Limits:
    """Join what is said of all codes of a category: nothing, unless it is said of each."""
    sexes = {frozenset(one.sex for one in own if one.sex) for own in edits}
    sex = next(iter(next(iter(sexes)))) if len(sexes) == 1 and all(map(len, sexes)) else ""
    if len(sexes) == 1 and len(next(iter(sexes))) > 1:
        sex = ""
    lows = [one.ages[0] for own in edits for one in own]
    highs = [one.ages[1] for own in edits for one in own]
    low = None if None in lows else min(one for one in lows if one is not None)
    high = None if None in highs else max(one for one in highs if one is not None)
    return _Limits(sex, low or None, high)


def _edits_of(code: str, systems: Sequence[str]) -> list[_Edit]:
    return [one for one in _edits() if one.system in systems and one.covers(code)]


def _edits_in(text: str) -> list[_Edit]:
    """Return what the words of a category or of a yes/no column say, unless it is of a relative."""
    parts = words(text)
    if _RELATIVES & {*parts}:
        return []
    edits = (one for one in _edits() if one.system == WORDS)
    return [one for one in edits if any(part.startswith(one.first) for part in parts)]


def _systems(column: Column, levels: Sequence[str]) -> tuple[str, ...]:
    """Return the systems of the list that a column's codes are of."""
    named = "" if column.codes is None else column.codes.system
    if named.startswith(("ICD-10", "CIM-10", "CIE-10")):
        return ("ICD-10 (WHO, GM)", "ICD-10-CM")
    if named.startswith("ICD-9"):
        return ("ICD-9-CM",)
    if compact(column.name).endswith("conceptid"):
        return ("OMOP concept (with descendants)", "OMOP concept")
    coded = [level for level in levels if _ICD10.fullmatch(level.upper())]
    return ("ICD-10 (WHO, GM)", "ICD-10-CM") if len(coded) * 2 > len(levels) else ()


def _codes_of(column: Column, level: str) -> tuple[str, ...]:
    """Return the codes that a category stands for; none where it is not a code."""
    system = "" if column.codes is None else column.codes.system
    text = level.strip().upper()
    if compact(column.name).endswith("conceptid"):
        return (text,) if text.isdigit() else ()
    if (block := _BLOCK.fullmatch(text)) is not None:
        return _stems(block[1], block[2])
    if (_ICD9 if system.startswith("ICD-9") else _ICD10).fullmatch(text):
        return (text.rstrip("-").replace(".", ""),)
    return _chapter(system, level)


@cache
def _chapter(system: str, name: str) -> tuple[str, ...]:
    """Return the stems of the codes of a named chapter, as far as its blocks are known."""
    if system == "ICD-9-CM":
        lists = [code_list(system, "chapter")]
        stems = [f"{number:03}" for number in range(1, 1000)]
        stems += [f"V{number:02}" for number in range(1, 92)]
        stems += [f"E{number:03}" for number in range(1000)]
        own = [one for one in stems if lists[0].roll_up(one) == name]
        return tuple(own)
    if system not in ("ICD-10-CM", "ICD-10-GM") or name not in code_list(system, "chapter").labels:
        return ()
    chapter, blocks = code_list(system, "chapter"), code_list(system, "block")
    found: list[str] = []
    for block in blocks.categories:
        first, _, last = block.partition("-")
        if chapter.roll_up(first) == name:
            found += _stems(first, last or first)
    return tuple(found)


def _stems(first: str, last: str) -> tuple[str, ...]:
    """Return all three-character codes from one to another; a letter stands after the digits."""
    letters = [chr(one) for one in range(ord(first[0]), ord(last[0]) + 1)]
    stems = [a + b + c for a in letters for b in _LETTERS[:10] for c in _LETTERS[:10]]
    also = [one for one in (first, last) if not one[1:].isdigit()]
    return tuple(sorted({one for one in stems if first <= one <= last} | {*also}))


@cache
def _edits() -> tuple[_Edit, ...]:
    file = resources.files("dpsynth.draft").joinpath("clinical_edits.csv")
    found = []
    for row in csv.DictReader(file.read_text("utf-8").splitlines()):
        low, high = (int(row[key]) if row[key] else None for key in ("age_min", "age_max"))
        for part in row["codes"].replace(".", "").split():
            first, _, last = part.partition("-")
            found.append(
                _Edit(
                    row["code_system"],
                    first,
                    last or first,
                    row["sex"],
                    (low, high),
                    row["meaning"],
                )
            )
    return tuple(found)


def _column(columns: Iterable[Column], meaning: str) -> Column | None:
    """Return the only column of a meaning, by its name or else its title."""
    found = []
    for column in columns:
        matches = [find(text) for text in (column.name, column.title) if text]
        if any(one and one.is_sure and one.variable.name == meaning for one in matches):
            found.append(column)
    return found[0] if len(found) == 1 else None


def _sex(column: Column | None, limits: _Limits, prefix: str) -> list[str]:
    if column is None or not limits.sex or not column.is_categorical:
        return []
    levels = levels_of_sex(column, limits.sex)
    name = f"{prefix}{quoted(column.name)}"
    return [f"{name} == {level_in_rule(column, levels[0])}"] if len(levels) == 1 else []


def levels_of_sex(column: Column, sex: str) -> list[str]:
    """Return the categories of a column of sex that mean women (F) or men (M)."""
    named = [(level, column.labels.get(level, level)) for level in column.levels]
    return [one for one, label in named if compact(label, umlauts=False) in SEXES[sex]]


def _ages(column: Column | None, limits: _Limits) -> list[str]:
    if column is None or not column.kind.is_number or column.ucum != "a":
        return []
    name = quoted(column.name)
    low = [] if limits.low is None else [f"{name} >= {limits.low}"]
    return low + ([] if limits.high is None else [f"{name} <= {limits.high}"])


def _listed(name: str, column: Column, levels: Sequence[str]) -> str:
    values = [level_in_rule(column, level) for level in levels]
    return f"{name} == {values[0]}" if len(values) == 1 else f"{name} in ({', '.join(values)})"
