"""What a ledger's records say: each fit with its history, and the sum of fits.

A fit is ``reserved`` before it may read; ``reading`` is recorded before its first private row;
then it is ``charged`` if it ended well and ``failed`` if not. All of these count as spent. Only a
fit that never came to ``reading`` can be ``voided``, and then does not count.

A fit spends after it was reserved: while it reads, and once more when public quality figures are
measured. `Entry.ended` is the time after which it can have spent nothing; windows of time count by
it (policy_rules.py).

The fields of a record are plain values that a terminal can show.
"""

from __future__ import annotations

import getpass
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from dpsynth._util.environment import variable
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import as_object, number, sha256_text, text, texts, truth, whole
from dpsynth.errors import ArtifactError, BudgetError, InputError
from dpsynth.ledger.chain import MISTYPED, Head, Record
from dpsynth.policy import Policy
from dpsynth.policy.limits import NAME
from dpsynth.privacy import Unit
from dpsynth.privacy.public_quality import QUALITY

RESERVED, READING, CHARGED, FAILED, VOIDED = (
    "reserved",
    "reading",
    "charged",
    "failed",
    "voided",
)
STATUSES = (RESERVED, READING, CHARGED, FAILED, VOIDED)
SIGNED, RELEASED, POLICY = "signed", "released", "policy"
MEASURED, FIGURES, FORFEITED = "measured", "figures", "forfeited"
CHECKPOINT, RESUMED = "checkpoint", "resumed"
KINDS = (*STATUSES, SIGNED, RELEASED, POLICY, MEASURED, FIGURES, FORFEITED, CHECKPOINT, RESUMED)

FOLLOWS = {
    RESERVED: (),
    READING: (RESERVED,),
    CHARGED: (RESERVED, READING),
    FAILED: (RESERVED, READING),
    VOIDED: (RESERVED, FAILED),
}


@dataclass(frozen=True)
class Entry:
    """One fit on a dataset, as the ledger knows it.

    Attributes:
        epsilon: for one unit of the fit; see ``cost``.
        delta: likewise.
        unit: whose presence that is about, and whom the ledger counts.
        head: the end of the chain when the fit was reserved.
        host: the machine that reserved it, or resumed it last.
        process: its process there.
        policy: digest of the policy that admitted it; None if there was none.
        sign_off: how many people that policy wants to sign before a release.
        gates: that it wants a release to have passed.
        run: digest of the run that the fit made; None while it is open, or if none was made.
        measured: the one time that public quality figures were paid from its plan; None so far.
        forfeited: that its share for them was given up; None so far.
        checkpoint: the last one of its training; None if it keeps none.
        resumed: each time that a process went on with it after it had stopped.
    """

    id: str
    dataset: str
    at: str
    who: str
    purpose: str
    tier: str | None
    model: str
    schema_hash: str
    epsilon: float
    delta: float
    plan: dict[str, Any]
    unit: Unit
    allow_refuse: bool
    population: int
    policy: str | None
    sign_off: int
    gates: list[str]
    version: str
    host: str
    process: int
    head: Head
    history: tuple[Status, ...]
    run: str | None = None
    signatures: tuple[Signature, ...] = field(default=())
    releases: tuple[ReleasedNote, ...] = field(default=())
    measured: MeasuredNote | None = None
    forfeited: Forfeited | None = None
    checkpoint: CheckpointNote | None = None
    resumed: tuple[ResumedNote, ...] = field(default=())

    def __repr__(self) -> str:
        """Name the fit and its cost."""
        return short_repr(
            self, self.id[:12], f"dataset {self.dataset}", f"epsilon {self.epsilon:g}", self.status
        )

    @property
    def status(self) -> str:
        """The latest status."""
        return self.history[-1].status

    @property
    def note(self) -> str:
        """The note of the latest status."""
        return self.history[-1].note

    @property
    def counts(self) -> bool:
        """Whether it counts as spent."""
        return self.status != VOIDED

    @property
    def voidable(self) -> bool:
        """Whether the record proves that no private read began."""
        statuses = {status.status for status in self.history}
        return statuses <= {RESERVED, FAILED}

    @property
    def open(self) -> bool:
        """Whether its fit has neither ended nor been given up."""
        return self.status in (RESERVED, READING)

    def precedes(self, step: int, previous: str | None) -> bool:
        """Whether a checkpoint of this step, made after ``previous``, is the next one of the fit.

        Each follows the last one that was recorded, so of two processes that go on from the same
        checkpoint one alone gets further. Before reading begins, no step was taken.
        """
        last = self.checkpoint
        after = (None, 0) if last is None else (last.sha256, last.step)
        may_be = self.status == READING or (self.status == RESERVED and step == 0)
        return may_be and previous == after[0] and step >= after[1]

    def may_still_spend(self, earlier: Entry) -> bool:
        """Whether the entry still stands as when it was read earlier: open, or owing its share."""
        return self.owes if earlier.owes else self.open

    @property
    def cost(self) -> tuple[float, float]:
        """Epsilon and delta for one of those whom the ledger counts; all sums are of these."""
        return self.unit.cost(self.epsilon, self.delta)

    @property
    def share(self) -> bool:
        """Whether the plan set a share aside for public quality figures."""
        events = self.plan.get("events")
        named = events if isinstance(events, list) else []
        return any(isinstance(event, dict) and event.get("name") == QUALITY for event in named)

    @property
    def owes(self) -> bool:
        """Whether a share for quality may still be spent, or its measurement may go on."""
        if not self.share or self.forfeited is not None or self.status != CHARGED:
            return False
        return self.measured is None or self.measured.ended is None

    @property
    def ended(self) -> str | None:
        """Time (UTC) since when the fit can spend nothing more; None while it may.

        It may while it is reserved or reading, and while its share for quality is neither measured
        with figures recorded, nor forfeited.
        """
        if self.status in (RESERVED, READING) or self.owes:
            return None
        measured = None if self.measured is None else self.measured.ended
        given_up = None if self.forfeited is None else self.forfeited.at
        return measured or given_up or self.history[-1].at

    def to_dict(self) -> dict[str, Any]:
        """Give the entry in plain JSON values, for the office."""
        return asdict(self) | {"status": self.status, "note": self.note, "counts": self.counts}


