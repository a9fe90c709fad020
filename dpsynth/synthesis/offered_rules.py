"""Rules that are offered after a fit, and a file in which people confirm them.

Three sources, in this order:

- **Public lists** of clinical edits (`dpsynth.draft.clinical_edits`), with the share of drawn rows
  that break each.
- **The generator**: pairs of categories that it hardly ever draws together although independent
  columns would give many, and orders of two columns that nearly all drawn rows keep. What it draws
  follows from what was released, so offers and their figures are post-processing (Dwork and Roth
  2014, proposition 2.1): they cost nothing.
- **The data**, by an internal evaluation: pairs that no real row has. Such an offer is marked; see
  `dpsynth.certificate.added_rules`.

Nothing is applied by itself. A person writes a name beside each rule that holds, and `sample` keeps
drawn rows to the confirmed ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.field_reader import TODO, FieldFindings, FieldReader, is_todo
from dpsynth._util.formatting import percent
from dpsynth._util.messages import shown
from dpsynth._util.strict_yaml import yaml_text
from dpsynth._util.written_files import read_plain, refusal
from dpsynth.certificate import AddedRule
from dpsynth.certificate.added_rules import MAX_RULES, SOURCES
from dpsynth.draft import clinical_rules
from dpsynth.errors import InputError
from dpsynth.schema import (
    Column,
    LinkedSchema,
    PatientRows,
    Rule,
    Schema,
    TemporalRule,
    level_in_rule,
    quoted,
)
from dpsynth.synthesis.run import Run
from dpsynth.synthesis.sampler import Sampler

DRAWN = 50_000  # rows that offers are read off; of linked tables
PATIENTS = 8_000
RARE = 20.0  # a pair of categories is offered if it is drawn at most so many times too seldom
LEAST = 0.002  # share of rows that independent columns would give it at least
ORDERED = 0.995  # share of drawn rows that keep an order that is offered,
SHUFFLED = 0.9  # and that of shuffled ones at most
MOST = 20  # offers of a kind
VERSION = 1
KEYS = ("rule", "source", "basis", "broken", "confirmed_by")

_HEAD = """\
# Rules for {run}. Nothing here applies until somebody signs for it: in the place of TODO behind
# confirmed_by, write your name for each rule that always holds by your documents or by what you
# know. Leave the others, or delete them. Add your own with source: declared and a basis.
# `broken` is the share of drawn {noun}s that break the rule now.
"""


@dataclass(frozen=True)
class OfferedRule:
    """A rule that may hold.

    Attributes:
        rule: in the language of the schema's rules.
        source: a key of `dpsynth.certificate.SOURCES`.
        basis: why it is offered.
        broken: share of drawn rows, or patients, that break it.
    """

    rule: str
    source: str
    basis: str
    broken: float

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        return vars(self).copy()


def offered_rules(
    run: Run[Any], *, evaluation: Mapping[str, Any] | None = None
) -> tuple[OfferedRule, ...]:
    """Offer rules for what is drawn from a run; see the module.

    Args:
        run: what a fit learned.
        evaluation: the document of an internal evaluation of a table of the run, for offers that
            are read off the data; None for none of them.

    >>> import dpsynth
    >>> from dpsynth.tables import simulate
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
    >>> run = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
    >>> isinstance(offered_rules(run), tuple)
    True
    """
    schema = run.schema
    size = DRAWN if isinstance(schema, Schema) else PATIENTS
    [drawn] = list(Sampler.of(run).frames(size, seed=0))
    found = []
    for proposed in clinical_rules(schema):
        broken = _broken(proposed.text, drawn, schema)
        found.append(OfferedRule(proposed.text, "public list", proposed.reason, broken))
    stated = {rule.text for rule in schema.rules} | {one.rule for one in found}
    if isinstance(schema, Schema):
        offers = [*_pairs(schema, drawn), *_orders(schema, drawn)]
        if evaluation is not None:
            offers += _of_data(schema, drawn, evaluation)
    else:
        offers = list(_events(schema, drawn))
    for offer in offers:
        if offer.rule not in stated:
            found.append(offer)
            stated.add(offer.rule)
    return tuple(found)


def _broken(text: str, drawn: Any, schema: Schema | LinkedSchema) -> float:
    """Return the share of drawn rows, or patients, that break a rule."""
    if isinstance(schema, Schema):
        return float(1 - np.mean(Rule.parse(text).holds(drawn)))
    return float(1 - np.mean(TemporalRule.parse(text).holds_in(PatientRows(drawn, schema))))


def _pairs(schema: Schema, drawn: pd.DataFrame) -> Iterator[OfferedRule]:
    """Offer pairs of categories that are hardly ever drawn together."""
    columns = [one for one in schema.modelled if one.is_categorical and one.several is None]
    found = []
    for first, second in combinations(columns, 2):
        counts = _counts(first, second, drawn)
        found += list(_never(first, second, counts, len(drawn)))
    found.sort(key=lambda one: -one[0])
    for expected, text, broken in found[:MOST]:
        basis = (
            f"drawn in {percent(broken)} of the rows, where independent columns would give "
            f"{percent(expected)}"
        )
        yield OfferedRule(text, "model", basis, broken)


def _counts(first: Column, second: Column, drawn: pd.DataFrame) -> npt.NDArray[np.int64]:
    places = [
        pd.Categorical(_texts(drawn[one.name], one), categories=one.levels).codes
        for one in (first, second)
    ]
    known = (places[0] >= 0) & (places[1] >= 0)
    shape = len(first.levels), len(second.levels)
    flat = places[0][known].astype(np.int64) * shape[1] + places[1][known]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape)


def _texts(cells: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Write cells as the column's levels are written."""
    texts = cells.astype(str)
    return texts.str.lower() if column.kind.is_truth else texts


