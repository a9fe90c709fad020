"""Record linkage: what is asked of two registers, and what follows from noisy numbers of pairs.

The patients of both registers are protected. What is published is noisy numbers of pairs from each
threshold of the score on, by what clerical review found (`dpsynth.stats.linking`).

Precision, recall and F1 by threshold, from noisy numbers of pairs: post-processing alone.

**Numbers.** From a threshold on, M pairs are matches and N are none; M_0 is that of the lowest
threshold. Numbers cannot rise with the threshold, so the noisy ones are replaced by the nearest
(least squares) that do not rise, and that are not negative.

**Figures.** Precision is M / (M + N), recall M / M_0, F1 is 2 M / (M + N + M_0): each a ratio of
two sums of the noisy numbers n, (u n) / (v n).

**Intervals** are those of Fieller (JRSS B 16, 1954): all shares s for which (u - s v) n is as near
0 as its noise permits. At the extract's own ratio that is noise alone, with the variance
sum (u_i - s v_i)^2 sigma_i^2, however small the numbers are. Where the lower sum may be 0, the
interval is all from 0 to 1. They are made from the numbers as they were drawn; where the figure
that does not rise lies outside of its interval, the interval is widened to it, so they hold at
least as often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import counted, figure, shown
from dpsynth._util.strict_json import as_object
from dpsynth._util.written_files import read_document
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, DpsynthError, InputError
from dpsynth.privacy import Event, LinkCounts, PrivacyPlan, Share, counted_of
from dpsynth.privacy.answer_events import LINKAGE, MAX_CAP
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import AnySchema, Schema
from dpsynth.stats.answer_request import ChargedRequest, Kind, Numbers, PrecisionPreview, Result
from dpsynth.stats.entries import check_keys
from dpsynth.stats.page import Curve, panel
from dpsynth.stats.statistic import MAX_CONFIDENCE, normal_quantile

MATCHES, OTHERS, UNREVIEWED = "matches", "non-matches", "not reviewed"
MAX_THRESHOLDS = 100
_KEYS = (
    *("linkage", "registers", "score", "match", "cap", "same_people", "own_records"),
    *("confidence", "dialect"),
)
_NEEDED = ("linkage", "registers", "score", "match", "cap", "same_people")
_REGISTER = ("name", "key", "population", "person", "reading", "missing")
_SAME_PEOPLE = "whether a person may be in both registers"
_DECLARE = (
    'declare own_records: {value: true, basis: "..."} if whether two records are a pair, their '
    "score and their review follow from these two records alone. Do not declare it where each "
    "record keeps its best few candidates, where the score counts how common a value is in the "
    "registers, or where matches were assigned one to one: one record then moves the figures "
    "further than the noise hides, and dpsynth linkage cannot protect it. Nothing was charged"
)
ACCEPTED = 1000  # pairs, for which the precision of figures is stated

Floats = npt.NDArray[np.float64]
RATIOS = ("precision", "recall", "F1")
_DIGITS = 4  # of a ratio
_REVIEW = {MATCHES: "match", OTHERS: "no match", UNREVIEWED: "not reviewed"}


@dataclass(frozen=True, eq=False)
class LinkageRequest(ChargedRequest):
    """Linkage of two registers, as an office asks for it.

    Attributes:
        document: as it was written, with the defaults filled in.
        linkage: its title.
        names: of the two registers.
        registers: the schema of the table of pairs, once for each register: whose units are
            protected.
        score: the column of the score.
        match: the column of what clerical review found.
        thresholds: of the score, rising; pairs below the first do not count.
        yes: cells that say that a pair is a match.
        no: cells that say that it is none.
        unreviewed: whether pairs with any other cell are counted, as not reviewed.
        cap_of_matches: in how many matches a record counts, at most.
        cap_of_others: in how many other pairs.
        same_people: whether a person may be in both registers.
        declared: why each pair follows from its own two records alone; None where that is not
            declared, and then nothing is counted.
        confidence: of every interval.
    """

    document: dict[str, Any]
    linkage: str
    names: tuple[str, str]
    registers: tuple[Schema, Schema]
    score: str
    match: str
    thresholds: tuple[float, ...]
    yes: tuple[str, ...]
    no: tuple[str, ...]
    unreviewed: bool
    cap_of_matches: int
    cap_of_others: int
    same_people: bool
    declared: str | None
    confidence: float
    kind: ClassVar[Kind] = Kind(
        LINKAGE,
        "the figures of linkage",
        "Linkage",
        "linkage.json",
        "dpsynth-linkage",
        ("request", "numbers"),
    )

    def __repr__(self) -> str:
        """Name the registers."""
        return f"<LinkageRequest of {self.names[0]} and {self.names[1]}>"

    @property
    def title(self) -> str:
        """Its title."""
        return self.linkage

    @property
    def schemas(self) -> tuple[AnySchema, ...]:
        """Of the table of pairs, once for each register."""
        return self.registers

    @property
    def own_records(self) -> str | None:
        """Why each pair follows from its own two records alone; None where nothing says so."""
        return self.declared

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The columns of the table of pairs that are read."""
        keys = [schema.unit.column or "" for schema in self.registers]
        return (keys[0], keys[1], self.score, self.match)

    @property
    def classes(self) -> tuple[str, ...]:
        """What pairs are counted as; each is an event of its own."""
        return (MATCHES, OTHERS, UNREVIEWED) if self.unreviewed else (MATCHES, OTHERS)

    def require_own_records(self) -> None:
        """Refuse a request that does not declare that pairs follow from their own records alone.

        Raises:
            InputError: it says what to declare, and when that would not be true.
        """
        if self.own_records is None:
            raise InputError(f"linkage '{self.linkage}': {_DECLARE}")

    def shares(self, certificate: Certificate | None = None) -> tuple[Share, ...]:
        """Return an event for each class, with equal parts of the budget."""
        records, cells = 2 if self.same_people else 1, len(self.thresholds)
        caps = {name: self.cap_of_others for name in self.classes} | {MATCHES: self.cap_of_matches}
        return tuple(
            Share(LinkCounts(name, cells, cap, records, UNDECIDED), 1 / len(caps))
            for name, cap in caps.items()
        )

    @classmethod
    def load(cls, path: str | Path) -> LinkageRequest:
        """Read a request from YAML or JSON.

        Raises:
            InputError: the document is not exactly a request of linkage, with what to do.
        """
        place = path_of(path, "the path of a request")
        document = read_document(place, "request", never="a request is not")
        if not isinstance(document, dict):
            raise InputError(f"{place} is not a request: it must be an object with registers")
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LinkageRequest:
        """Read a request from plain values.

        Raises:
            InputError: as `load`.

        Example:
            >>> count = {"value": 9000, "basis": "yearly report"}
            >>> request = LinkageRequest.from_dict({
            ...     "linkage": "births and cancers",
            ...     "registers": [{"name": "births", "key": "birth_id", "population": count},
            ...                   {"name": "cancers", "key": "case_id", "population": count}],
            ...     "score": {"column": "score", "thresholds": [0.5, 0.8, 0.95]},
            ...     "match": {"column": "match", "matches": ["1"], "others": ["0"]},
            ...     "cap": {"matches": 1, "others": 3, "basis": "the blocking keeps 3"},
            ...     "same_people": True,
            ...     "own_records": {"value": True, "basis": "weights fixed in the protocol"}})
            >>> [share.event.sensitivity for share in request.shares()]
            [3.4641016151377544, 10.392304845413264]
        """
        check_keys(document, "the request", _KEYS, _NEEDED)
        registers = document["registers"]
        if not isinstance(registers, list) or len(registers) != 2:
            raise InputError("registers must be a list of two: that of register A and that of B")
        for one in registers:
            check_keys(_object(one, "a register"), "a register", _REGISTER, _REGISTER[:3])
        score = _part(document, "score", ("column", "thresholds"))
        match = _part(document, "match", ("column", "matches", "others"), "unreviewed")
        cap = _part(document, "cap", ("matches", "others", "basis"))
        caps = [_cap(cap[key], f"cap.{key}") for key in ("matches", "others")]
        yes, no = (_values(match[key], f"match.{key}") for key in ("matches", "others"))
        if set(yes) & set(no):
            raise InputError("match.matches and match.others have a value in common")
        unreviewed = _truth(match.get("unreviewed", False), "match.unreviewed")
        names = [_name(one["name"], "a register's name") for one in registers]
        columns = [*(one["key"] for one in registers), score["column"], match["column"]]
        columns = [_name(column, "a column's name") for column in columns]
        if len(set(columns)) < 4 or names[0] == names[1]:
            raise InputError("the two registers, and the four columns, need names of their own")
        confidence = document.get("confidence", 0.95)
        if type(confidence) not in (int, float) or not 0.5 <= confidence <= MAX_CONFIDENCE:
            raise InputError(f"confidence must be at least 0.5 and at most {MAX_CONFIDENCE}")
        whole = {**document, "confidence": float(confidence)}
        title = _name(document["linkage"], "linkage")
        schemas = [_schema(whole, place, columns, [*yes, *no], max(caps)) for place in range(2)]
        return cls(
            document=whole,
            linkage=title,
            names=(names[0], names[1]),
            registers=(schemas[0], schemas[1]),
            score=columns[2],
            match=columns[3],
            thresholds=_thresholds(score["thresholds"]),
            yes=yes,
            no=no,
            unreviewed=unreviewed,
            cap_of_matches=caps[0],
            cap_of_others=caps[1],
            same_people=_truth(document["same_people"], f"same_people ({_SAME_PEOPLE})"),
            declared=_own_records(document),
            confidence=float(confidence),
        )

    def expected(self, plan: PrivacyPlan) -> PrecisionPreview:
        """Say how far the numbers, precision and recall will be off.

        Of the values, ``pairs_off`` is how far the number of pairs from a threshold on is off, for
        each class; ``precision_off`` that of 1,000 accepted pairs and ``recall_off`` that of 1,000
        matches, at most. The error of precision p is that of (1 - p) M - p N over the number of
        pairs, and that of recall r the one of M - r M_0: each is largest at an end.
        """
        z = normal_quantile(self.confidence)
        sigma = {event.name: _sigma(event) for event in plan.events}
        numbers = {name: float(math.ceil(z * sigma[name])) for name in self.classes}
        precision = min(1.0, z * max(sigma[MATCHES], sigma[OTHERS]) / ACCEPTED)
        recall = min(1.0, z * math.sqrt(2) * sigma[MATCHES] / ACCEPTED)
        sure = f"(confidence {100 * self.confidence:g} %)"
        return PrecisionPreview(
            {
                "composed_epsilon": plan.epsilon,
                "confidence": self.confidence,
                "pairs_off": numbers,
                "precision_off": precision,
                "recall_off": recall,
            },
            [
                *(f"{name}: to within {figure(off)} pairs {sure}" for name, off in numbers.items()),
                f"precision of {ACCEPTED:,} reviewed pairs: to within {figure(precision)} {sure}",
                f"recall of {ACCEPTED:,} matches: to within {figure(recall)} {sure}",
            ],
        )

    def cost(self, plan: PrivacyPlan) -> tuple[dict[str, Any], list[str]]:
        """Say what all numbers cost together, and who is charged."""
        who = "once, to the budget that both share" if self.same_people else "to both"
        return {}, [f"cost: epsilon {figure(plan.epsilon)}, charged {who}"]

    def payers(self) -> tuple[str, ...]:
        """Name both registers."""
        return self.names

    def problems(self, certificate: Certificate | None, stamps: Sequence[str]) -> list[str]:
        """Require the declaration, and charges that are those of the same people, or of others."""
        assert certificate is not None
        found = []
        if self.declared is None:
            found.append("the request declares no own_records, which it needs")
        if certificate.ledger is not None and certificate.is_joint != self.same_people:
            found.append("the charges are not those of people who are, or are not, in both")
        return found

    @classmethod
    def read(cls, document: Mapping[str, Any], path: Path) -> LinkageRequest:
        """Read a request back from the document of linkage."""
        return cls.from_dict(as_object(document["request"], f"{path}: request"))

    def numbers(
        self, document: Mapping[str, Any], events: Mapping[str, Event], path: Path
    ) -> Numbers:
        """Read the numbers that were paid for, all of them, and no number more."""
        place = f"{path}: numbers"
        stated = as_object(document["numbers"], place)
        if set(stated) != set(self.classes):
            raise ArtifactError(f"{place}: there must be numbers of {', '.join(self.classes)}")
        for part in stated.values():
            if not isinstance(part, list) or len(part) != len(self.thresholds):
                raise ArtifactError(f"{place}: there must be a number for each threshold")
            if not all(type(one) is int and abs(one) < 2**62 for one in part):
                raise ArtifactError(f"{place}: there must be whole numbers alone")
        return {name: np.array(stated[name], dtype=np.int64) for name in self.classes}

    def asked(self) -> dict[str, Any]:
        """Return the request as keys of the document."""
        return {"request": self.document}

    def paid(self, numbers: Numbers) -> dict[str, Any]:
        """Return the numbers as keys of the document."""
        return {"numbers": {name: part.tolist() for name, part in numbers.items()}}

    def results(self, numbers: Numbers, events: Mapping[str, Event]) -> tuple[Result, ...]:
        """Return what is published: ``thresholds`` and ``bands``; see `tables_of`."""
        tables = tables_of(self, numbers, events)
        return tuple(Result(name, table, name) for name, table in tables.items())

    def described(self, result: Result, events: Mapping[str, Event]) -> dict[str, Any]:
        """Say what is known of the noise of a table."""
        return {
            "name": result.name,
            "registers": list(self.names),
            "confidence": self.confidence,
            "intervals": "of the noise, about the figure of the candidate pairs that count",
            "events": [event.to_dict() for event in events.values()],
        }

    def page(
        self, numbers: Numbers, certificate: Certificate | None, results: Sequence[Result]
    ) -> dict[str, object]:
        """Return a picture of the thresholds, and the tables."""
        assert certificate is not None
        return {
            "names": [shown(name) for name in self.names],
            "protected": protected_of(self, certificate),
            "confidence": f"{100 * self.confidence:g} %",
            "picture": _picture(results[0].table),
            "noise": ", ".join(
                f"{event.name} {figure(_sigma(event))}" for event in certificate.events
            ),
            "tables": [_table(one.name, one.table) for one in results],
        }

    def summary(self, results: Sequence[Result]) -> tuple[dict[str, Any], str]:
        """Name the registers."""
        return {"registers": list(self.names)}, f"{len(self.thresholds)} thresholds"


