"""The record of an attack on a synthetic table: what audits, controls and reports know about it.

An attack is one function and one such record. `dpsynth.eval.attacks.registry` lists the records of
dpsynth; another package offers its own as an entry point of the group ``dpsynth.attacks``.

Several attacks on the same people: one finding, one power, one figure for all of them.

Who tries several attacks and reports the best finds something sooner or later. So each is judged
at `ALARM` divided by their number (Bonferroni): of a table that leaks nothing, one of them is found
with probability `ALARM` at most, however they depend on each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.eval.attack_stats.people import People
from dpsynth.eval.attack_stats.result import (
    ALARM,
    SURELY,
    Attack,
    Finding,
    Power,
    Success,
    precise_percent,
    told,
)
from dpsynth.eval.core import Estimate, Tables
from dpsynth.eval.core.estimate import LEVEL

Claim = tuple[float, float]
LEAKING = ("copied", "repeated", "jittered")  # tables of `dpsynth.eval.attacks.controls`
BEFORE, AFTER = "before", "after"  # the attacks on the training, in a report
RESERVED = frozenset(  # keys of parts, stages and measures that are something else
    {"people", "controls", "training", "shadows", "table", "plugins", "shadows_auc"}
    | {"auc", "closer", "distance_ratio", "epsilon", "outliers", "tpr", "unique"}
    | {"training_epsilon_black", "training_epsilon_white", "singling_out_one", "singling_out_many"}
    | {f"copies_{name}" for name in ("rows", "units", "near_rows", "near_units")}
)
KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class PositiveControl:
    """A table that leaks on purpose, in which an attack must succeed.

    Attributes:
        table: its name, one of `LEAKING`.
        finding: key of the finding that must succeed; None if any of the attack's findings may.
            With None the control is left out where the attack made no finding, and where none
            succeeded and no power is known: the people at hand then cannot show a leak.
    """

    table: str
    finding: str | None = None


@dataclass(frozen=True)
class TableAttack:
    """An attack on synthetic tables.

    Attributes:
        key: of its part in ``audit.json``; its findings are called ``key`` or ``key:...``. Lower
            case letters, digits and underscores.
        title: of the attack, in a few words.
        omitted_as: completes "Not attacked: ..." where the attack was not made.
        run: takes tables, people and a source of randomness, in this order, and returns what the
            attack found. With ``uses_claim`` it also takes ``claim=`` (epsilon, delta) or None.
        controls: tables in which it must succeed. Every attack is also played on tables that leak
            nothing, in which it must not.
        section: whether its section stands `BEFORE` or `AFTER` the attacks on the training.
        uses_claim: whether ``run`` takes the claim of the run.
        reports_progress: whether ``run`` takes ``progress=``, which it calls with the fraction
            done, 0 to 1; for attacks that take longer than some seconds.

    Raises:
        ValueError: a key, a control or the section is not of the form above.

    >>> TableAttack("echo", "Echoes", "echoes", run=print).controls
    (PositiveControl(table='repeated', finding=None),)
    """

    key: str
    title: str
    omitted_as: str
    run: Callable[..., Attack]
    controls: tuple[PositiveControl, ...] = (PositiveControl("repeated"),)
    section: str = AFTER
    uses_claim: bool = False
    reports_progress: bool = False

    def __post_init__(self) -> None:
        """Refuse keys that would mix results up."""
        if not KEY.fullmatch(self.key) or self.key in RESERVED:
            raise ValueError(f"an attack's key has up to 40 of a-z, 0-9 and _, not {self.key!r}")
        if not self.controls or {control.table for control in self.controls} - set(LEAKING):
            raise ValueError(f"the controls of {self.key} must name tables among {LEAKING}")
        if any(not self.owns(one.finding) for one in self.controls if one.finding is not None):
            raise ValueError(f"the controls of {self.key} must name findings of {self.key}")
        if self.section not in (BEFORE, AFTER):
            raise ValueError(f"the section of {self.key} must be {BEFORE!r} or {AFTER!r}")

    def owns(self, key: str) -> bool:
        """Whether a finding of this key is one of the attack's.

        >>> echo = TableAttack("echo", "Echoes", "echoes", run=print)
        >>> echo.owns("echo"), echo.owns("echo:loud"), echo.owns("echoes")
        (True, True, False)
        """
        return key == self.key or key.startswith(f"{self.key}:")

    def play(
        self,
        tables: Tables,
        people: People,
        rng: np.random.Generator,
        claim: Claim | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Attack:
        """Attack a table; claim and progress go to attacks that use them."""
        options: dict[str, Any] = {"claim": claim} if self.uses_claim else {}
        if self.reports_progress and progress is not None:
            options["progress"] = progress
        return self.run(tables, people, rng, **options)


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
            f"{precise_percent(max(known))} of those in the data beyond what it does for others"
        )
        return Power(key, max(known), "share", sentence)