def _never(
    first: Column, second: Column, counts: npt.NDArray[np.int64], rows: int
) -> Iterator[tuple[float, str, float]]:
    total = max(int(counts.sum()), 1)
    expected = counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None, :] / total
    rare = (counts > 0) & (expected >= LEAST * rows) & (counts * RARE <= expected)
    for a, b in np.argwhere(rare).tolist():
        one, other = _is(first, first.levels[a]), _is(second, second.levels[b])
        text = f"not ({one} and {other})"
        yield float(expected[a, b]) / rows, text, float(counts[a, b]) / rows


def _orders(schema: Schema, drawn: pd.DataFrame) -> Iterator[OfferedRule]:
    """Offer orders of two numbers in one unit, or of two dates, that nearly all rows keep."""
    columns = [one for one in schema.modelled if not one.is_categorical and not one.is_computed]
    rng = np.random.default_rng(0)
    found = []
    for first, second in combinations(columns, 2):
        dates = first.kind.is_time and first.type == second.type
        if not dates and (first.ucum is None or first.ucum != second.ucum):
            continue
        both = drawn[[first.name, second.name]].dropna()
        if len(both) < LEAST * len(drawn):
            continue
        low, high = (both[one.name].to_numpy() for one in (first, second))
        for one, other, names in ((low, high, (first, second)), (high, low, (second, first))):
            kept = float(np.mean(one <= other))
            shuffled = float(np.mean(one <= rng.permutation(other)))
            if ORDERED <= kept < 1 and shuffled <= SHUFFLED:
                text = f"{quoted(names[0].name)} <= {quoted(names[1].name)}"
                basis = (
                    f"{percent(kept)} of the drawn rows keep it, {percent(shuffled)} of rows "
                    "whose values are shuffled"
                )
                found.append(OfferedRule(text, "model", basis, 1 - kept))
    yield from found[:MOST]


def _events(schema: LinkedSchema, drawn: Mapping[str, pd.DataFrame]) -> Iterator[OfferedRule]:
    """Offer events that hardly ever come to patients of one category."""
    patients = drawn[schema.patients.name]
    found = []
    for child in schema.children:
        if child.once is None:
            continue
        frame = drawn[child.name]
        for event in child.schema.column(child.once).levels:
            keys = frame.loc[frame[child.once].astype(str) == event, child.key]
            has = patients[schema.key].isin(keys).to_numpy()
            for column in schema.patients.modelled:
                if not column.is_categorical:
                    continue
                cells = patients[column.name].astype(str).to_numpy()
                for level in column.levels:
                    of_level = cells == level
                    expected = float(has.mean() * of_level.mean())
                    share = float((has & of_level).mean())
                    if share and expected >= LEAST and share * RARE <= expected:
                        one = _is(column, level, f"{quoted(schema.patients.name)}.")
                        text = f"count({quoted(child.name)}, {quoted(event)}) == 0 or not ({one})"
                        found.append((expected, text, share))
    for expected, text, share in sorted(found, reverse=True)[:MOST]:
        basis = (
            f"{percent(share)} of the drawn patients, where independent facts would give "
            f"{percent(expected)}"
        )
        yield OfferedRule(text, "model", basis, share)