class Disorder(Exception):
    """Records that cannot have been written by a ledger; says which and why."""


def replayed(records: Iterable[Record]) -> list[Entry]:
    """Read entries out of records, in the order in which they were reserved.

    Raises:
        Disorder: a record is about an entry that is not there, follows what it cannot follow, or
            holds something of a wrong type.
    """
    entries: dict[str, Entry] = {}
    for record in records:
        try:
            _check_columns(record)
            _apply(entries, record)
        except ArtifactError as error:
            raise Disorder(str(error)) from error
        except (KeyError, TypeError, ValueError) as error:
            raise Disorder(f"record {record.number} cannot be read") from error
    return list(entries.values())


def _check_columns(record: Record) -> None:
    """Refuse a record whose columns, the body apart, no ledger writes."""
    place = f"record {record.number}"
    if record.kind == MISTYPED:
        raise Disorder(f"{place} holds a value of a wrong type")
    if record.kind not in KINDS:
        raise Disorder(f"{place} is of no known kind")
    line(record.entry, f"{place}: entry")
    line(record.who, f"{place}: who")
    check_time(record.at, f"{place}: at")


def _apply(entries: dict[str, Entry], record: Record) -> None:
    body, place = record.document, f"record {record.number}"
    if record.kind == POLICY:
        as_object(body["policy"], f"{place}: policy")
        return
    known = entries.get(record.entry)
    if record.kind == RESERVED:
        if known is not None:
            raise Disorder(f"record {record.number} reserves an entry a second time")
        entries[record.entry] = _reserved(record, body)
        return
    if known is None:
        raise Disorder(f"record {record.number} is about an entry that was never reserved")
    if record.kind in STATUSES:
        if known.status not in FOLLOWS[record.kind] or (
            record.kind == VOIDED and not known.voidable
        ):
            raise Disorder(
                f"record {record.number}: an entry that is {known.status} cannot be {record.kind}"
            )
        note = line(body.get("note", ""), f"{place}: note")
        status = Status(record.at, record.kind, note, record.who)
        run = line_or_none(body.get("run", known.run), f"{place}: run")
        entries[record.entry] = replace(known, history=(*known.history, status), run=run)
    elif record.kind == SIGNED:
        note = line(body.get("note", ""), f"{place}: note")
        signature = Signature(record.at, record.who, note)
        entries[record.entry] = replace(known, signatures=(*known.signatures, signature))
    elif record.kind == MEASURED:
        if known.measured is not None or not known.owes:
            raise Disorder(f"record {record.number} spends a share that is not there to spend")
        table = line(body["table"], f"{place}: table")
        entries[record.entry] = replace(known, measured=MeasuredNote(record.at, record.who, table))
    elif record.kind == FIGURES:
        measured = known.measured
        if measured is None or not known.owes:
            raise Disorder(f"record {record.number} holds figures that nothing was measured for")
        digest = line(body["sha256"], f"{place}: sha256")
        measured = replace(measured, figures=digest, ended=record.at)
        entries[record.entry] = replace(known, measured=measured)
    elif record.kind == FORFEITED:
        if not known.owes:
            raise Disorder(f"record {record.number} gives up a share that is not there")
        note = line(body["note"], f"{place}: note")
        given_up = Forfeited(record.at, record.who, note)
        entries[record.entry] = replace(known, forfeited=given_up)
    elif record.kind == CHECKPOINT:
        kept = CheckpointNote.of(record.at, body, place)
        if not known.precedes(kept.step, line_or_none(body["previous"], f"{place}: previous")):
            raise Disorder(f"record {record.number} is a checkpoint that does not follow the last")
        entries[record.entry] = replace(known, checkpoint=kept)
    elif record.kind == RESUMED:
        if not known.open:
            raise Disorder(f"record {record.number} goes on with a fit that is {known.status}")
        again = ResumedNote.of(record.at, record.who, body, place)
        known = replace(known, host=again.host, process=again.process)
        entries[record.entry] = replace(known, resumed=(*known.resumed, again))
    else:
        manifest = line(body["manifest"], f"{place}: manifest")
        released = ReleasedNote(record.at, record.who, manifest)
        entries[record.entry] = replace(known, releases=(*known.releases, released))


