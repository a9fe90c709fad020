"""An audit of the training that could see no leak is made again, with more canaries.

The rule: an audit is made again where an attack was blind (no leak would have made it refute the
claim) and some larger number of canaries would have made it see, as far as the twin shows. The
number is the least of four times as many, sixteen times as many, and so on, up to as many as an
audit takes. At most so many times as the caller allows, once by default.

Why the statistics stay valid. Whether an audit is repeated follows from the claim, the number of
canaries and the *twin*, a fit of its own with its own coins and its own noise, whose leak is known.
The guesses about the fit itself are not looked at. They are independent of the twin given the
canaries, so choosing by the twin is not choosing by the result:

- The figures are those of the last audit alone, which has fresh canaries, coins and noise. What it
  proves, it proves with its stated confidence, however many came before.
- A refuted claim counts in whichever audit it was refuted, so that no leak is lost. Each of them
  refutes a true claim with probability `ALARM` at most, so all of t audits together with t times
  that (union bound).

Every audit is kept beside the run and published, blind ones as well, so a reader sees all of them.
All of it is made of rows that are drawn from the run: nothing here reads a private row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dpsynth._version import __version__
from dpsynth.assessment.training_audit import (
    CANARIES,
    MAX_CANARIES,
    audited_training,
    check_canaries,
)
from dpsynth.bundle.format import append_audit, read_audits
from dpsynth.bundle.format.audits import PublicAudit
from dpsynth.certificate import Certificate
from dpsynth.errors import InputError
from dpsynth.eval import Progress
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.attacks import Control, canaries_would_see
from dpsynth.synthesis import Run, run_digest

FACTOR = 4  # times as many canaries
Play = Callable[[int, int], Attack]  # number of canaries, number of the try
MAX_REPEATS = 5
Needed = Callable[[Attack, int], int | None]  # what an audit with so many canaries calls for


@dataclass(frozen=True)
class Trained:
    """The run whose training is audited.

    Attributes:
        folder: of the run; its ``audit.json`` gets the result.
        canaries: how many are planted.
        repeats: how often it is made again with more canaries where it could see no leak; 0 for
            never. See `repeated_audits`.
    """

    folder: Path
    canaries: int = CANARIES
    repeats: int = 1

    def check(self) -> None:
        """Refuse what could not be kept, before anything is attacked.

        Raises:
            InputError: there are too few canaries or too many, the run claims nothing, or its
                folder cannot be written to.
            ArtifactError: the run is damaged, or its earlier audits are.
        """
        check_canaries(self.canaries)
        if isinstance(self.repeats, bool) or not 0 <= self.repeats <= MAX_REPEATS:
            raise InputError(f"repeats must be 0 to {MAX_REPEATS}, not {self.repeats}")
        run, audits = Run.load(self.folder), read_audits(self.folder)
        if run.certificate is None:
            raise InputError(
                "the run was fitted without privacy: it claims nothing that canaries could refute; "
                "leave the training out (--no-training)"
            )
        if audits is not None and audits.run_sha256 != run_digest(self.folder):
            raise InputError(
                f"{self.folder}/audit.json belongs to another run; move it away, then audit again"
            )
        if audits is not None:
            certificate = Certificate.from_dict(run.certificate)
            if problems := audits.problems(certificate, run.model):
                raise InputError(
                    f"{self.folder}/audit.json was changed: {problems[0]}; take the file away, "
                    "then audit again"
                )
        if not os.access(self.folder, os.W_OK):
            raise InputError(f"{self.folder} cannot be written to; its audit is kept there")


def repeated(play: Play, count: int, repeats: int, needed: Needed) -> list[Attack]:
    """Audit, and audit again while an attack is blind and more canaries help.

    Args:
        play: makes an audit.
        count: canaries of the first one.
        repeats: how often it may be made again.
        needed: says with how many canaries; None to stop.

    Returns:
        Every audit that was made, in order.
    """
    tries = [play(count, 0)]
    for place in range(1, repeats + 1):
        more = needed(tries[-1], count)
        if more is None:
            break
        count = more
        tries.append(play(count, place))
    return tries


def canaries_needed(attack: Attack, count: int, largest: int) -> int | None:
    """Return the number of canaries with which a blind attack would see; None if there is none.

    It looks at powers, the claim and the twin, and never at what was guessed of the fit.
    """
    blind = {power.key for power in attack.powers if power.least is None}
    details = attack.part.details
    views = [view for view in details["views"] if f"training:{view['view']}" in blind]
    choices = [min(largest, more) for more in _ladder(count, largest)]
    for more in choices:
        if any(_sees(view, details["claim"], more) for view in views):
            return more
    return None


def _ladder(count: int, largest: int) -> Iterable[int]:
    while count < largest:
        count *= FACTOR
        yield count


def _sees(view: Mapping[str, Any], claim: Mapping[str, float], canaries: int) -> bool:
    twin = view.get("twin")
    if twin is None:
        return False
    return canaries_would_see(claim["epsilon"], claim["delta"], twin["auc"]["value"], canaries)


def kept(tries: Sequence[Attack]) -> Attack:
    """Return the last audit, with what an earlier one found, and a note of all of them."""
    last = tries[-1]
    if len(tries) == 1:
        return last
    findings = []
    for finding in last.findings:
        earlier = [one for attack in tries[:-1] if (one := attack.finding(finding.key))]
        found = next((one for one in earlier if one.found), None)
        findings.append(finding if finding.found or found is None else found)
    counts = [attack.part.details["canaries"] for attack in tries]
    planted = ", then ".join(f"{count:,}" for count in counts)
    note = (
        f"The training was audited {len(tries)} times, with {planted} planted patients, because an "
        "attack could see no leak with fewer. The figures are of the last audit alone; a refuted "
        "claim would count in any of them"
    )
    part = replace(last.part, notes=(*last.part.notes, note))
    return replace(last, part=part, findings=tuple(findings))


def audited_run(
    trained: Trained, fitted: Sequence[Control], seed: int, progress: Progress
) -> Attack:
    """Audit the training of a run, again where that helps, and keep each result beside it."""
    run = Run.load(trained.folder)

    def play(count: int, place: int) -> Attack:
        audit_seed = (seed + place) % 2**63

        def named(stage: str, part: float) -> None:
            progress(f"repeat with {count:,} {stage}" if place else stage, part)

        attack, units = audited_training(run, count=count, seed=audit_seed, progress=named)
        append_audit(trained.folder, _public(attack, fitted, units, audit_seed))
        return attack

    needed = partial(canaries_needed, largest=MAX_CANARIES)
    return kept(repeated(play, trained.canaries, trained.repeats, needed))


def _public(attack: Attack, fitted: Sequence[Control], units: int, seed: int) -> PublicAudit:
    """Return what may be published of an audit on rows that are drawn from the run: all of it."""
    details = attack.part.details
    views = []
    for view in details["views"]:
        key = f"training:{view['view']}"
        finding = attack.finding(key)
        power = next(power for power in attack.powers if power.key == key)
        assert finding is not None
        judged = {"refuted": finding.found, "sentence": finding.sentence}
        views.append(
            dict(view) | judged | {"power": {"least": power.least, "sentence": power.sentence}}
        )
    controls = [control.to_dict() for control in fitted]
    for control in controls:
        del control["cached"]
    return PublicAudit.from_dict(
        {
            "dpsynth": __version__,
            "model": details["model"],
            "background": "run",
            "background_units": units,
            "seed": seed,
            "claim": details["claim"],
            "canaries": details["canaries"],
            "included": details["included"],
            "views": views,
            "controls": controls,
        }
    )
