"""Public gates: what must hold of a release, judged from artifact and synthetic table alone.

Audits count, as they were made on synthetic rows. Nothing of the source is looked at, so the
verdicts may be published with the bundle. A gate that does not stop a release informs: whether its
figure is acceptable is for the office's policy.

The decision on a release: public gates stop it or not, a policy may ask for more, a person less.

A gate that the office's policy requires stops a release even where it would only inform. An
override lets gates pass that judge evidence; it is refused where there is nothing to override, so
that none travels along unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from dpsynth._util.formatting import shown
from dpsynth.bundle.format import Audits
from dpsynth.bundle.gates.profile import Profile
from dpsynth.certificate import Certificate, Overridden, Override
from dpsynth.certificate.charge import OVERRIDABLE
from dpsynth.errors import BudgetError, DpsynthError, GateError, InputError
from dpsynth.privacy import Event, reserved
from dpsynth.privacy import epsilon as composed
from dpsynth.schema import Rule, with_needs

MAX_EPSILON = 10.0
OF_TABLES = ("cells", "rules", "audit", "quality", "constant")
"""Keys of the gates that judge synthetic tables and their training; statistics have neither."""
NOT_AUDITED = "not audited"
_NAMED = 5  # failures of audits
_TOLERANCE = 1e-3  # relative; versions of the accountant differ by less


@dataclass(frozen=True)
class GateResult:
    """What a gate found.

    Attributes:
        key: by which scripts know the gate.
        title: what must hold.
        passed: whether it does.
        value: the figure that was judged.
        limit: what it may be at most.
        reason: why this limit.
        stops: whether a failed gate stops the release; one that does not informs.
        detail: names of what was found, if any.
    """

    key: str
    title: str
    passed: bool
    value: float
    limit: float
    reason: str
    stops: bool = True
    detail: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Give the verdict in JSON types."""
        return asdict(self)


def judge(
    certificate: Certificate,
    profiles: Sequence[Profile],
    audits: Audits | None = None,
    *,
    measured: bool = False,
    condition: str | None = None,
    stamps: Sequence[str] = (),
    most_epsilon: float = MAX_EPSILON,
) -> tuple[GateResult, ...]:
    """Judge a run that is to be released, and the tables that were drawn from it.

    Args:
        certificate: of the run.
        profiles: of each synthetic table.
        audits: of the run, on synthetic rows; None if none was made.
        measured: whether the quality figures that the plan paid for go along.
        condition: the rows were drawn under it, if any; what it fixes is no dead column.
        stamps: of the run, and reasons why it may not be released.
        most_epsilon: above this, the page says that epsilon alone promises almost nothing.
    """
    return (
        _cells(profiles),
        _rules(profiles),
        _accounted(certificate),
        _unstamped(certificate, stamps),
        _audited(audits),
        *([] if reserved(certificate.events) is None else [_measured(measured)]),
        _epsilon(certificate, most_epsilon),
        _alive(profiles, condition),
    )


def judge_statistics(certificate: Certificate, stamps: Sequence[str]) -> tuple[GateResult, ...]:
    """Judge statistics that are to be released, by the gates that need no synthetic table."""
    return (
        _accounted(certificate),
        _unstamped(certificate, stamps),
        _epsilon(certificate, MAX_EPSILON),
    )


def _cells(profiles: Sequence[Profile]) -> GateResult:
    columns = [(one, column) for one in profiles for column in one.columns]
    strange = [(one, column) for one, column in columns if column.strange]
    cells = sum(column.rows for _, column in columns)
    share = sum(column.strange for _, column in strange) / cells if cells else 1.0
    return GateResult(
        "cells",
        "Every cell has a value that the schema allows",
        share == 0,
        share,
        0.0,
        "the generator writes no cell outside the declared types, bounds and categories, so such a "
        "cell came from somewhere else",
        detail=", ".join(one.named(column.column.name) for one, column in strange),
    )


def _rules(profiles: Sequence[Profile]) -> GateResult:
    broken = [(one, rule) for one in profiles for rule in one.rules if rule.broken]
    worst = max((rule.broken / one.rows for one, rule in broken), default=0.0)
    linked = any(one.table for one in profiles)
    follows, rows = ("patient", "rows or patients") if linked else ("row", "rows")
    return GateResult(
        "rules",
        f"Every {follows} follows the declared rules",
        worst == 0,
        worst,
        0.0,
        f"the figure is the share of {rows} that break the rule broken most often; an impossible "
        f"record misleads the people who use the table{'s' if linked else ''}",
        detail="; ".join(
            f"{one.table}: {rule.text}" if one.table else rule.text for one, rule in broken
        ),
    )


def _accounted(certificate: Certificate) -> GateResult:
    """Compose the events anew; the stated figure is shown, as the accountant's last digits vary."""
    stated, limit = certificate.composed_epsilon, certificate.epsilon
    cost = _composed(certificate.events, certificate.delta)
    within = cost is not None and cost <= limit * (1 + 1e-9) and stated <= limit
    near = cost is not None and abs(cost - stated) <= _TOLERANCE * max(cost, 1e-6)
    return GateResult(
        "accounting",
        "The events in the certificate cost no more epsilon than it states",
        within and near,
        stated,
        limit,
        "epsilon is computed again from the noise of every event; the stated epsilon must not be "
        "smaller",
    )


@lru_cache(maxsize=8)
def _composed(events: tuple[Event, ...], delta: float) -> float | None:
    try:
        return composed(events, delta)
    except (DpsynthError, ArithmeticError, ValueError, MemoryError):
        return None


