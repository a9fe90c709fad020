"""What each attack of an audit could have seen, and what to change where it could not.

A pure function of the document ``audit.json``, old or new. A control that fails voids what rests on
it, and no more:

- A positive control (a leak made on purpose) tests one finding. Where the attack missed that leak,
  its silence says nothing. A finding with no positive control of its own rests on all those of its
  kind of attack. What an attack did find stands: a blind attack accuses nobody.
- A negative control (nothing leaks there) that claims a leak breaks the audit: what found a leak
  where there is none may have done so again. So does an attack that ended with an error.

An attack could have seen a leak if its positive controls passed, and the least leak that it would
have found is known (`Power`). Neither looks at whether it found one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Details = Mapping[str, Any]

TRAINING, SHADOWS = "training", "shadows"
WIDE = 20  # columns; distances between rows of more say little
FEW_PEOPLE = 2_000  # in the holdout; with fewer, more of them help first
MANY_CANARIES = 10_000  # as many as an audit takes
FAILED, FOUND, QUIET = "failed", "found", "quiet"


@dataclass(frozen=True)
class Sight:
    """What one attack could have seen.

    Attributes:
        key: of the finding.
        title: of the finding.
        found: whether it succeeded.
        sees: whether it could have seen a leak here; None where nothing is known of it.
        reason: why not, one plain sentence; empty where it could.
        remedy: what to change, one plain sentence; empty where it could.
    """

    key: str
    title: str
    found: bool
    sees: bool | None
    reason: str = ""
    remedy: str = ""

    @property
    def blind(self) -> bool:
        """Whether its silence says nothing."""
        return not self.found and not self.sees

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types."""
        names = ("key", "title", "found", "sees", "reason", "remedy")
        return {name: getattr(self, name) for name in names}


def verdict_of(audit: Details) -> str:
    """Return ``failed`` for a broken audit, ``found`` for a leak, ``quiet`` for neither.

    Older documents called an audit failed for any control; this looks at the controls themselves.

    >>> blind = {"kind": "positive", "attack": "membership:density", "passed": False}
    >>> verdict_of({"controls": [blind], "findings": []})
    'quiet'
    >>> verdict_of({"controls": [blind | {"kind": "negative"}], "findings": []})
    'failed'
    """
    if not audit.get("controls") or false_alarms(audit) or audit.get("broken"):
        return FAILED
    return FOUND if any(finding["found"] for finding in audit.get("findings") or []) else QUIET


def false_alarms(audit: Details) -> list[Details]:
    """Return the negative controls in which a leak was claimed."""
    return [control for control in failed_controls(audit) if control.get("kind") == "negative"]


def missed_leaks(audit: Details) -> list[Details]:
    """Return the leaks made on purpose that their attack did not find; only that attack is blind.

    >>> missed_leaks({"controls": [{"key": "copied", "kind": "negative", "passed": False}]})
    []
    """
    return [control for control in failed_controls(audit) if control.get("kind") != "negative"]


def all_blind(audit: Details) -> bool:
    """Whether a leak on purpose was missed, and no attack could have seen one here."""
    seen_by = sights(audit)
    return bool(seen_by and missed_leaks(audit)) and all(
        not one.found and one.sees is False for one in seen_by
    )


def failed_controls(audit: Details) -> list[Details]:
    """Return the controls that did not pass."""
    return [control for control in audit.get("controls") or [] if not control["passed"]]


def sights(audit: Details) -> list[Sight]:
    """Say of each attack whether it could have seen a leak, in the order of the findings."""
    powers = {power["key"]: power for power in audit.get("powers") or []}
    return [_sight(audit, one, powers.get(one["key"])) for one in audit.get("findings") or []]


def rests_on(key: str, controls: Sequence[Details]) -> list[Details]:
    """Return the positive controls on which the silence of a finding rests.

    >>> density = {"kind": "positive", "attack": "membership:density"}
    >>> distance = {"kind": "positive", "attack": "membership:distance"}
    >>> rests_on("membership:density", [density, distance]) == [density]
    True
    >>> rests_on("membership:classifier", [density, distance]) == [density, distance]
    True
    """
    positive = [control for control in controls if control.get("kind") == "positive"]
    controls_of = [one for one in positive if one["attack"] == key]
    return controls_of or [one for one in positive if _family(one["attack"]) == _family(key)]


def _sight(audit: Details, finding: Details, power: Details | None) -> Sight:
    key, found = str(finding["key"]), bool(finding["found"])
    known = (key, str(finding.get("title") or key), found)
    missed = [one for one in rests_on(key, audit.get("controls") or []) if not one["passed"]]
    if missed:
        names = "; ".join(f"{one['title']} ({one['attack']})" for one in missed)
        reason = f"a leak that was made on purpose was not found: {names}"
        return Sight(*known, False, reason, remedy(audit, key))
    if power is None:
        reason = "the least leak that it would have found is not known"
        return Sight(*known, None, reason, remedy(audit, key))
    if power.get("least") is None:
        return Sight(*known, False, str(power["sentence"]), remedy(audit, key))
    return Sight(*known, True)


def remedy(audit: Details, key: str) -> str:
    """Say what to change so that an attack could see a leak; one plain sentence.

    >>> remedy({"parts": {"training": {"canaries": 100}}}, "training:black")
    'plant more canaries than 100 (--canaries)'
    """
    family = _family(key)
    if family == TRAINING:
        part = (audit.get("parts") or {}).get(TRAINING) or {}
        return more_canaries(part.get("canaries"))
    if family == SHADOWS:
        return "fit more shadow models: give them more minutes (--budget-minutes)"
    columns = audit.get("columns")
    wide = isinstance(columns, int) and columns > WIDE
    holdout = (audit.get("tables") or {}).get("holdout") or {}
    people = holdout.get("units")
    ways = []
    if isinstance(people, int) and people < FEW_PEOPLE:
        ways.append(f"hold out more people than {people:,}")
    if wide:
        ways.append(
            f"audit a schema with fewer columns than {columns}: distances between wide rows say "
            "little"
        )
    if not ways:
        ways.append("hold out more people, or audit a schema with fewer columns")
    return "; or ".join(ways)


def more_canaries(planted: object) -> str:
    """Say how to give canaries more power.

    >>> more_canaries(10_000)
    'no more canaries can be planted; a leak of this size stays unseen'
    """
    if isinstance(planted, int) and planted >= MANY_CANARIES:
        return "no more canaries can be planted; a leak of this size stays unseen"
    count = f" than {planted:,}" if isinstance(planted, int) else ""
    return f"plant more canaries{count} (--canaries)"


def _family(key: object) -> str:
    return str(key).partition(":")[0]
