"""The kind tests: what is wrong with a way in which private rows are read, found from transcripts.

Each function looks at the transcripts of one reader and returns the faults of its kind, in words.
A reader runs on four tables: a crowd, a stranger who has nothing in common with it, and both with
a newcomer behind them, who has a hundred times the rows allowed.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, adopt
from dpsynth.models.dpsgd.optimizer import MARGIN
from dpsynth.policy import Policy
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    KeyCounts,
    LaplaceCounts,
    PoissonSgd,
    TopChoice,
)
from dpsynth.privacy.discovery_events import MASS

from .private_readers import Office, PrivateReader, World
from .transcript import Call, Step, Transcript, taken

Twin = Callable[[pytest.MonkeyPatch], None]
SLACK = 1 + 1e-9
DRAWN_PARTS = "drawn parts"
"""Of batches: a reader goes without comparing what is drawn anew for each batch."""
NOT_SUMS = ("ask", "departures", "link_counts", "noisy_votes", "select_codes", "key_counts")
"""Mechanisms whose exact answer is not a sum over units; what they are given is compared."""


@dataclass(frozen=True, eq=False)
class Recording:
    """What one run let out, and its transcript."""

    released: dict[str, Any]
    transcript: Transcript
    plans: tuple[list[dict[str, Any]], ...]
    statuses: tuple[str, ...]
    reader: PrivateReader

    @property
    def calls(self) -> list[Call]:
        """Of mechanisms that let something out of private rows."""
        return [one for one in self.transcript.calls if not one.made_up]

    @property
    def steps(self) -> list[Step]:
        """Private steps of networks on private rows."""
        return [one for one in self.transcript.steps if not one.made_up]


Recordings = Mapping[str, Recording]
ALL = ("crowd", "stranger", "crowd joined", "stranger joined", "by coins", "reordered")
"""Everyone is in each step of a network, but where units come in by their coins."""


class Desk:
    """Runs readers in an office of their own, each once for each table."""

    def __init__(self, folder: Path, ledger: Path) -> None:
        """Work in a folder, with copies of a ledger that holds nothing."""
        self.folder, self.ledger, self.count = folder, ledger, 0

    def office(self, reader: PrivateReader, patch: pytest.MonkeyPatch) -> Office:
        """Open an office in a folder of its own."""
        self.count += 1
        folder = self.folder / f"office{self.count}"
        folder.mkdir()
        book = None
        if reader.datasets:
            shutil.copyfile(self.ledger, folder / "ledger.sqlite")
            book = Ledger(folder / "ledger.sqlite")
        return Office(book, folder, patch, reader.datasets)

    def recorded(
        self, reader: PrivateReader, patch: pytest.MonkeyPatch, which: tuple[str, ...] = ALL
    ) -> dict[str, Recording]:
        """Run a reader on these tables."""
        world = reader.world()
        found: dict[str, Recording] = {}
        for name in which:
            if name == "by coins" and not found["crowd"].steps:
                continue
            if name == "reordered" and world.reordered is None:
                continue
            found[name] = self._recorded(reader, patch, world, name)
        return found

    def _recorded(
        self, reader: PrivateReader, patch: pytest.MonkeyPatch, world: World, name: str
    ) -> Recording:
        tables = getattr(world, {"by coins": "crowd"}.get(name, name.split()[0]))
        joined = name.endswith("joined")
        tables = world.joined(tables) if joined else tables
        frames = list(tables.values()) if isinstance(tables, Mapping) else [tables]
        office = self.office(reader, patch)
        transcript = Transcript(office.ledger, frames, everyone=name != "by coins")
        with taken(transcript) as said:
            released = reader.run(tables, office)
        entries = [] if office.ledger is None else office.ledger.entries()
        return Recording(
            scrubbed(released | {"said": said}, [entry.id for entry in entries], office.folder),
            transcript,
            tuple(entry.plan["events"] for entry in entries),
            tuple(entry.status for entry in entries),
            reader,
        )


DROPPED = ("ledger", "second", "other_register", "sha256", "hash", "seconds")


def scrubbed(released: Any, entries: list[str], folder: Path) -> Any:
    """Leave out the entry in the ledger, the folder, the time it took, and digests of these."""
    if isinstance(released, Mapping):
        return {
            key: scrubbed(value, entries, folder)
            for key, value in released.items()
            if key not in DROPPED
        }
    if isinstance(released, list | tuple):
        return [scrubbed(value, entries, folder) for value in released]
    if isinstance(released, bytes):
        with contextlib.suppress(ValueError):
            return scrubbed(json.loads(released.decode()), entries, folder)
    if isinstance(released, bytes | str):
        text = released.decode("latin-1") if isinstance(released, bytes) else released
        for entry in entries:
            text = text.replace(entry, "ENTRY").replace(entry[:12], "ENTRY")
        return text.replace(str(folder), "FOLDER")
    return released


# The kinds ----------------------------------------------------------------------------------------


def passing(runs: Recordings) -> set[str]:
    """Nothing passes the mechanisms: what they let out held fixed, all tables give the same."""
    named = [run for name, run in runs.items() if name in ALL[:4]]
    found = set()
    for run in named[1:]:
        parts = run.released.keys() | named[0].released.keys()
        found |= {
            f"'{part}' follows from private rows past the mechanisms"
            for part in parts
            if run.released.get(part) != named[0].released.get(part)
        }
    return found


def drawn(runs: Recordings) -> set[str]:
    """What was drawn is what enters: units by their coins, noise by its draws, each once."""
    found = set()
    for name, run in runs.items():
        for call in run.calls:
            given = np.concatenate([*call.noise, np.empty(0, np.int64)])
            kept = np.concatenate([*call.entered, np.empty(0, np.int64)])
            if not np.array_equal(given, kept):
                found.add(f"{call.name}: the noise is not what was drawn")
        for step in run.steps:
            found |= _entered(step, runs["crowd"] if name == "by coins" else None, run.reader)
    return found


def _entered(step: Step, everyone: Recording | None, run: PrivateReader) -> set[str]:
    found = set()
    if step.coins is None:
        return {"a step has not one draw of coins"}
    if not np.array_equal(
        step.chosen, np.flatnonzero(step.coins < step.trainer.event.sampling_rate)
    ):
        found.add("a step chose other units than its coins")
    if step.total is None:
        return found | {"units were drawn, and no step was taken with them"}
    if step.normals is None:
        return found | {"a step has not one draw of noise"}
    least = step.trainer.event.noise_multiplier * step.trainer.clipping_norm
    scale = float(step.noise @ step.normals) / float(step.normals @ step.normals)
    if not np.allclose(step.noise, step.normals * scale, atol=1e-4 * least):
        found.add("the noise of a step is not what was drawn")
    if not 1 - 1e-5 < scale / least < 1.01:
        found.add("the noise of a step has another scale")
    if len(step.mask) != len(step.chosen):
        return found | {"other units entered a step than were drawn"}
    if everyone is not None:
        whole = everyone.steps[0]
        for place, unit in enumerate(step.chosen):
            if _rows(step, place, run) != _rows(whole, int(unit), run):
                found.add("other units' rows entered a step than were drawn")
    return found


def _rows(step: Step, place: int, reader: PrivateReader) -> Any:
    """The rows of one unit of a batch that weigh anything, in an order of their own, as bytes.

    Parts that are drawn anew for each batch are left out.
    """
    there = step.mask[place] > 0
    parts = step.batch[:1] if DRAWN_PARTS in reader.without else step.batch
    rows = zip(*(part[place][there] for part in (*parts, step.mask)), strict=True)
    return sorted(b"".join(np.ascontiguousarray(one).tobytes() for one in row) for row in rows)


def noisy(runs: Recordings) -> set[str]:
    """Noise comes from the system's source, and is what the plan says."""
    found = set()
    for run in runs.values():
        found |= {
            f"noise is drawn in {site[0]}, outside of a mechanism" for site in run.transcript.stray
        }
        for call in run.calls:
            scales = [scale for _, scale, _ in call.draws]
            if not scales or not _is_paid(call.event, scales):
                found.add(f"{call.name}: another noise than the plan's")
    return found