def _unstamped(certificate: Certificate, stamps: Sequence[str]) -> GateResult:
    all_stamps = list(stamps)
    if certificate.ledger is None and "no-ledger" not in all_stamps:
        all_stamps.append("no-ledger")
    return GateResult(
        "stamps",
        "The run has no stamp that forbids its release",
        not all_stamps,
        float(len(all_stamps)),
        0.0,
        "a fit that no ledger counts, or whose noise can be drawn again, protects nobody once it "
        "is released",
        detail=", ".join(all_stamps),
    )


def _audited(audits: Audits | None) -> GateResult:
    """Count what speaks against the run, in all audits; a run without any is only pointed out."""
    if audits is None:
        return GateResult(
            "audit",
            "The training was attacked on synthetic rows",
            False,
            1.0,
            0.0,
            "an attack can show that a program breaks its guarantee; none was run here",
            stops=False,
            detail=NOT_AUDITED,
        )
    failures = [
        f"audit {place}: {shown(failure)}"
        for place, audit in enumerate(audits.audits, start=1)
        for failure in audit.failures
    ]
    more = [f"{len(failures) - _NAMED} more"] if len(failures) > _NAMED else []
    return GateResult(
        "audit",
        "No audit on synthetic rows refuted the claim, and the controls of these audits, which use "
        "invented rows, worked",
        not failures,
        float(len(failures)),
        0.0,
        "a refuted claim cannot be relied on, and an attack that misses a planted leak shows "
        "nothing",
        detail="; ".join([*failures[:_NAMED], *more]),
    )


def _measured(measured: bool) -> GateResult:
    """Ask for the figures wherever they were paid for: that they are absent could tell of a row."""
    return GateResult(
        "quality",
        "The quality figures that the budget paid for are published",
        measured,
        float(not measured),
        0.0,
        "if their publication depended on the real rows, it would reveal something about the rows "
        "that no budget paid for",
        detail="" if measured else "not published",
    )


def _epsilon(certificate: Certificate, maximum: float) -> GateResult:
    return GateResult(
        "epsilon",
        f"Epsilon is at most {maximum:g}",
        certificate.epsilon <= maximum,
        certificate.epsilon,
        maximum,
        "above this limit the bound alone promises almost nothing; the office's policy decides",
        stops=False,
    )


def _alive(profiles: Sequence[Profile], condition: str | None) -> GateResult:
    meant = () if condition is None else _fixed(profiles, Rule.parse(condition).columns)
    constant = [
        one.named(column.column.name)
        for one in profiles
        for column in one.columns
        if column.constant and column.column.name not in meant
    ]
    return GateResult(
        "constant",
        "No column has only one value where the schema declares several",
        not constant,
        float(len(constant)),
        0.0,
        "such a column carries no information; rare values may have been lost in the noise"
        + (" (columns that the condition fixes are not counted)" if meant else ""),
        stops=False,
        detail=", ".join(constant),
    )


def _fixed(profiles: Sequence[Profile], named: Sequence[str]) -> frozenset[str]:
    """Return the columns that a condition names, and those that follow from these."""
    columns = {one.column.name: one.column for profile in profiles for one in profile.columns}
    return frozenset(name for name in columns if with_needs([name], columns) & set(named))


def decide(
    verdicts: Sequence[GateResult], required: Sequence[str], override: Override | None
) -> tuple[Overridden, ...]:
    """Let a release pass, or refuse it.

    Args:
        verdicts: of the public gates.
        required: keys of the gates that the office's policy requires.
        override: who answers for those that stop it, and why; None if nobody does.

    Returns:
        The gates that were overridden, for the certificate.

    Raises:
        BudgetError: the policy requires a gate that there is no verdict of.
        GateError: a gate stops the release.
        InputError: there is nothing to override.
    """
    if unknown := sorted(set(required) - {verdict.key for verdict in verdicts}):
        raise BudgetError(
            f"the policy requires gates that were not run on this run: {', '.join(unknown)}"
        )
    stopping = [one for one in verdicts if not one.passed and (one.stops or one.key in required)]
    firm = [one for one in stopping if one.key not in OVERRIDABLE]
    if firm:
        raise GateError(
            f"the release is stopped by checks that did not pass: {_named(firm)}; they cannot be "
            "overridden"
        )
    if stopping and override is None:
        raise GateError(
            f"the release is stopped by checks that did not pass: {_named(stopping)}; the person "
            "responsible can override them, and the bundle will show it: --override REASON --by "
            "NAME"
        )
    if override is None:
        return ()
    if not stopping:
        raise InputError("no gate stops this release, so leave out --override and --by")
    return override.of(one.key for one in stopping)


def disputes(verdicts: Sequence[GateResult], overridden: Sequence[Overridden]) -> list[str]:
    """List what speaks against a bundle: gates that stop it, and overrides of gates that passed.

    A bundle does not tell its office's policy; a gate that only informs may have been overridden.
    """
    failed = {verdict.key: verdict for verdict in verdicts if not verdict.passed}
    excused = {one.gate for one in overridden}
    stopping = [one for one in failed.values() if one.stops and one.key not in excused]
    messages = [
        f"should have been stopped by a check that did not pass: {_named([one])}"
        for one in stopping
    ]
    return messages + [
        f"overrides gate '{gate}', which passed" for gate in sorted(excused - set(failed))
    ]


def _named(verdicts: Sequence[GateResult]) -> str:
    return "; ".join(f"'{one.title}'" + f" ({one.detail})" * bool(one.detail) for one in verdicts)