def _schema(
    document: Mapping[str, Any], place: int, columns: list[str], values: list[str], cap: int
) -> Schema:
    """Write the schema of the table of pairs as that of one register's patients, and read it."""
    register, (score, match) = document["registers"][place], columns[2:]
    keys = [
        {
            "name": column,
            "type": "string",
            "dpsynth": {"role": "unit" if number == place else "drop"},
            **({"missingValues": register["missing"]} if "missing" in register else {}),
        }
        for number, column in enumerate(columns[:2])
    ]
    reviewed = {
        "name": match,
        "type": "string",
        "constraints": {"enum": values},
        "dpsynth": {"bounds_basis": "the request of linkage"},
    }
    facts = {
        "version": 1,
        "population": register["population"],
        "rows": register["population"],
        "max_rows": {"value": cap, "basis": document["cap"]["basis"]},
    }
    facts |= {"person": register["person"]} if "person" in register else {}
    facts |= {"key": register["reading"]} if "reading" in register else {}
    facts |= {"dialect": document["dialect"]} if "dialect" in document else {}
    schema = {
        "name": "pairs",
        "title": f"{document['linkage']}: {register['name']}",
        "fields": [*keys, {"name": score, "type": "number", "dpsynth": {"role": "drop"}}, reviewed],
        "dpsynth": facts,
    }
    try:
        read = Schema.from_dict(schema)
        read.require_complete()
    except DpsynthError as error:
        raise InputError(f"register '{register['name']}': {error}") from None
    if read.unit.max_units > 1:
        raise InputError(
            f"register '{register['name']}': each key must be one person; leave out max_units"
        )
    return read