def _is_paid(event: Any, scales: list[float]) -> bool:
    if isinstance(event, ChosenHistograms):
        return event.covers(scales)
    scale = getattr(event, "sigma", None) or getattr(event, "scale", None)
    return set(scales) == {scale}


def run_once(runs: Recordings) -> set[str]:
    """Each event of the plan runs exactly once, and none that is not in it."""
    found = set()
    for run in runs.values():
        events = [call.event.to_dict() for call in run.calls]
        trainers = {id(step.trainer): step.trainer.event for step in run.steps}
        events += [event.to_dict() for event in trainers.values()]
        for plan in run.plans:
            for event in plan:
                times = sum(one == event for one in events)
                if times != 1:
                    found.add(f"event '{event['name']}' ran {times} times")
            names = [event["name"] for event in plan]
            found |= {
                f"event '{one['name']}' is not in the plan" for one in events if one not in plan
            } | {f"event '{name}' is twice in the plan" for name in names if names.count(name) > 1}
        for trainer, event in trainers.items():
            steps = sum(id(step.trainer) == trainer for step in run.steps)
            if isinstance(event, PoissonSgd) and steps != event.steps:
                found.add(f"{steps} steps were taken, and {event.steps} are in the plan")
    return found


def capped(runs: Recordings) -> set[str]:
    """A unit with a hundred times the rows allowed moves no answer further than its event says."""
    found, moved = set(), 0.0
    if "crowd joined" not in runs:
        return found
    for name in ("crowd", "stranger"):
        if f"{name} joined" not in runs:
            continue
        for before, after in _pairs(runs[name].calls, runs[f"{name} joined"].calls):
            if before is None or after is None:
                return {"a unit changes which mechanisms run"}
            size = _shift(before, after)
            moved = max(moved, size)
            if size > SLACK:
                found.add(
                    f"{before.name}: a unit moves it {size:.3g} times as far as it is charged"
                )
        for one, other in _pairs(runs[name].steps, runs[f"{name} joined"].steps):
            if one is None or other is None or one.total is None or other.total is None:
                return {"a unit changes how many steps are taken"}
            size = float(np.linalg.norm(other.total - one.total))
            size /= one.trainer.clipping_norm * (1 + MARGIN)
            moved = max(moved, size)
            if size > SLACK:
                found.add(f"a unit moves a step {size:.3g} times as far as it is charged")
    return found if moved > 0 else {"a unit moves nothing: the test is blind"}


