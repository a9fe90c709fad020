"""What canaries showed about a fit: epsilon bounded from below, held against the claim.

Each canary was in by a fair coin, and an attacker scored each. Two numbers come of it that must not
be mixed up with the proof: the epsilon that the guesses refute (`eval.attack_stats.tradeoff`), and
whether they refute the claim itself, that is, the trade-off curve of the plan, at `ALARM`.

The power is measured: a twin of the fit, with the same canaries and so much less noise that it
leaks a known epsilon, says how much of a leak the attack turns into separation of its scores. The
least leak that would refute the claim follows, if the twin's separation reaches so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.formatting import at_most
from dpsynth.eval.attack_stats import (
    Attack,
    Finding,
    GaussianCurve,
    OneRun,
    Power,
    Roc,
    audited,
    chance_of,
    curve_before,
    gaussian_mu,
    numbers_of_guesses,
    possible,
    right,
)
from dpsynth.eval.attack_stats.result import ALARM, SURE, SURELY
from dpsynth.eval.attack_stats.tradeoff import SHARES
from dpsynth.eval.core import Estimate, Measure, PartResult

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TITLES = {
    "black": "Canaries, from what the run keeps (black box)",
    "white": "Canaries, from every noisy release of the fit (white box)",
}
REPEATS = 200  # simulated audits, for the power
FEW = 20  # of them, to choose a number of canaries
MAX_SEPARATION = (
    12.0  # separation of scores, in standard deviations, beyond which all guesses are right
)


@dataclass(frozen=True, eq=False)
class TrainingClaim:
    """What a fit claims: (epsilon, delta), and the curve that its plan accounts for.

    Attributes:
        epsilon: of the certificate.
        delta: of the certificate.
        epsilons: points of the curve.
        deltas: an upper bound of delta at each.
    """

    epsilon: float
    delta: float
    epsilons: Floats
    deltas: Floats

    def refuted(self, canaries: int, right_of: Mapping[int, int]) -> bool:
        """Say whether right guesses, by their number, refute the claim at `ALARM`."""
        fails = ALARM / (2 * len(SHARES))
        before = curve_before(self.epsilons, self.deltas)
        return any(
            chance_of(canaries, r, v, self.epsilon, self.delta) < fails
            or not possible(canaries, r, v, fails, before)
            for r, v in right_of.items()
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """The canaries of one fit, as one attacker scores them.

    Attributes:
        included: which of them were in, ``[m]``.
        scores: higher where one seems to be in, ``[m]``.
    """

    included: Bools
    scores: Floats

    @property
    def roc(self) -> Roc:
        """Return the curve of the canaries that are in against those that are not."""
        return Roc(self.scores[self.included], self.scores[~self.included])

    @property
    def separation(self) -> float:
        """Return by how many standard deviations the two kinds are apart, as their area says."""
        from scipy.special import ndtri

        area = min(self.roc.auc.value, 1 - 1 / len(self.scores) ** 2)
        return float(math.sqrt(2) * ndtri(max(area, 0.5)))

    def right_of(self) -> dict[int, int]:
        """Count right guesses for each number of guesses that is tried."""
        tried = numbers_of_guesses(len(self.scores))
        return {r: right(self.scores, self.included, r) for r in tried}


def training(
    claim: TrainingClaim,
    views: Mapping[str, Scored],
    twins: Mapping[str, Scored],
    twin_epsilon: float,
    about: Mapping[str, Any],
) -> Attack:
    """Judge the canaries of a fit.

    Args:
        claim: of the fit.
        views: ``black`` and ``white``, or one of them.
        twins: the same of the twin; empty where there was none.
        twin_epsilon: what the twin leaks, at the claim's delta.
        about: more for the details: background, model, seconds.
    """
    measures, findings, powers, entries = [], [], [], []
    for view, scored in views.items():
        bound = audited(scored.scores, scored.included, claim.delta)
        refuted = claim.refuted(bound.canaries, scored.right_of())
        measures.append(_measure(view, bound, claim))
        findings.append(_finding(view, bound, claim, refuted))
        powers.append(_power(view, claim, twins.get(view), twin_epsilon))
        entries.append(
            {
                "view": view,
                "title": TITLES[view],
                **scored.roc.to_dict(),
                "guesses": bound.guesses,
                "correct": bound.correct,
                "epsilon": bound.epsilon,
                "curve_guesses": bound.curve_guesses,
                "curve_correct": bound.curve_correct,
                "epsilon_fdp": bound.curve_epsilon,
                "twin": _twin(twins.get(view), twin_epsilon, claim.delta),
            }
        )
    included = next(iter(views.values())).included
    details = {
        **about,
        "claim": {"epsilon": claim.epsilon, "delta": claim.delta},
        "canaries": len(included),
        "included": int(included.sum()),
        "views": entries,
    }
    return Attack(PartResult(tuple(measures), details), tuple(findings), tuple(powers))


def _measure(view: str, bound: OneRun, claim: TrainingClaim) -> Measure:
    return Measure(
        f"training_epsilon_{view}",
        f"Epsilon that canaries prove at least, {view} box",
        Estimate(bound.epsilon, None, None, bound.canaries, reference=claim.epsilon),
        0.0,
        "What guesses about planted patients prove the fit to leak at least, with 95 % confidence, "
        "beside the claim. Above the claim, the code would not do what it says; far below, the "
        "attack is weak or the claim cautious.",
    )


def _finding(view: str, bound: OneRun, claim: TrainingClaim, refuted: bool) -> Finding:
    """Say how many guesses were right, and what that proves; bounds are rounded down."""
    plain, curved = (math.floor(100 * x) / 100 for x in (bound.epsilon, bound.curve_epsilon))
    proof = f"proves epsilon at least {plain:.2f}" if plain > 0 else "proves nothing by itself"
    if curved > 0:
        proof += f" ({curved:.2f} if the trade-off curve is a Gaussian mechanism's)"
    words = "refutes the claim" if refuted else "does not refute the claim"
    sentence = (
        f"{bound.correct} of {bound.guesses} guesses about {bound.canaries} planted patients were "
        f"right, which {proof}, and {words} of epsilon {claim.epsilon:g}"
    )
    if not refuted and not refutable(claim, bound.canaries):
        sentence += f"; {_hopeless(claim, bound.canaries)}"
    return Finding(f"training:{view}", TITLES[view], refuted, sentence)


def refutable(claim: TrainingClaim, canaries: int) -> bool:
    """Say whether so many canaries could refute a claim at all, if every guess were right."""
    return claim.refuted(canaries, {r: r for r in numbers_of_guesses(canaries)})


def _hopeless(claim: TrainingClaim, canaries: int) -> str:
    return (
        f"with {canaries} canaries in one run no attack, however good, could refute epsilon "
        f"{claim.epsilon:g}"
    )


def _power(view: str, claim: TrainingClaim, twin: Scored | None, twin_epsilon: float) -> Power:
    """Say which leak would have refuted the claim, as far as the twin shows it."""
    key = f"training:{view}"
    if twin is None:
        return Power(key, None, "epsilon", "not measured: no twin with a known leak was made")
    if not refutable(claim, len(twin.scores)):
        return Power(key, None, "epsilon", _hopeless(claim, len(twin.scores)))
    needed = separation_needed(claim, len(twin.scores))
    separation, leaked = twin.separation, gaussian_mu(twin_epsilon, claim.delta)
    if not twin.roc.found or separation < needed:
        return Power(
            key,
            None,
            "epsilon",
            f"would not have seen a leak of epsilon {twin_epsilon:.3g} reliably, which a twin of "
            f"the fit had; larger leaks were not tried",
        )
    minimum = GaussianCurve(leaked * needed / separation).epsilon(1.0, claim.delta)
    return Power(
        key,
        minimum,
        "epsilon",
        f"would have refuted the claim {SURELY} if the fit leaked epsilon "
        f"{at_most(minimum)} or more; a twin that leaks {twin_epsilon:.3g} shows how well the "
        "attack sees",
    )


def canaries_would_see(epsilon: float, delta: float, twin_area: float, canaries: int) -> bool:
    """Say whether an attack as sharp as on the twin could refute a claim with so many canaries.

    The claim is taken as that of a Gaussian mechanism, as an audit's document does not hold its
    curve: this chooses a number, and judges nothing.

    Args:
        epsilon: of the claim.
        delta: of the claim.
        twin_area: area under the curve of the twin's scores.
        canaries: how many.
    """
    from scipy.special import ndtri

    mu = gaussian_mu(epsilon, delta)
    epsilons = np.concatenate([[0.0], np.geomspace(0.01, 4 * epsilon + 4, 100)])
    curve = GaussianCurve(mu)
    claim = TrainingClaim(epsilon, delta, epsilons, curve.deltas(1.0, epsilons))
    if not refutable(claim, canaries):
        return False
    separation = math.sqrt(2) * ndtri(min(max(twin_area, 0.5), 1 - 1 / canaries**2))
    return _falls(claim, canaries, FEW)(float(separation))


def separation_needed(claim: TrainingClaim, canaries: int) -> float:
    """Return how far apart scores must be, in deviations, for the claim to fall with `SURE`.

    From simulated audits whose scores are normal with equal deviations, as those of a Gaussian
    mechanism are; of the right guesses, the count that is reached with probability `SURE`.
    """
    falls = _falls(claim, canaries, REPEATS)
    low, high = 0.0, MAX_SEPARATION
    if not falls(high):
        return math.inf
    while high - low > 0.02:
        middle = (low + high) / 2
        low, high = (low, middle) if falls(middle) else (middle, high)
    return high


def _falls(claim: TrainingClaim, canaries: int, audits: int) -> Callable[[float], bool]:
    """Return what says whether a claim falls where scores are so many deviations apart."""
    rng = np.random.default_rng(0)
    included = rng.random((audits, canaries)) < 0.5
    noise = rng.standard_normal((audits, canaries))
    tried = numbers_of_guesses(canaries)

    def falls(apart: float) -> bool:
        scores = noise + apart * included
        counts = {}
        for r in tried:
            each = [right(*pair, r) for pair in zip(scores, included, strict=True)]
            counts[r] = int(np.quantile(each, 1 - SURE, method="lower"))
        return claim.refuted(canaries, counts)

    return falls


def _twin(twin: Scored | None, epsilon: float, delta: float) -> dict[str, Any] | None:
    if twin is None:
        return None
    bound = audited(twin.scores, twin.included, delta)
    return {"epsilon": epsilon, "auc": twin.roc.auc.to_dict(), "proved": bound.epsilon}