def _reserved(record: Record, body: dict[str, Any]) -> Entry:
    place = f"record {record.number}"
    if set(body) != set(RESERVATION):
        raise Disorder(f"{place} has other fields than a reservation")
    values = {name: check(body[name], f"{place}: {name}") for name, check in RESERVATION.items()}
    entry = Entry(
        id=record.entry,
        at=record.at,
        who=record.who,
        head=record.head,
        history=(Status(record.at, RESERVED, "", record.who),),
        **values,
    )
    if not entry.cost[1] < 1:
        raise Disorder(f"{place} leaves nothing of its guarantee to whom it counts")
    return entry


@dataclass(frozen=True)
class Status:
    """What an entry became, when (UTC), by whom, and why."""

    at: str
    status: str
    note: str
    who: str = ""


@dataclass(frozen=True)
class Signature:
    """Who signed a fit's entry for release, and when (UTC)."""

    at: str
    who: str
    note: str


@dataclass(frozen=True)
class ReleasedNote:
    """When (UTC) a bundle of a fit was written, by whom, and its manifest's SHA-256."""

    at: str
    who: str
    manifest: str


@dataclass(frozen=True)
class MeasuredNote:
    """When (UTC) the share for public quality figures was spent, by whom, and on which table.

    ``figures`` is the SHA-256 of the file with the answers, recorded at ``ended``; None if none
    came out of it so far.
    """

    at: str
    who: str
    table: str
    figures: str | None = None
    ended: str | None = None


@dataclass(frozen=True)
class Forfeited:
    """When (UTC) it was given up to spend what was left of a share for quality, by whom, and why.

    No figures are measured or recorded afterwards.
    """

    at: str
    who: str
    note: str


@dataclass(frozen=True)
class CheckpointNote:
    """When (UTC) a fit saved where it stands, after how many private steps, and the file's SHA-256.

    All that was released to that file is spent; the fit goes on from it and from no other.
    """

    at: str
    step: int
    sha256: str

    @classmethod
    def of(cls, at: str, body: Mapping[str, Any], place: str) -> Self:
        """Read a record's body.

        Raises:
            ArtifactError: it holds something else.
        """
        step = whole(body["step"], f"{place}: step", minimum=0)
        return cls(at, step, sha256_text(body["sha256"], f"{place}: sha256"))


@dataclass(frozen=True)
class ResumedNote:
    """When (UTC) a process went on with a fit that had stopped, by whom, and which process."""

    at: str
    who: str
    host: str
    process: int

    @classmethod
    def of(cls, at: str, who: str, body: Mapping[str, Any], place: str) -> Self:
        """Read a record's body.

        Raises:
            ArtifactError: it holds something else.
        """
        process = whole(body["process"], f"{place}: process", minimum=0)
        return cls(at, who, line(body["host"], f"{place}: host"), process)


YEARS = range(2000, 2201)  # of a record
_MAX_DEPTH = 10  # levels of a plan's document; a plan has 3


def line(value: Any, place: str) -> str:
    """Check that a value is a text that a terminal can show as one line."""
    if not text(value, place).isprintable():
        raise ArtifactError(f"{place}: one line of printable text is expected")
    return str(value)


def line_or_none(value: Any, place: str) -> str | None:
    """Check a line that may be absent."""
    return None if value is None else line(value, place)


def lines(value: Any, place: str) -> list[str]:
    """Check a list of lines."""
    return [line(item, place) for item in texts(value, place)]


def delta_of(value: Any, place: str) -> float:
    """Check a number above 0 and below 1."""
    if not (delta := number(value, place, above=0)) < 1:
        raise ArtifactError(f"{place}: a number below 1 is expected")
    return delta


def plan_of(value: Any, place: str) -> dict[str, Any]:
    """Check that a plan's document nests no deeper than a plan does, in printable text."""
    if not _is_plain(as_object(value, place), _MAX_DEPTH):
        raise ArtifactError(f"{place}: it nests too deeply, or has text that cannot be shown")
    return dict(value)