def _pairs(one: list[Any], other: list[Any]) -> Iterator[tuple[Any, Any]]:
    return zip_longest(one, other)


def _shift(before: Call, after: Call) -> float:
    """How far an answer moves, over what its event is charged for."""
    event = before.event
    if isinstance(event, CodeDiscovery | KeyCounts):
        return _listed_shift(before, after)
    one, other = before.moved, after.moved
    if one.shape != other.shape:
        return float("inf")
    shift = np.abs(other - one)
    if isinstance(event, TopChoice):
        return float(shift.max(initial=0.0) * event.scale / event.sensitivity)
    if isinstance(event, LaplaceCounts):
        return float(shift.sum() * event.scale / event.rows_per_unit)
    return float(np.linalg.norm(shift)) / event.mu()


def _listed_shift(before: Call, after: Call) -> float:
    """The same for counts by keys, whose numbers follow from who is there."""
    counts = [
        np.sort(call.exact[-1]) if call.exact else np.empty(0, np.int64) for call in (before, after)
    ]
    values = np.unique(np.concatenate(counts))
    times = [np.array([(part == value).sum() for value in values]) for part in counts]
    gone = int(np.maximum(times[0] - times[1], 0).sum())
    come = np.repeat(values, np.maximum(times[1] - times[0], 0))
    event: Any = before.event
    if isinstance(event, CodeDiscovery):
        weights = float(np.linalg.norm(come)) if not gone else 0.0
        return max(len(come) / event.most_codes, weights / MASS)
    return len(come) / event.rows_per_unit


def apart(runs: Recordings) -> set[str]:
    """What a unit adds does not depend on who else is there, and changes nobody else."""
    found = set() if "reordered" not in runs else _reordered(runs["crowd"], runs["reordered"])
    if not runs.keys() >= set(ALL[:4]):
        return found
    for one in zip(*(runs[name].calls for name in ALL[:4]), strict=False):
        found |= _added_to(*one)
    for steps in zip(*(runs[name].steps for name in ALL[:4]), strict=False):
        found |= _added_to_step(*steps, runs["crowd"].reader)
    return found


def _added_to(crowd: Call, stranger: Call, joined: Call, other: Call) -> set[str]:
    pairs = (crowd, joined), (stranger, other)
    if crowd.name == "noisy_votes":
        changed = [(a.arguments[0] != b.arguments[0]).any(axis=1).sum() for a, b in pairs]
        several = max(changed) > 1
        return {"noisy_votes: a unit changes the votes of several teachers"} if several else set()
    if crowd.name in ("ask", "departures"):
        before, after, single = (_units(call) for call in (crowd, joined, other))
        same = after == [*before, single[-1]]
        return set() if same else {f"{crowd.name}: rows of a unit depend on other units"}
    if crowd.name in NOT_SUMS:
        return set()
    one, two = ([b - a for a, b in zip(x.exact, y.exact, strict=True)] for x, y in pairs)
    same = all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    return set() if same else {f"{crowd.name}: what a unit adds depends on other units"}


