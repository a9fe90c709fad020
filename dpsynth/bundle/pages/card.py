"""CARD.md: what the table and its model are for, and what they are not for, for people and hubs.

A pure function of public documents, like report.html. Text that a person wrote is escaped, so that
it can neither format nor link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from dpsynth._util.formatting import figure, figure_at_most, percent, shown
from dpsynth.bundle.format import Audits, Contents, Heading
from dpsynth.bundle.gates import Verdict
from dpsynth.bundle.gates.public_gates import NOT_AUDITED
from dpsynth.bundle.pages.impact_assessment import dpia_paragraph
from dpsynth.bundle.pages.limits import collected, limits_of
from dpsynth.certificate import Certificate, budget_lines, for_person, protected, readings
from dpsynth.models import description_of
from dpsynth.privacy import source_unit, units_of
from dpsynth.schema import kind_of, labels_of, unit_of

_NOT_SAID = "The publisher does not say."
_SPECIAL = re.compile(  # what formats or links at its place, in CommonMark or on GitHub
    r"""[\\`*\[\]|~$]
    | (?<![^\W_])_ | _(?![^\W_])  # within a word an underscore is one
    | <(?=[a-z/!?]) | (?<!\s)>
    | &(?=\#\d+; | \#x[\da-f]+; | [a-z][a-z\d]*;)
    | (?<!\S)\#  # of a heading, at its beginning and at its end
    | (?<=[a-z]):(?=//) | (?<=www)\.""",
    re.IGNORECASE | re.VERBOSE,
)
_FIRST = re.compile(  # what begins a list, a rule or a heading
    r"^( (?:[-+] | \d{1,9}[.)]) (?=\s|$) | -(?=-[-\s]*$) | =(?==*\s*$) )", re.VERBOSE
)


def card(contents: Contents, verdicts: Sequence[Verdict], files: Iterable[str]) -> str:
    """Write the card.

    Args:
        contents: the documents of the bundle.
        verdicts: of the public gates.
        files: paths of the tables in the bundle.
    """
    heading, certificate = contents.heading, contents.certificate
    parts = [
        _front(heading),
        [f"# {plain(heading.title)}"],
        [
            f"> Synthetic rows, made up by a computer. {plain(_guarantee(certificate))} Read the "
            "limits before you use them."
        ],
        _dataset(heading, files),
        _use(heading),
        _limits(heading),
        _model(heading, certificate),
        _privacy(contents),
        _checks(certificate, verdicts, contents.audits),
        _dpia(contents),
        _verification(heading),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def plain(text: str) -> str:
    r"""Escape a text for Markdown: one line, without formatting, links or HTML.

    An address of mail stays as it is: hosts that make a link of one do so in spite of escapes, and
    the link leads where it says.

    >>> print(plain("1. a_b <i>[x](y)</i>, https://z, version 1.0.0 of 2026-11-22"))
    1\. a_b \<i\>\[x\](y)\</i\>, https\://z, version 1.0.0 of 2026-11-22
    """
    return _FIRST.sub(_marked, _SPECIAL.sub(r"\\\g<0>", shown(text).strip()))


def _marked(begin: re.Match[str]) -> str:
    """Escape the last character of what begins a list, or the first of a rule."""
    return f"{begin[0][:-1]}\\{begin[0][-1]}"


def _front(heading: Heading) -> list[str]:
    """Write what hubs read: YAML between lines of dashes, each value quoted as JSON is."""
    about = heading.about
    values: dict[str, str | list[str] | None] = {
        "pretty_name": heading.title,
        "license": about.licence,
        "version": about.version,
        "tags": ["synthetic", "differential-privacy", "tabular", *about.keywords],
    }
    lines = [f"{key}: {_quoted(value)}" for key, value in values.items() if value]
    return ["---", *lines, "---"]


def _quoted(value: str | list[str]) -> str:
    """Quote a text, or each of a list, as JSON and YAML both do."""
    told = shown(value) if isinstance(value, str) else [shown(one) for one in value]
    return json.dumps(told, ensure_ascii=False)


def _dataset(heading: Heading, files: Iterable[str]) -> list[str]:
    schema, about, drawing = heading.schema, heading.about, heading.drawing
    facts = [
        ("Rows", f"{drawing.rows:,}"),
        ("Columns", str(len(schema.modelled))),
        ("Files", ", ".join(f"`{path}`" for path in files)),
        ("Source", plain(schema.description or schema.title or schema.name)),
        ("Publisher", _or_not(about.publisher)),
        ("Contact", _or_not(about.contact)),
        ("Version", _or_not(about.version)),
        ("Date", _or_not(about.date)),
        ("Licence", _or_not(about.licence)),
        ("Citation", _or_not(about.citation)),
    ]
    columns = [
        f"| {plain(column.name)} | {plain(column.title or '')} | {kind_of(column)} | "
        f"{plain(unit_of(column))} | {plain(labels_of(column))} |"
        for column in schema.modelled
    ]
    return [
        "## The table",
        "",
        collected(drawing),
        "",
        *_table(("", ""), facts),
        "",
        "<details><summary>Columns</summary>",
        "",
        "| name | title | type | unit | values |",
        "|---|---|---|---|---|",
        *columns,
        "",
        "</details>",
    ]


def _use(heading: Heading) -> list[str]:
    said = heading.about.intended_use
    return [
        "## Intended use",
        "",
        plain(said) if said else _NOT_SAID,
        "",
        "Such tables serve to write and test code, to teach, to plan a study, and to compare "
        "methods. They are not for decisions about a person, and not for claims about people "
        "that were not confirmed on real records.",
    ]


def _limits(heading: Heading) -> list[str]:
    said = heading.about.limits
    lines = ["## Limits", "", *[f"- {plain(one)}" for one in limits_of(heading)]]
    return [*lines, f"- The publisher adds: {plain(said)}"] if said else lines


def _model(heading: Heading, certificate: Certificate) -> list[str]:
    drawing = heading.drawing
    rows = [
        (plain(line.name), percent(line.share), plain(line.purpose), plain(line.noise))
        for line in budget_lines(certificate, quality=False)
    ]
    return [
        "## The model",
        "",
        f"`{drawing.model}`: {description_of(drawing.model)}. It learned from a table "
        f"of {certificate.population:,} {plain(units_of(certificate.unit))}, by "
        f"public declaration. Run `{drawing.run_sha256[:16]}`, seed {drawing.seed}, dpsynth "
        f"{heading.writer}. Every look at the records:",
        "",
        *_table(("event", "part of the budget", "learned", "noise"), rows),
    ]


def _privacy(contents: Contents) -> list[str]:
    certificate = contents.certificate
    lines = ["## What is guaranteed", "", plain(protected(certificate.unit)), ""]
    for reading in readings(certificate):
        lines.append(
            f"- {plain(reading.title)}: epsilon {figure_at_most(reading.epsilon)}, delta "
            f"{figure(reading.delta)}. {plain(reading.verdict)}"
        )
    paid = "are in `quality.json`" if contents.quality else "are not published"
    return [
        *lines,
        "",
        "Not covered:",
        "",
        *[f"- {plain(one)}" for one in certificate.not_covered],
        "",
        f"Figures of quality that were computed from real records, and paid for, {paid}.",
    ]


def _checks(
    certificate: Certificate, verdicts: Sequence[Verdict], audits: Audits | None
) -> list[str]:
    overridden = {one.gate: one for one in certificate.overrides}
    rows = []
    for one in verdicts:
        word = "passed" if one.passed else "failed" if one.stops else "beyond its limit"
        if one.detail == NOT_AUDITED and not one.passed:
            word = NOT_AUDITED
        if excuse := overridden.get(one.key):
            word = f"{word}; overridden by {plain(excuse.by)}: {plain(excuse.reason)}"
        rows.append((plain(one.title), word))
    count = 0 if audits is None else len(audits.audits)
    many = "No audit" if not count else "1 audit" if count == 1 else f"{count} audits"
    return [
        "## Checks before the release",
        "",
        *_table(("check", "verdict"), rows),
        "",
        f"{many} of the training {'is' if count < 2 else 'are'} in the bundle. `report.html` shows "
        "all figures.",
    ]


def _dpia(contents: Contents) -> list[str]:
    said = dpia_paragraph(contents.heading.schema, contents.certificate, contents.audits)
    lines = ["## For a data protection impact assessment", ""]
    lines.append("A draft from the certificate; what is in brackets is for the controller.")
    for sentence in said:
        lines += ["", plain(sentence)]
    return lines


def _verification(heading: Heading) -> list[str]:
    return [
        "## Check it yourself",
        "",
        "```",
        "pip install 'dpsynth[verify]'",
        "dpsynth verify THIS-FOLDER            # add --key PUBLIC-KEY if the publisher signs",
        "```",
        "",
        "It compares every file with the manifest and every cell with the schema, and computes "
        "epsilon again from the events in `privacy.json`.",
    ]


def _guarantee(certificate: Certificate) -> str:
    return (
        f"Each {source_unit(certificate.unit)} is protected by differential privacy with "
        f"epsilon {figure_at_most(certificate.epsilon)} and delta {figure(certificate.delta)}"
        f"{for_person(certificate)}."
    )


def _or_not(text: str | None) -> str:
    return plain(text) if text else _NOT_SAID


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]
