"""Dates that belong together, such as admission and discharge: the later one as an interval.

Modelled apart, two dates give a stay that is wrong by weeks. So the later date of a known pair is
declared by its distance from the earlier one.
"""

from __future__ import annotations

from dpsynth._util.field_reader import TODO
from dpsynth.draft.proposal import Proposal

PAIRS = (
    ("admission date", "discharge date"),
    ("ICU admission date", "ICU discharge date"),
    ("operation start", "operation end"),
)
_LONGEST = "the longest distance, from a protocol"


def add_intervals(proposals: list[Proposal]) -> None:
    """Declare the later date of each pair by its distance, where both occur once."""
    for first, second in PAIRS:
        earlier, later = _only(proposals, first), _only(proposals, second)
        if earlier is None or later is None:
            continue
        extra = later.document["dpsynth"]
        later.document.pop("constraints", None)
        later.comments.pop("constraints", None)
        later.comments.pop("dpsynth.calendar", None)
        role = {"role": extra["role"]} if "role" in extra else {}
        after = str(earlier.document["name"])
        unit = {"unit": "h"} if later.document["type"] == "datetime" else {}
        declared = {"after": after, "longest": TODO} | unit
        later.document["dpsynth"] = role | declared | {"bounds_basis": TODO}
        later.comments["dpsynth.longest"] = _LONGEST


def without_intervals(proposals: list[Proposal]) -> None:
    """Write the intervals as comments, for a schema reader that does not take them."""
    for proposal in proposals:
        extra = proposal.document.get("dpsynth", {})
        if "after" not in extra:
            continue
        after = extra.pop("after")
        unit = "hours" if extra.pop("unit", None) else "days"
        del extra["longest"]
        del proposal.comments["dpsynth.longest"]
        document = proposal.document
        document["constraints"] = {"minimum": TODO, "maximum": TODO}
        document["dpsynth"] = document.pop("dpsynth")
        proposal.inner.append(f"after: {after}, longest: TODO ({_LONGEST}, in {unit})")


def _only(proposals: list[Proposal], variable: str) -> Proposal | None:
    """Return the only date of this meaning."""
    found = [
        one
        for one in proposals
        if one.variable is not None
        and one.variable.name == variable
        and one.document["type"] in ("date", "datetime")
    ]
    return found[0] if len(found) == 1 else None