def _part(document: Mapping[str, Any], key: str, needed: tuple[str, ...], *more: str) -> Any:
    part = _object(document[key], key)
    check_keys(part, key, (*needed, *more), needed)
    return part


def _own_records(document: Mapping[str, Any]) -> str | None:
    """Read why pairs follow from their own records alone; None where nothing is declared."""
    if "own_records" not in document:
        return None
    declared = _part(document, "own_records", ("value", "basis"))
    if not _truth(declared["value"], "own_records.value"):
        raise InputError(f"own_records is declared to be false: {_DECLARE}")
    return _name(declared["basis"], "own_records.basis")


def _object(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{place} must be an object")
    return value


def _name(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InputError(f"{place} must be a line of text")
    return value


def _truth(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{place} must be true or false")
    return value


def _cap(value: Any, place: str) -> int:
    if type(value) is not int or not 1 <= value <= MAX_CAP:
        raise InputError(f"{place} must be a whole number from 1 to {MAX_CAP:,}")
    return value


def _values(value: Any, place: str) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text.strip() == text != "" for text in texts):
        raise InputError(f"{place} must be a list of texts, as cells have them")
    return tuple(texts)


def _thresholds(value: Any) -> tuple[float, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_THRESHOLDS:
        raise InputError(f"score.thresholds must be a list of 1 to {MAX_THRESHOLDS} numbers")
    if not all(type(one) in (int, float) and abs(one) < 1e300 for one in value):
        raise InputError("score.thresholds must be numbers")
    if any(high <= low for low, high in zip(value, value[1:], strict=False)):
        raise InputError("score.thresholds must rise")
    return tuple(float(one) for one in value)


def protected_of(request: LinkageRequest, certificate: Certificate) -> str:
    """Say whose presence the guarantee hides: the people of both registers."""
    people = [
        f"{counted_of(one.unit)} of {name} (column '{shown(one.unit.name or '')}')"
        for one, name in zip(certificate.registers, request.names, strict=True)
    ]
    matches = f"{request.cap_of_matches:,} {'match' if request.cap_of_matches == 1 else 'matches'}"
    caps = f"{matches} and {counted(request.cap_of_others, 'other pair')}"
    words = (
        f"The guarantee protects each {people[0]} and each {people[1]}, with all of their "
        f"candidate pairs together; at most {caps} of each record count at a threshold. "
    )
    if request.own_records is not None:
        words += (
            "The office declares that each pair follows from its own two records alone: whether "
            f"it is a candidate, its score and its review ({shown(request.own_records)}). "
        )
    if request.same_people:
        return words + "It covers a person who is in both registers, with both records."
    return words + (
        "It assumes that no person is in both registers, and nothing checks that: for whoever is, "
        "noise hides only half as much."
    )


def _picture(table: pd.DataFrame) -> Markup | None:
    """Draw precision, recall and F1 against the threshold."""
    x = table["threshold"].tolist()
    curves = []
    for name in RATIOS:
        known = table[name].notna()
        columns = [table.loc[known, label] for label in (name, f"{name}: lower", f"{name}: upper")]
        middle, low, high = (column.astype(float).tolist() for column in columns)
        if len(middle) > 1:
            curves.append(Curve(name, table.loc[known, "threshold"].tolist(), middle, low, high))
    if not curves:
        return None
    ends = [x[0], x[-1]] if len(x) > 8 else x
    ticks = [(one, f"{one:g}") for one in ends]
    title = "Precision, recall and F1 by threshold"
    return panel("linkage", title, curves, ticks, 1.0, before="from", percent=True)


def _table(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return a table for the page, an interval beside each figure."""
    plain = [str(name) for name in table if not str(name).endswith((": lower", ": upper"))]
    rows = []
    for _, row in table.iterrows():
        cells = []
        for column in plain:
            words = _words(row[column])
            if f"{column}: lower" in table:
                ends = (_words(row[f"{column}: {end}"]) for end in ("lower", "upper"))
                words = f"{words} ({' to '.join(ends)})"
            cells.append({"words": words, "number": not isinstance(row[column], str)})
        rows.append(cells)
    return {"name": name, "columns": plain, "rows": rows}


def _words(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return "unknown"
    return f"{cell:,.0f}" if float(cell).is_integer() and abs(cell) > 1 else f"{cell:g}"


def tables_of(
    request: LinkageRequest, numbers: Numbers, events: Mapping[str, Event]
) -> dict[str, pd.DataFrame]:
    """Make the tables of linkage from its noisy numbers.

    Args:
        request: what was asked.
        numbers: noisy, by class: ``[thresholds]``.
        events: that paid for them, by class.

    Returns:
        ``thresholds``: what is accepted from each threshold on, and how good that is; ``bands``:
        the pairs of each class between two thresholds. Each figure has its interval.
    """
    z = normal_quantile(request.confidence)
    sigma = {name: _sigma(events[name]) for name in request.classes}
    raw = {name: np.asarray(numbers[name], np.float64) for name in request.classes}
    smooth = {name: falling(values) for name, values in raw.items()}
    found: dict[str, Sequence[object]] = {"threshold": request.thresholds}
    sd = float(np.sqrt(sum(one**2 for one in sigma.values())))
    total = sum(raw.values(), np.zeros(len(request.thresholds)))
    found |= _counted("accepted", sum(smooth.values(), np.zeros(len(total))), total, sd, z)
    for name in request.classes:
        found |= _counted(name, smooth[name], raw[name], sigma[name], z)
    for place, name in enumerate(RATIOS):
        cells = [
            _ratio(_weights(place, t, len(total)), smooth, raw, sigma, z) for t in range(len(total))
        ]
        middle, low, high = zip(*cells, strict=True)
        found |= {name: middle, f"{name}: lower": low, f"{name}: upper": high}
    return {
        "thresholds": pd.DataFrame(found),
        "bands": _bands(request, raw, smooth, sigma, z),
    }


def falling(values: Floats) -> Floats:
    """Return the nearest numbers that do not rise, at least 0.

    >>> falling(np.array([10.0, 4.0, 6.0, -2.0])).tolist()
    [10.0, 5.0, 5.0, 0.0]
    """
    from sklearn.isotonic import isotonic_regression

    nearest = np.asarray(isotonic_regression(values, increasing=False), np.float64)
    return np.maximum(nearest, 0.0)


def fieller_of(
    top: Floats, bottom: Floats, numbers: Floats, sigmas: Floats, z: float
) -> tuple[float, float]:
    """Return the interval of a ratio of two sums of the same noisy numbers, within 0 and 1.

    Args:
        top: weights of the upper sum, ``[numbers]``.
        bottom: those of the lower one.
        numbers: noisy.
        sigmas: sd of the noise of each.
        z: standard deviations to each side.

    >>> ends = fieller_of(np.array([1.0, 0]), np.ones(2), np.array([90.0, 10]), np.full(2, 3.0), 2)
    >>> [round(end, 2) for end in ends]
    [0.85, 0.96]
    """
    spread = (z * sigmas) ** 2
    over, under = float(top @ numbers), float(bottom @ numbers)
    a = under**2 - float(bottom**2 @ spread)
    b = over * under - float((top * bottom) @ spread)
    c = over**2 - float(top**2 @ spread)
    if a <= 0:
        return 0.0, 1.0
    root = float(np.sqrt(max(b**2 - a * c, 0.0)))
    low, high = np.clip([(b - root) / a, (b + root) / a], 0.0, 1.0).tolist()
    return low, high


def _sigma(event: Event) -> float:
    assert isinstance(event, LinkCounts)
    return event.sigma


def _weights(figure: int, t: int, count: int) -> tuple[Floats, Floats]:
    """Return the weights of both sums of a figure, over all matches and then all other pairs."""
    top, bottom = np.zeros(2 * count), np.zeros(2 * count)
    top[t] += 2 if RATIOS[figure] == "F1" else 1
    if RATIOS[figure] != "recall":
        bottom[[t, count + t]] += 1
    if RATIOS[figure] != "precision":
        bottom[0] += 1
    return top, bottom


def _ratio(
    weights: tuple[Floats, Floats],
    smooth: Mapping[str, Floats],
    raw: Mapping[str, Floats],
    sigma: Mapping[str, float],
    z: float,
) -> tuple[float | None, float, float]:
    """Return a ratio with its interval; None where nothing is below the line."""
    top, bottom = weights
    values = np.concatenate([smooth[MATCHES], smooth[OTHERS]])
    noisy = np.concatenate([raw[MATCHES], raw[OTHERS]])
    half = len(values) // 2
    sigmas = np.repeat([sigma[MATCHES], sigma[OTHERS]], half)
    low, high = fieller_of(top, bottom, noisy, sigmas, z)
    under = float(bottom @ values)
    if under <= 0:
        return None, 0.0, 1.0
    ratio = min(float(top @ values) / under, 1.0)
    ends = min(low, ratio), max(high, ratio)
    return round(ratio, _DIGITS), _down(ends[0]), -_down(-ends[1])


def _down(value: float) -> float:
    """Round a share down; an upper end is rounded up, as the negative of this."""
    scaled = np.floor(value * 10**_DIGITS + 1e-9)
    return float(round(scaled / 10**_DIGITS, _DIGITS)) + 0.0


def _counted(
    name: str, values: Floats, raw: Floats, sd: float, z: float
) -> dict[str, Sequence[object]]:
    """Return columns of whole numbers with their intervals, from 0."""
    reach = float(np.ceil(z * sd))
    middle = np.rint(values)
    low = np.minimum(np.maximum(raw - reach, 0), middle)
    high = np.maximum(np.maximum(raw + reach, 0), middle)
    columns = zip((name, f"{name}: lower", f"{name}: upper"), (middle, low, high), strict=True)
    return {label: column.astype(np.int64).tolist() for label, column in columns}


def _bands(
    request: LinkageRequest,
    raw: Mapping[str, Floats],
    smooth: Mapping[str, Floats],
    sigma: Mapping[str, float],
    z: float,
) -> pd.DataFrame:
    """List the pairs between two thresholds, by class: differences of what was counted."""
    ends = [*(f"{one:g}" for one in request.thresholds[1:]), ""]
    frames = []
    for name in request.classes:
        drawn, nearest = (-np.diff(one[name], append=0.0) for one in (raw, smooth))
        sds = sigma[name] * np.sqrt([2.0] * (len(ends) - 1) + [1.0])
        rows = [
            _counted("pairs", nearest[[t]], drawn[[t]], float(sds[t]), z) for t in range(len(ends))
        ]
        columns = {label: [cell for row in rows for cell in row[label]] for label in rows[0]}
        places = {"from": [f"{one:g}" for one in request.thresholds], "below": ends}
        frames.append(pd.DataFrame(places | {"review": _REVIEW[name]} | columns))
    return pd.concat(frames, ignore_index=True)