def _is_plain(value: Any, levels: int) -> bool:
    """Whether JSON nests at most so deeply, and all its texts are printable."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return levels > 0 and all(_is_plain(item, levels - 1) for item in value)
    return not isinstance(value, str) or value.isprintable()


def check_time(value: str, place: str) -> None:
    """Refuse what is no ISO 8601 time with a zone, or one out of all reason."""
    try:
        time = datetime.fromisoformat(line(value, place))
    except ValueError:
        time = datetime.min
    if time.utcoffset() is None or time.year not in YEARS:
        raise ArtifactError(f"{place}: a time with its zone, from 2000 to 2200, is expected")


RESERVATION: dict[str, Callable[[Any, str], Any]] = {  # of a reservation
    **dict.fromkeys(("dataset", "purpose", "model", "schema_hash", "version", "host"), line),
    **dict.fromkeys(("tier", "policy"), line_or_none),
    **dict.fromkeys(("population", "process", "sign_off"), partial(whole, minimum=0)),
    "gates": lines,
    "epsilon": partial(number, above=0),
    "delta": delta_of,
    "plan": plan_of,
    "unit": Unit.from_dict,
    "allow_refuse": truth,
}

MAX_TEXT_LENGTH = 200
MAX_EPSILON = 1e6  # far beyond any protection; a plan stops at 1000
NOBODY = "unknown"


def check_request(
    dataset: str, purpose: str, tier: str | None, epsilon: float, delta: float
) -> None:
    """Refuse an entry that could not be counted.

    Raises:
        InputError: a name, a text or the budget is not acceptable.
    """
    for subject, name in (("a dataset's name", dataset), ("a tier's name", tier)):
        if name is not None and not NAME.fullmatch(name):
            raise InputError(
                f"{subject} has 1 to 64 letters, digits, dots, hyphens and underscores, and "
                "starts with a letter or digit"
            )
    check_text("a purpose", purpose)
    if not (math.isfinite(epsilon) and 0 < epsilon <= MAX_EPSILON):
        raise InputError(f"epsilon must be above 0 and at most {MAX_EPSILON:g}")
    if not 0 < delta < 1:
        raise InputError("delta must lie between 0 and 1")


def require_for(policy: Policy, ledger: str, place: str) -> None:
    """Refuse a policy that says it is for another ledger.

    Raises:
        BudgetError: with both ids.
    """
    if policy.ledger not in (None, ledger):
        raise BudgetError(
            f"the policy '{policy.name}' is for ledger {policy.ledger}, but {place} is ledger "
            f"{ledger}; set DPSYNTH_LEDGER to the right one"
        )


def check_cost(unit: Unit, epsilon: float, delta: float) -> None:
    """Refuse a budget that is none for whom the ledger counts.

    Raises:
        InputError: group privacy leaves nothing of it; it says what the cost would be.
    """
    cost, chance = unit.cost(epsilon, delta)
    if not (cost <= MAX_EPSILON and chance < 1):
        raise InputError(
            f"for a {unit.person} with {unit.max_units} units of the table, epsilon {epsilon:g} "
            f"and delta {delta:g} come to epsilon {cost:.6g} and delta {chance:.6g}, which "
            "guarantees nothing; use a smaller epsilon, or fit by a key column"
        )


def check_text(subject: str, text: str, *, needed: bool = False) -> None:
    """Refuse what is not one short line."""
    if len(text) > MAX_TEXT_LENGTH or not text.isprintable():
        raise InputError(f"{subject} must be one line of at most {MAX_TEXT_LENGTH} characters")
    if needed and not text.strip():
        raise InputError(f"{subject} is needed: write a few words for later readers of the ledger")


def user() -> str:
    """Name the user: ``DPSYNTH_USER``, else the login name, else ``unknown``.

    Raises:
        InputError: the variable is set and blank.
    """
    stated = variable("DPSYNTH_USER")
    try:
        name = getpass.getuser() if stated is None else stated
    except (KeyError, OSError, ImportError):
        name = NOBODY
    printable = "".join(letter for letter in name if letter.isprintable()).strip()
    return printable[:64] or NOBODY


def same_person(name: str, other: str) -> bool:
    """Whether two names are written alike: whatever their case, spaces and forms of letters."""
    return _plain(name) == _plain(other)


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


def require_person(does: str) -> str:
    """Return the user's name; refuse nobody.

    Raises:
        InputError: the system does not say who it is.
    """
    who = user()
    if who == NOBODY:
        raise InputError(f"a named person {does}: set DPSYNTH_USER")
    return who


@cache
def installed_version() -> str:
    """Return the version of this dpsynth."""
    try:
        return version("dpsynth")
    except PackageNotFoundError:
        return NOBODY
