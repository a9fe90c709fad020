"""What an audit found, as lines for a terminal and as an exit code."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import Any

from dpsynth._util.formatting import counted
from dpsynth.cli.console import Console
from dpsynth.errors import GateError
from dpsynth.eval.attacks import all_blind, failed_controls, false_alarms, sights, verdict_of


def lines_of(document: dict[str, Any]) -> list[str]:
    """Lay out each finding above its power, and the controls that did not do what they must."""
    powers = {power["key"]: power["sentence"] for power in document["powers"]}
    sights_of = {sight.key: sight for sight in sights(document)}
    lines = [f"verdict     {VERDICTS[verdict_of(document)]}"]
    for one in document.get("plugins") or []:
        lines.append(f"plug-in     {one['key']}: {one['title']}, {one['package']} {one['version']}")
    lines.append("")
    for one in document["findings"]:
        word = "FOUND" if one["found"] else "not found"
        lines += [f"{word:<12}{one['key']}", *_wrapped(f"result: {one['sentence']}")]
        if one["key"] in powers:
            lines += _wrapped(f"power: {powers[one['key']]}")
        if sights_of[one["key"]].blind:
            lines += _wrapped(f"could not have seen a leak here: {sights_of[one['key']].reason}")
            lines += _wrapped(f"what to change: {sights_of[one['key']].remedy}")
    failed = failed_controls(document)
    passed = len(document["controls"]) - len(failed)
    lines += ["", f"controls    {passed} of {len(document['controls'])} worked as required"]
    for one in document.get("broken") or []:
        lines.append(f"BROKEN      {one['attack']} ({one['where']}): ended with {one['error']}")
    for one in failed:
        word = "FAILED" if one.get("kind") == "negative" else "NOT SEEN"
        lines += [f"{word:<12}{one['title']} ({one['attack']})", *_wrapped(one["sentence"])]
    return lines


def values_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return what ``--json`` prints of an audit."""
    names = "verdict tables plugins run seed measures findings powers sights controls broken"
    return {name: document[name] for name in names.split() if name in document}


def end(document: dict[str, Any]) -> None:
    """End with exit code 3 unless all is quiet.

    Raises:
        GateError: an attack succeeded, none could have seen a leak, or the audit is broken.
    """
    if verdict_of(document) == "failed":
        rash = [f"“{item['title']}”" for item in false_alarms(document)]
        why = [f"{one['attack']} ended with an error" for one in document.get("broken") or []]
        why += [f"{one} claimed a leak where there is none" for one in rash]
        raise GateError(f"the audit is broken: {', '.join(why) or 'no control was played'}")
    if verdict_of(document) == "found":
        successes = [item["key"] for item in document["findings"] if item["found"]]
        raise GateError(f"{counted(len(successes), 'attack')} succeeded: {', '.join(successes)}")
    if all_blind(document):
        raise GateError(
            "no attack could have seen a leak here, so their silence says nothing; see above what "
            "to change"
        )


def _wrapped(text: str) -> list[str]:
    space = " " * 12
    return wrap(text, 100, initial_indent=space, subsequent_indent=space)


VERDICTS = {
    "quiet": "no attack succeeded; see below what the attacks could have detected",
    "found": "an attack SUCCEEDED",
    "failed": "this audit FAILED and proves nothing: it is broken, see its controls",
}


def show(
    console: Console,
    document: dict[str, Any],
    output: str | None,
    public: str | None,
    *,
    internal: bool,
) -> None:
    """Show what was found, and end with the exit code that it means."""
    from dpsynth.assessment.results_folder import PAGE

    lines = lines_of(document)
    if output is not None:
        lines += ["", f"page        {Path(output) / PAGE}"]
    if public is not None:
        lines.append(f"public      {Path(public) / 'audit.json'}: the training's audit")
    console.result("audit", {"internal": True, "output": output} | values_of(document), lines)
    for note in document["notes"]:
        console.advice(f"Note: {note}")
    if internal:
        console.advice("Internal: computed from real rows. Do not release.")
        if output is None:
            console.advice(
                "Findings were not saved. Use -o FOLDER to save the findings and their page."
            )
    end(document)
