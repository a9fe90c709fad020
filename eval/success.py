"""Success over control: how much oftener an attack hits people in the data than other people.

What is true of the population can be guessed about everybody, also about people who were never in
the data. Only what goes beyond is the release's doing: (hits among members - hits among controls) /
(1 - hits among controls), as in Giomi et al., A Unified Framework for Quantifying Privacy Risk in
Synthetic Data (Anonymeter), arXiv 2211.10459, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dpsynth.eval.attack import ALARM, SURE, Finding, Power
from dpsynth.eval.estimate import LEVEL, Estimate
from dpsynth.eval.rates import Rate


@dataclass(frozen=True)
class Success:
    """Hits of one attack among people in the data, and among as many others.

    Attributes:
        members: one trial for each person in the data.
        controls: one trial for each person who is not.
    """

    members: Rate
    controls: Rate

    @property
    def excess(self) -> Estimate:
        """Return the success beyond control, from -inf to 1, with its interval.

        The interval is Newcombe's of a difference (Statistics in Medicine 17, 1998, method 10, with
        the exact bounds of Clopper and Pearson instead of Wilson's), divided by the same.
        """
        p, q = self.members.value, self.controls.value
        fails = (1 - LEVEL) / 2
        (p_low, p_high), (q_low, q_high) = self.members.bounds(fails), self.controls.bounds(fails)
        room = max(1 - q, 1e-9)
        low = (p - q - math.hypot(p - p_low, q_high - q)) / room
        high = (p - q + math.hypot(p_high - p, q - q_low)) / room
        value = (p - q) / room
        return Estimate(value, low, min(high, 1.0), self.members.runs, reference=0.0)

    @property
    def chance(self) -> float:
        """Return how likely so many hits among members are if membership makes no difference.

        Fisher's exact test, one-sided: given all hits, how many fall on members is hypergeometric.
        """
        from scipy.stats import hypergeom

        people = self.members.runs + self.controls.runs
        hits = self.members.hits + self.controls.hits
        return float(hypergeom.sf(self.members.hits - 1, people, hits, self.members.runs))

    def finding(self, key: str, title: str, what: str) -> Finding:
        """Say whether members are hit oftener; ``what`` completes "of patients in the data"."""
        found = self.chance < ALARM
        verb = "more than chance allows" if found else "no more than chance allows"
        sentence = (
            f"{what} for {self.members.value:.2%} of those in the data and "
            f"{self.controls.value:.2%} of others: {verb}"
        )
        return Finding(key, title, found, sentence)

    def power(self, key: str) -> Power:
        """Say which share of members the attack could hit beyond control and still go unseen.

        A normal approximation at the controls' rate, with at least one hit.
        """
        from scipy.special import ndtri

        n, m = self.members.runs, self.controls.runs
        rate = max(self.controls.value, 1 / m)
        spread = math.sqrt(rate * (1 - min(rate, 1 - 1 / m)) * (1 / n + 1 / m))
        least = (float(ndtri(1 - ALARM)) + float(ndtri(SURE))) * spread / max(1 - rate, 1 / m)
        if least >= 1:
            return Power(key, None, "share", "no share of members would have been seen")
        sentence = (
            f"would have been seen with probability {SURE:.0%} if it succeeded for {least:.2%} of "
            "those in the data beyond what it does for others"
        )
        return Power(key, least, "share", sentence)

    def to_dict(self) -> dict[str, Any]:
        """Give both rates and the excess in JSON types."""
        return {
            "members": described(self.members),
            "controls": described(self.controls),
            "excess": self.excess.to_dict(),
        }


def described(rate: Rate) -> dict[str, Any]:
    """Give a rate with its interval in JSON types."""
    low, high = rate.bounds((1 - LEVEL) / 2)
    return {"hits": rate.hits, "runs": rate.runs, "value": rate.value, "low": low, "high": high}
