"""The decision on a release: public gates stop it or not, a policy may ask for more, a person less.

A gate that the office's policy requires stops a release even where it would only inform. An
override lets gates pass that judge evidence; it is refused where there is nothing to override, so
that none travels along unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsynth.bundle.gates.public_gates import Verdict
from dpsynth.certificate import Overridden, Override
from dpsynth.certificate.override import OVERRIDABLE
from dpsynth.errors import BudgetError, GateError, InputError


def decide(
    verdicts: Sequence[Verdict], required: Sequence[str], override: Override | None
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


def disputes(verdicts: Sequence[Verdict], overridden: Sequence[Overridden]) -> list[str]:
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


def _named(verdicts: Sequence[Verdict]) -> str:
    return "; ".join(f"'{one.title}'" + f" ({one.detail})" * bool(one.detail) for one in verdicts)