def _of_data(
    schema: Schema, drawn: pd.DataFrame, evaluation: Mapping[str, Any]
) -> Iterator[OfferedRule]:
    """Offer pairs of categories that an evaluation found in no real row."""
    fidelity = (evaluation.get("parts") or {}).get("fidelity") or {}
    for entry in fidelity.get("unseen") or []:
        columns = [_modelled(schema, str(name)) for name in entry["columns"]]
        bins = [str(label) for label in entry["bins"]]
        parts = [
            _is(column, label)
            for column, label in zip(columns, bins, strict=True)
            if column is not None and column.is_categorical and label in column.levels
        ]
        if len(parts) == len(bins):
            text = f"not ({' and '.join(parts)})"
            yield OfferedRule(text, "data", "no real row has it", _broken(text, drawn, schema))


def _modelled(schema: Schema, name: str) -> Column | None:
    return next((one for one in schema.modelled if one.name == name), None)


def _is(column: Column, level: str, prefix: str = "") -> str:
    return f"{prefix}{quoted(column.name)} == {level_in_rule(column, level)}"


def rules_text(offered: Iterable[OfferedRule], run: str, noun: str) -> str:
    """Write offers as a file in which people confirm them.

    Args:
        offered: the rules.
        run: its folder.
        noun: what is drawn: ``row`` or ``patient``.
    """
    rules = [
        {
            "rule": one.rule,
            "source": one.source,
            "basis": one.basis,
            "broken": percent(one.broken),
            "confirmed_by": TODO,
        }
        for one in offered
    ]
    head = _HEAD.format(run=run, noun=noun)
    if any(one.source == "data" for one in offered):
        head += (
            "# A rule with source data was read off real rows: whether no row breaks it can\n"
            "# depend on one patient, so the guarantee does not cover it. Better, find a document\n"
            "# that says so, and write source: declared with it.\n"
        )
    return head + yaml_text({"version": VERSION, "rules": rules})


def read_rules(path: str | Path) -> tuple[AddedRule, ...]:
    """Read the rules that people have confirmed; those without a name are passed over.

    Args:
        path: a file as `rules_text` writes it, in YAML or JSON.

    Raises:
        InputError: it cannot be read, or has mistakes; all of them are listed.
    """
    document = read_plain(path, "rules", subject="rules are", title=f"{path} has")
    findings = FieldFindings()
    top = FieldReader(document, "", findings)
    top.refuse_unknown(("version", "rules"))
    if top.values.get("version") != VERSION:
        top.mistake("version", f"is missing, or another; write version: {VERSION}")
    entries = top.values.get("rules") or []
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        top.mistake("rules", f"a list is expected, not {shown(entries)}")
        entries = []
    found = []
    for number, entry in enumerate(entries):
        own = FieldReader(entry, f"rules[{number}]", FieldFindings())
        if not isinstance(entry, Mapping) or is_todo(own.values.get("confirmed_by")):
            if not isinstance(entry, Mapping):
                top.mistake(
                    f"rules[{number}]", "a rule with its source, basis and name is expected"
                )
            continue
        part = FieldReader(entry, f"rules[{number}]", findings)
        part.refuse_unknown(KEYS)
        values = {key: part.text(key) for key in ("rule", "source", "basis", "confirmed_by")}
        for key in values:
            if not part.has(key):
                part.gap(key, "is missing")
        if values["source"] is not None and values["source"] not in SOURCES:
            part.mistake("source", f"is one of {', '.join(SOURCES)}")
        elif None not in values.values():
            try:
                found.append(AddedRule(**{key: str(value) for key, value in values.items()}))
            except InputError as error:
                part.mistake(None, str(error))
    if len(found) > MAX_RULES:
        top.mistake("rules", f"{len(found)} are confirmed; at most {MAX_RULES} can be added")
    if findings.everything:
        raise refusal(f"{path} has", findings.everything)
    return tuple(found)
