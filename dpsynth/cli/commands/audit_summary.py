"""What an audit found, as lines for a terminal and as an exit code."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth.errors import GateError


def lines_of(document: dict[str, Any]) -> list[str]:
    """Lay out each finding above its power, and the controls that did not do what they must."""
    powers = {one["key"]: one["sentence"] for one in document["powers"]}
    lines = [f"verdict     {VERDICTS[document['verdict']]}"]
    for one in document.get("plugins") or []:
        lines.append(f"plug-in     {one['key']}: {one['title']}, {one['package']} {one['version']}")
    lines.append("")
    for one in document["findings"]:
        word = "FOUND" if one["found"] else "not found"
        lines += [f"{word:<12}{one['key']}", *_wrapped(f"result: {one['sentence']}")]
        if one["key"] in powers:
            lines += _wrapped(f"power: {powers[one['key']]}")
    failed = [one for one in document["controls"] if not one["passed"]]
    passed = len(document["controls"]) - len(failed)
    lines += ["", f"controls    {passed} of {len(document['controls'])} worked as required"]
    for one in failed:
        lines += [f"FAILED      {one['title']} ({one['attack']})", *_wrapped(one["sentence"])]
    return lines


def values_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints of an audit."""
    names = "verdict tables plugins run seed measures findings powers controls".split()
    return {name: document[name] for name in names if name in document}


def end(document: dict[str, Any]) -> None:
    """End with exit code 3 unless all is quiet.

    Raises:
        GateError: an attack succeeded, or a control failed.
    """
    if document["verdict"] == "failed":
        failed = [item["key"] for item in document["controls"] if not item["passed"]]
        many = counted(len(failed), "control")
        raise GateError(f"the audit failed: {many} failed ({', '.join(failed)})")
    if document["verdict"] == "found":
        successes = [item["key"] for item in document["findings"] if item["found"]]
        raise GateError(f"{counted(len(successes), 'attack')} succeeded: {', '.join(successes)}")


def _wrapped(text: str) -> list[str]:
    space = " " * 12
    return wrap(text, 100, initial_indent=space, subsequent_indent=space)


VERDICTS = {
    "quiet": "no attack succeeded; see below what the attacks could have detected",
    "found": "an attack SUCCEEDED",
    "failed": "this audit FAILED: a control did not work as required, so the audit proves nothing",
}
