"""Stems of words in nine languages: what a column's name says by its parts.

`word_stems.csv` has a row for each meaning: of parts of names, of types in dictionaries, of
headings of dictionaries, and of columns with a place of their own in linked tables. A name is
divided at separators and capitals, and a compound word into the stems that it is made of
(Geburts-datum, opname-datum). A few rules then say what the parts mean together. A part that means
nothing here makes the answer unsure, and an unsure answer is a question to a person. A name without
any known part is not called harmless.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from dpsynth.draft.names import compact, spellings, words

Kinds = frozenset[str]
LINKS = ("", "s", "n", "en", "es", "e")  # letters between the parts of a compound word
_CAPITAL = re.compile(r"(?<=[a-zà-ÿß])(?=[A-ZÀ-Þ])")
_DIGITS = re.compile(r"[0-9]+$")
_SHORT = frozenset(("id", "nr", "no", "dt"))  # the parts of two letters that may end a word
_ENDING = 4  # letters that a stem with a * may be followed by, and the least length of an end
_BEGINNING = 7  # the least length of the part that an unknown word begins with
_MAX_PARTS = 7  # words of a label; a longer one is a sentence


@cache
def stems_of(use: str) -> Mapping[str, tuple[str, ...]]:
    """Return the stems of each meaning, as they stand in the table.

    Args:
        use: ``name``, ``type``, ``heading`` or ``table``.

    >>> "entier" in stems_of("type")["integer"]
    True
    """
    found: dict[str, tuple[str, ...]] = {}
    for language in stems_by_language(use):
        for meaning, texts in language.items():
            found[meaning] = (*found.get(meaning, ()), *texts)
    return found


@cache
def stems_by_language(use: str) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    """Return the same for each language."""
    file = resources.files("dpsynth.draft").joinpath("word_stems.csv")
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    languages = [key for key in rows[0] if key not in ("use", "meaning")]
    return tuple(
        {row["meaning"]: tuple(row[language].split()) for row in rows if row["use"] == use}
        for language in languages
    )


@cache
def meanings(use: str) -> Mapping[str, Kinds]:
    """Return the meanings of each stem of the table, by its compact spellings."""
    found: dict[str, set[str]] = {}
    for meaning, texts in stems_of(use).items():
        for text in texts:
            for spelling in spellings(text):
                found.setdefault(spelling + "*" * text.endswith("*"), set()).add(meaning)
    return {spelling: frozenset(kinds) for spelling, kinds in found.items()}


@dataclass(frozen=True)
class Meaning:
    """What a name says.

    Attributes:
        variable: a name of `clinical_ranges.csv`.
        is_sure: whether each part of the name agrees; otherwise a person is asked.
    """

    variable: str
    is_sure: bool = True


@dataclass(frozen=True)
class Parts:
    """The parts of a name: what each can mean, in order; nothing for a part that is not known."""

    kinds: tuple[Kinds, ...]

    @property
    def all(self) -> Kinds:
        """All meanings of all parts."""
        return frozenset[str]().union(*self.kinds)

    def has(self, *wanted: str) -> bool:
        """Tell whether a part can mean one of these."""
        return not self.all.isdisjoint(wanted)

    def strays(self, allowed: Collection[str]) -> int:
        """Count the parts that mean none of these."""
        return sum(kinds.isdisjoint(allowed) for kinds in self.kinds)


@cache
def parts_of(name: str) -> Parts:
    """Divide a name into known parts, in the spelling that leaves the least unknown.

    >>> [sorted(kinds)[0] for kinds in parts_of("fecha de nacimiento").kinds]
    ['date', 'small', 'birth']
    >>> [sorted(kinds)[0] for kinds in parts_of("opnamenummer").kinds], parts_of("v17").all
    (['admission', 'number'], frozenset())
    """
    found = []
    for umlauts in (True, False):
        for text in (_CAPITAL.sub(" ", name), name):
            found.append(_parts(tuple(words(text, umlauts=umlauts))))
    return min(found, key=lambda one: (one.strays(one.all), len(one.kinds)))


def _parts(split: tuple[str, ...]) -> Parts:
    known, kinds, at = meanings("name"), list[Kinds](), 0
    while at < len(split):
        for size in range(min(4, len(split) - at), 1, -1):  # a phrase, or a word in pieces
            joined = "".join(split[at : at + size])
            if len(joined) > _ENDING and joined in known:
                kinds.append(known[joined])
                at += size
                break
        else:
            if not split[at].isdigit():
                kinds += (
                    _compound(split[at])
                    or _compound(_DIGITS.sub("", split[at]))
                    or _ends(_DIGITS.sub("", split[at]))
                )
            at += 1
    if kinds and "date first" in kinds[0] and not (len(kinds) > 1 and "dataset" in kinds[1]):
        kinds[0] |= {"date"}  # data wypisu, but not data source or lab data
    return Parts(tuple(kinds))


@cache
def _compound(word: str) -> tuple[Kinds, ...]:
    """Divide a word into stems without a rest, the longest first; nothing if that fails."""
    if not word:
        return ()
    if whole := _stem(word):
        return (whole,)
    for end in range(len(word) - 2, 2, -1):
        first = _stem(word[:end])
        if not first:
            continue
        for link in LINKS:
            if not word.startswith(link, end):
                continue
            rest = word[end + len(link) :]
            if len(rest) > 2 or rest in _SHORT:
                if after := _compound(rest):
                    return (first, *after)
    return ()


def _ends(word: str) -> tuple[Kinds, ...]:
    """Return the stem that an unknown word ends with, or begins with, beside an unknown part."""
    for start in range(1, len(word) - _ENDING + 1):
        if last := _compound(word[start:]):
            return (frozenset(), *last)
    for end in range(len(word) - 1, _BEGINNING - 1, -1):
        if first := _compound(word[:end]):
            return (*first, frozenset())
    return (frozenset(),)


@cache
def _stem(word: str) -> Kinds:
    """Return the meanings of one stem, with the endings that it may have."""
    known = meanings("name")
    found = known.get(word, frozenset())
    for ending in range(min(_ENDING, len(word) - 3) + 1):
        found |= known.get(word[: len(word) - ending] + "*", frozenset())
    return found


_LINKING = {"small", "person", "relative", "home"}
_NUMBERED = {"number", "id", "code", "register", *_LINKING, "stay"}
_DATES = {"date", "datetime", "date first"}
_STAFF = {
    *("staff", "staff?", "treating", "by", "facility", "name", "own name", "number", "id", "code"),
    *("ward", "admission", "discharge", "operation", "procedure", "intensive", "stay"),
    *("main", "secondary", *_LINKING),
}
_PLACES = {
    *("address", "number", "code", "name", "place", "birth", "contact", "staff", "facility"),
    *_LINKING,
}
_REACHED = {"contact", "contact word", "number", "name", "address", "staff", *_LINKING}
_HARMLESS = {"count", "visit", *_DATES}
_STAY = {"admission", "discharge", "stay", "facility", "ward", "time", *_DATES, "small", "person"}
_MOMENTS = (
    (("intensive", "admission"), "ICU admission date"),
    (("intensive", "discharge"), "ICU discharge date"),
    (("discharge",), "discharge date"),
    (("admission",), "admission date"),
    (("operation",), "operation start"),
    (("death",), "date of death"),
    (("diagnosis",), "date of diagnosis"),
    (("visit",), "date of visit"),
)


def meaning_of(name: str) -> Meaning | None:
    """Return what the parts of a name mean together; None where they say nothing.

    >>> meaning_of("Geb.-Datum"), meaning_of("lekarz kierujący"), meaning_of("Geburtsgewicht")
    (Meaning(variable='date of birth', is_sure=True), Meaning(variable='staff', is_sure=True), None)
    >>> meaning_of("nombre del paciente"), meaning_of("nombre de lits"), meaning_of("nombre")
    (Meaning(variable='name', is_sure=True), None, Meaning(variable='name', is_sure=False))
    """
    parts = parts_of(name)
    if not parts.all or parts.has("never") or len(parts.kinds) > _MAX_PARTS:
        return None
    for rule in (_born, _numbered, _named, _located, _employed, _written, _dated, _described):
        if found := rule(parts):
            return found if found.is_sure or not parts.has("count") else None
    return None


def _sure(variable: str, parts: Parts, allowed: Collection[str]) -> Meaning:
    return Meaning(variable, not parts.strays(allowed))


def _born(parts: Parts) -> Meaning | None:
    day = {"birth", "birth date", "time", "day", *_DATES, *_LINKING}
    if parts.has("birth date") or (parts.has("birth") and parts.has("day", *_DATES)):
        return _sure("date of birth", parts, day)
    if not parts.has("birth") or parts.has("year", "month"):
        return None
    if parts.has("name", "own name"):
        return _sure("name", parts, {"birth", "name", "own name", *_LINKING})
    if parts.has("place", "address"):
        return _sure("address", parts, _PLACES)
    return None if parts.strays(day) else Meaning("date of birth", False)


def _numbered(parts: Parts) -> Meaning | None:
    if parts.has("identity"):
        return _sure("identity number", parts, {"identity", *_NUMBERED})
    if parts.has("key?") and not parts.strays({"key?", *_NUMBERED}):
        return Meaning("patient key")
    if parts.has("identity?") and not parts.strays({"identity?", *_NUMBERED}):
        return Meaning("identity number", False)
    if parts.has("stay key") and not parts.strays({"stay key", *_NUMBERED}):
        return Meaning("encounter key")
    if not parts.strays({"person", "small"}):
        return Meaning("patient key") if parts.has("person") else None
    if parts.has("contact", "staff", "address", "text", *_DATES):
        return None
    if parts.has("number", "id") or (parts.has("code") and parts.has("person")):
        for kind, variable in (
            ("person", "patient key"),
            ("stay", "encounter key"),
            ("visit", "encounter key"),
            ("specimen", "specimen number"),
            ("register", "identity number"),
            ("facility", "identity number"),
        ):
            if parts.has(kind) and kind == "facility":  # of patients or of the hospital itself
                return Meaning(variable, False)
            if parts.has(kind):
                allowed = {"visit", "specimen", *_NUMBERED}
                near = parts.strays(allowed) < 2 or parts.has("id")
                return _sure(variable, parts, allowed) if near else None
    if parts.has("id") and not parts.strays({"id", "number", "small"}):
        return Meaning("patient key", False)
    return None


def _named(parts: Parts) -> Meaning | None:
    if parts.has("contact", "address") or not parts.has("name", "own name"):
        return None
    if parts.has("staff", "treating"):
        return _sure("staff", parts, _STAFF)
    if parts.has("own name"):
        return _sure("name", parts, {"own name", "name", "number", *_LINKING})
    owner = parts.has("person", "relative")
    if parts.strays({"name", "number", *_LINKING}):
        return Meaning("name", False) if owner else None
    return Meaning("name", owner)


def _located(parts: Parts) -> Meaning | None:
    if parts.has("visit", "text") and not parts.has("contact"):
        return None
    reach = parts.has("person", "relative", "name", "number")
    if parts.has("contact") or (parts.has("contact word") and reach):
        found = _sure("contact", parts, _REACHED)
        return found if found.is_sure or parts.has("contact") else None
    if parts.has("address"):
        return _sure("address", parts, _PLACES)
    for kind in ("contact", "address"):
        if parts.has(f"{kind}?") and not parts.strays({f"{kind}?", *_PLACES}):
            return Meaning(kind, False)
    return None


def _employed(parts: Parts) -> Meaning | None:
    if parts.has("text", "specify", *_HARMLESS):
        return None
    if parts.has("staff"):
        return _sure("staff", parts, _STAFF)
    if parts.has("staff?") and parts.strays(_STAFF) < 2:
        return _sure("staff", parts, _STAFF if parts.has("treating") else ())
    return None


def _written(parts: Parts) -> Meaning | None:
    if parts.has("count", "code", "id", *_DATES):
        return None
    if parts.has("text") or (parts.has("other") and parts.has("specify")):
        return Meaning("free text", not parts.has("number"))
    known = {"text?", "specify", "diagnosis", "procedure", "operation", "small", "staff", "ward"}
    known |= {"admission", "visit", "stay"}
    if parts.has("text?") or (parts.has("specify") and parts.has("diagnosis", "procedure")):
        return None if parts.strays(known) else Meaning("free text", False)
    return None


def _dated(parts: Parts) -> Meaning | None:
    if not parts.has(*_DATES):
        return None
    for kinds, variable in _MOMENTS:
        if all(map(parts.has, kinds)) and not parts.strays({*kinds, *_STAY}):
            return Meaning(variable)
    return None


def _described(parts: Parts) -> Meaning | None:
    for kind, allowed in (
        ("sex", {"sex", "small", "person", "birth"}),
        ("ward", {"ward", "small", "admission", "discharge", "code", "name", "facility"}),
    ):
        if parts.has(kind) and not parts.strays(allowed):
            return Meaning(kind)
    coded = {"main", "secondary", "system", "code", "small", "admission", "discharge", "stay"}
    if parts.has("diagnosis") and not parts.strays({"diagnosis", *coded}):
        is_main = parts.has("main") or not parts.has("secondary")
        return Meaning("main diagnosis" if is_main else "secondary diagnosis")
    if parts.has("procedure") and not parts.strays({"procedure", "operation", *coded}):
        named = parts.has("code", "system") or not parts.has("operation")
        return Meaning("procedure code") if named else None
    return None


def moment_of(name: str) -> str | None:
    """Return ``date`` or ``datetime`` where a name says it, else None.

    >>> moment_of("end_date"), moment_of("collected_at"), moment_of("stop"), moment_of("candidate")
    ('date', 'datetime', 'date', None)
    """
    parts = parts_of(name)
    split = words(name)
    if parts.has("never"):
        return None
    if parts.has("datetime") or (len(split) > 1 and split[-1] == "at"):
        return "datetime"
    if parts.has("date"):
        return "datetime" if parts.has("time") else "date"
    return "date" if len(split) == 1 and compact(name) in stems_of("name")["moment"] else None
