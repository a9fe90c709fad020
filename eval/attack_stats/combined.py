"""Several attacks on the same people: one finding, one power, one figure for all of them.

Who tries several attacks and reports the best finds something sooner or later. So each is judged
at `ALARM` divided by their number (Bonferroni): of a table that leaks nothing, one of them is found
with probability `ALARM` at most, however they depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.eval.attack_stats.result import ALARM, SURELY, Finding, Power
from dpsynth.eval.attack_stats.success import Success, percent, told
from dpsynth.eval.core import Estimate
from dpsynth.eval.core.estimate import LEVEL


@dataclass(frozen=True)
class AttackSuccess:
    """One of the attacks.

    Attributes:
        title: by which a sentence calls it.
        success: what it reached.
    """

    title: str
    success: Success


@dataclass(frozen=True)
class CombinedAttacks:
    """The attacks that a finding rests on.

    Attributes:
        each: at least one.
    """

    each: tuple[AttackSuccess, ...]

    @property
    def strongest(self) -> AttackSuccess:
        """Return the one whose success chance explains least; the first of equal ones."""
        return min(self.each, key=lambda one: one.success.chance)

    @property
    def excess(self) -> Estimate:
        """Return the strongest one's success beyond control.

        The interval is that of `Success.excess`, at a level that holds for all attacks at once.
        """
        return self.strongest.success.beyond((1 - LEVEL) / 2 / len(self.each))

    def finding(self, key: str, title: str, event: str) -> Finding:
        """Say whether members are hit more often; ``what`` begins the sentence."""
        success = self.strongest.success
        significant = success.chance < ALARM / len(self.each)
        verb = "more than chance allows" if significant else "no more than chance allows"
        note = f", the most telling of {len(self.each)} attacks" if len(self.each) > 1 else ""
        sentence = (
            f"{event} for {told(success.members)} of those in the data and "
            f"{told(success.controls)} of others ({self.strongest.title}{note}): {verb}"
        )
        chance = min(1.0, success.chance * len(self.each))
        return Finding(key, title, significant, sentence, chance)

    def power(self, key: str) -> Power:
        """Say which share would have been seen, whichever of the attacks hits them."""
        alarm = ALARM / len(self.each)
        shares = [one.success.least_seen(alarm) for one in self.each]
        known = [share for share in shares if share is not None]
        if len(known) < len(shares):
            return Power(key, None, "share", "no share of those in the data is sure to be seen")
        subject = "any of the attacks" if len(self.each) > 1 else "the attack"
        sentence = (
            f"would have been seen {SURELY} if {subject} succeeded for "
            f"{percent(max(known))} of those in the data beyond what it does for others"
        )
        return Power(key, max(known), "share", sentence)
