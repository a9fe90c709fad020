"""The event of choosing the best k of several candidates by their scores, and what it costs.

**The mechanism.** Candidates have whole-number scores u(c) of the cohort, of which one unit moves
each by at most D. To every score OpenDP adds Gumbel noise of scale b, and names the k candidates
with the largest noisy scores, in that order (``make_noisy_top_k``). That is the exponential
mechanism run k times, each time without those already chosen (Durfee and Rogers, Practical
Differentially Private Top-k Selection with Pay-what-you-get Composition, NeurIPS 2019, lemma 4.2).

**What a choice costs.** P(c) is proportional to exp(u(c) / b). Let v(c) be the score with one unit
more. Where scores are **monotone** (a unit can only raise them, or can only lower them), all
differences v(c) - u(c) lie in one interval of length D; in general they lie in [-D, D], of length
2 D. Call the length R. P'(c) / P(c) = exp((v(c) - u(c)) / b) / z, where z, the mean of these
factors under P, lies between the least and the largest of them. So the ratio lies within
[exp(-R / b), exp(R / b)]: a choice is e-private with e = R / b, and so is each of the k, given
those before. A count of units with a property is monotone with D = 1. A difference of two counts, a
correlation, or AIM's distance of a marginal to a model is not, and to charge it as if it were would
claim half of what is spent.

**Replacing a unit.** Where one unit takes another's place, changes of scores lie in [-D, D] if a
unit can only raise them, and in [-2 D, 2 D] otherwise: twice the range, and so twice the epsilon of
each choice (`substituted`).

**In a plan.** A pair of laws whose ratio is within exp(+-e) is dominated by randomised response
with parameter e (Kairouz, Oh, Viswanath, The Composition Theorem for Differential Privacy, ICML
2015, theorem 3.4 and its proof), which is composed k times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy._validate import (
    NoisyEvent,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)
from dpsynth.privacy.losses.loss import PURE, Loss

MAX_CANDIDATES = 1_000_000
_MAX_EPSILON = 50.0  # of one choice


@dataclass(frozen=True)
class TopChoice(NoisyEvent):
    """The k best of several candidates, by the exponential mechanism.

    Attributes:
        name: the event's name within its plan.
        chosen: k, how many candidates are named.
        candidates: how many there are: public.
        sensitivity: D, how far one unit moves a score at most.
        monotone: whether a unit that is added can only raise scores.
        scale: b, of the Gumbel noise on a score; ``UNDECIDED`` in a share.

    Example:
        >>> event = TopChoice("diagnoses", 10, 700, sensitivity=1, monotone=True, scale=20.0)
        >>> event.epsilon_each
        0.05
    """

    kind = "top_choice"
    noise_field = "scale"
    chosen: int
    candidates: int
    sensitivity: int
    monotone: bool
    scale: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "candidates", self.candidates, maximum=MAX_CANDIDATES)
        require_count(self.name, "chosen", self.chosen, maximum=self.candidates)
        require_count(self.name, "sensitivity", self.sensitivity, maximum=2**31)
        if not isinstance(self.monotone, bool):
            raise InputError(f"event '{self.name}': monotone must be true or false")
        require_noise(self.name, "scale", self.scale)

    @property
    def range(self) -> int:
        """R: the length of an interval that holds all changes of scores by one unit."""
        return self.sensitivity if self.monotone else 2 * self.sensitivity

    @property
    def replacement(self) -> float:
        """How much more a choice costs where one unit takes another's place."""
        return 2.0

    def substituted(self) -> TopChoice:
        """Return the choice that costs what this one does where a unit takes another's place."""
        if self.monotone:
            return replace(self, monotone=False)
        return replace(self, sensitivity=2 * self.sensitivity)

    @property
    def epsilon_each(self) -> float:
        """Epsilon of one choice, given those before it."""
        return self.range / self.scale

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves a score."""
        return self.scale / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: randomised response, once for each choice."""
        return Loss(PURE, self.epsilon_each, self.chosen)

    def mu(self) -> float:
        """GDP parameter of Gaussian noise that a composition charges about the same."""
        return self.epsilon_each * math.sqrt(self.chosen)

    def with_mu(self, mu: float) -> TopChoice:
        """Return the event with the noise that has this parameter, rounded up."""
        require_mu(self.name, mu)
        each = min(mu / math.sqrt(self.chosen), _MAX_EPSILON)
        return replace(self, scale=round_up(self.range / each))