def _added_to_step(
    crowd: Step, stranger: Step, joined: Step, other: Step, reader: PrivateReader
) -> set[str]:
    found = set()
    units = [
        [_rows(step, place, reader) for place in range(len(step.mask))]
        for step in (crowd, joined, stranger, other)
    ]
    ours, theirs = (_added(*pair) for pair in (units[:2], units[2:]))
    if ours is None or ours != theirs:
        found.add("the rows of a unit in a step depend on other units")
    if DRAWN_PARTS not in reader.without:
        one, two = joined.total - crowd.total, other.total - stranger.total
        if not np.allclose(one, two, atol=1e-4 * crowd.trainer.clipping_norm):
            found.add("what a unit adds to a step depends on other units")
    return found


def _reordered(before: Recording, after: Recording) -> set[str]:
    found = set()
    for one, other in _pairs(before.calls, after.calls):
        parts = [
            [np.sort(part) for part in call.exact] if call.name in NOT_SUMS else call.exact
            for call in (one, other)
        ]
        if not all(np.array_equal(a, b) for a, b in zip(*parts, strict=True)):
            found.add(f"{one.name}: it depends on the order of the table")
    return found


def _added(before: list[Any], after: list[Any]) -> Any:
    """The unit that is there afterwards and not before; None where others are not as they were."""
    rest = list(after)
    for unit in before:
        if unit not in rest:
            return None
        rest.remove(unit)
    return rest[0] if len(rest) == 1 else None


def _units(call: Call) -> list[list[bytes]]:
    """The rows of each unit of the cohort that a mechanism was given, in an order of their own."""
    cohort = call.arguments[0]
    return [
        sorted(row.tobytes() for row in codes[mask])
        for codes, mask in zip(cohort.codes, cohort.mask, strict=True)
    ]


def charged(runs: Recordings) -> set[str]:
    """The ledger is charged before the first read, and its entries are closed."""
    found = set()
    for run in runs.values():
        unpaid = {place for place, _ in run.transcript.unpaid} - run.reader.looks.keys()
        found |= {f"rows are read in {place} before the charge" for place in unpaid}
        if set(run.statuses) - {"charged"}:
            found.add("an entry stays open")
    return found


def policed(desk: Desk, reader: PrivateReader, patch: pytest.MonkeyPatch) -> set[str]:
    """The policy is kept for each dataset that pays, and nothing is read when it refuses."""
    found = set()
    for place in range(len(reader.datasets)):
        office = desk.office(reader, patch)
        assert office.ledger is not None
        adopt(office.ledger, _policy(1.0 if len(reader.datasets) == 1 else 2.5))
        world = reader.world()
        if len(reader.datasets) > 1:
            names = tuple(
                name if n == place else f"another-{n}" for n, name in enumerate(reader.datasets)
            )
            first = Office(office.ledger, office.folder, patch, names)
            with taken(Transcript(office.ledger, [])):
                reader.run(world.crowd, first)
        frames = list(world.crowd.values()) if isinstance(world.crowd, Mapping) else [world.crowd]
        transcript = Transcript(office.ledger, frames)
        transcript.charged = False
        with taken(transcript):
            try:
                reader.run(world.crowd, office)
                found.add(f"the policy of dataset {place + 1} is not kept")
            except BudgetError:
                if transcript.reads or any(not call.made_up for call in transcript.calls):
                    found.add("rows are read although the policy refuses")
    return found


def _policy(epsilon: float) -> Policy:
    caps = {"total": {"epsilon": epsilon, "basis": "test"}}
    return Policy.from_dict({"dpsynth_policy": 1, "name": "t", "delta": 1e-3, "caps": caps}, "test")


KINDS: dict[str, Callable[[Recordings], set[str]]] = {
    "passing": passing,
    "drawn": drawn,
    "noisy": noisy,
    "run once": run_once,
    "capped": capped,
    "apart": apart,
    "charged": charged,
}
"""By name: a name in `PrivateReader.without` leaves one out."""


@contextmanager
def prepared(reader: PrivateReader, *twins: Twin) -> Iterator[pytest.MonkeyPatch]:
    """Shorten a reader, and break it as twins do."""
    with pytest.MonkeyPatch.context() as patch:
        reader.prepare(patch)
        for twin in twins:
            twin(patch)
        yield patch


def faults(runs: Recordings, reader: PrivateReader) -> set[str]:
    """All faults of a reader."""
    return {
        fault for kind, look in KINDS.items() if kind not in reader.without for fault in look(runs)
    }
