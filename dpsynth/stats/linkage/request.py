"""What is asked of linkage: two registers, a score with thresholds, caps; all of it is public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import figure
from dpsynth._util.written_files import read_document
from dpsynth.errors import DpsynthError, InputError
from dpsynth.privacy import LinkCounts, PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy.answer_events import MAX_CAP
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Schema
from dpsynth.stats.entries import check_keys
from dpsynth.stats.planning import WHAT_IF
from dpsynth.stats.request import MAX_CONFIDENCE
from dpsynth.stats.results import normal_quantile

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


@dataclass(frozen=True, eq=False)
class LinkageRequest:
    """Linkage of two registers, as an office asks for it.

    Attributes:
        document: as it was written, with the defaults filled in.
        title: of the linkage.
        names: of the two registers.
        schemas: of the table of pairs, once for each register: whose units are protected.
        score: the column of the score.
        match: the column of what clerical review found.
        thresholds: of the score, rising; pairs below the first do not count.
        yes: cells that say that a pair is a match.
        no: cells that say that it is none.
        unreviewed: whether pairs with any other cell are counted, as not reviewed.
        cap_of_matches: in how many matches a record counts, at most.
        cap_of_others: in how many other pairs.
        same_people: whether a person may be in both registers.
        own_records: why each pair follows from its own two records alone; None where that is not
            declared, and then nothing is counted.
        confidence: of every interval.
    """

    document: dict[str, Any]
    title: str
    names: tuple[str, str]
    schemas: tuple[Schema, Schema]
    score: str
    match: str
    thresholds: tuple[float, ...]
    yes: tuple[str, ...]
    no: tuple[str, ...]
    unreviewed: bool
    cap_of_matches: int
    cap_of_others: int
    same_people: bool
    own_records: str | None
    confidence: float

    def __repr__(self) -> str:
        """Name the registers."""
        return f"<LinkageRequest of {self.names[0]} and {self.names[1]}>"

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The columns of the table of pairs that are read."""
        keys = [schema.unit.column or "" for schema in self.schemas]
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
            raise InputError(f"linkage '{self.title}': {_DECLARE}")

    def shares(self) -> tuple[Share, ...]:
        """Return an event for each class, with equal parts of the budget."""
        records, cells = 2 if self.same_people else 1, len(self.thresholds)
        caps = {name: self.cap_of_others for name in self.classes} | {MATCHES: self.cap_of_matches}
        return tuple(
            Share(LinkCounts(name, cells, cap, records, UNDECIDED), 1 / len(caps))
            for name, cap in caps.items()
        )

    def plan(self, epsilon: float, delta: float) -> PrivacyPlan:
        """Calibrate the noise of all numbers together.

        Raises:
            InputError: the budget cannot be met.
        """
        plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon, delta), self.shares())
        return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge

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
            title=title,
            names=(names[0], names[1]),
            schemas=(schemas[0], schemas[1]),
            score=columns[2],
            match=columns[3],
            thresholds=_thresholds(score["thresholds"]),
            yes=yes,
            no=no,
            unreviewed=unreviewed,
            cap_of_matches=caps[0],
            cap_of_others=caps[1],
            same_people=_truth(document["same_people"], f"same_people ({_SAME_PEOPLE})"),
            own_records=_own_records(document),
            confidence=float(confidence),
        )


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


ACCEPTED = 1000  # pairs, for which the precision of figures is stated


@dataclass(frozen=True)
class Expectation:
    """How far figures of linkage will be off.

    Attributes:
        epsilon: composed.
        confidence: with which figures are within these distances.
        numbers: of each class, how far the number of pairs from a threshold on is off, in pairs.
        precision: how far the precision of 1,000 accepted pairs is off, at most.
        recall: how far recall is off where there are 1,000 matches, at most.
    """

    epsilon: float
    confidence: float
    numbers: dict[str, float]
    precision: float
    recall: float

    def lines(self) -> list[str]:
        """Say it in words."""
        sure = f"(confidence {100 * self.confidence:g} %)"
        return [
            *(
                f"{name}: to within {figure(off)} pairs {sure}"
                for name, off in self.numbers.items()
            ),
            f"precision of {ACCEPTED:,} reviewed pairs: to within {figure(self.precision)} {sure}",
            f"recall of {ACCEPTED:,} matches: to within {figure(self.recall)} {sure}",
        ]


def expectation(request: LinkageRequest, plan: PrivacyPlan) -> Expectation:
    """Say what to expect of a request under a plan.

    The error of precision p is that of (1 - p) M - p N over the number of pairs, and that of recall
    r the one of M - r M_0: each is largest at an end.
    """
    z = normal_quantile(request.confidence)
    sigma = {event.name: event.sigma for event in plan.events if isinstance(event, LinkCounts)}
    return Expectation(
        epsilon=plan.epsilon,
        confidence=request.confidence,
        numbers={name: float(math.ceil(z * sigma[name])) for name in request.classes},
        precision=min(1.0, z * max(sigma[MATCHES], sigma[OTHERS]) / ACCEPTED),
        recall=min(1.0, z * math.sqrt(2) * sigma[MATCHES] / ACCEPTED),
    )


def what_if(
    request: LinkageRequest, *, delta: float, epsilons: Sequence[float] = WHAT_IF
) -> dict[float, Expectation]:
    """Say what to expect at several budgets; nothing is read or charged.

    Raises:
        InputError: a budget cannot be met.
    """
    return {epsilon: expectation(request, request.plan(epsilon, delta)) for epsilon in epsilons}
