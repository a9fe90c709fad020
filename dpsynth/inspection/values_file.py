"""The file of ``--show-values``: cells that are not taken as they stand, for its owner alone.

It is the one place that writes private cells. The file is new and of mode 0600, and lies apart from
any bundle. Nothing reads it again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from dpsynth._util.strict_yaml import yaml_text
from dpsynth.files import check_apart, check_vacant, write_new
from dpsynth.inspection import hints
from dpsynth.inspection.check_result import CheckResult
from dpsynth.inspection.findings import Cause, Finding

MAX_VALUES = 1_000  # of each finding
MODE = 0o600

_HEAD = """\
# INTERNAL: cells of real patients. Delete this file when the schema is done.
# Declare what the coding manual or protocol says, not what one patient has: a schema is public.
"""


def check_values_file(path: str | Path) -> None:
    """Refuse a file that exists, or that would lie in a bundle, before a table is read.

    Raises:
        InputError: with the reason.
    """
    check_apart(path)
    check_vacant(path)


def write_values(check: CheckResult, path: str | Path) -> None:
    """Write the cells of each finding, the most frequent first, and the lines to add.

    Args:
        check: what a check found.
        path: a new file; it gets mode 0600.

    Raises:
        InputError: the file exists, lies in a bundle, or cannot be written.
    """
    check_values_file(path)
    document: dict[str, Any] = {}
    for finding in check.findings:
        counts = check.texts(finding)
        if counts is not None:
            column = document.setdefault(finding.place, {})
            column[finding.kind] = _values(counts, finding)
    text = _HEAD + (yaml_text(document) if document else "# No cell stands out.\n")
    write_new(path, text.encode("utf-8", "backslashreplace"), mode=MODE)


def _values(counts: Counter[str], finding: Finding) -> dict[str, Any]:
    """List the cells of one finding with their counts and causes."""
    of_text = {text: cause.key for cause in finding.causes for text in cause.texts}
    values = [
        {"value": text, "cells": cells} | ({"cause": of_text[text]} if text in of_text else {})
        for text, cells in counts.most_common(MAX_VALUES)
    ]
    part: dict[str, Any] = {"values": values}
    if len(counts) > MAX_VALUES:
        part["further values"] = len(counts) - MAX_VALUES
    lines = {
        cause.key: line
        for cause in finding.causes
        if (line := schema_line(cause, dict(counts))) is not None
    }
    return part | ({"lines for the column": lines} if lines else {})


def schema_line(cause: Cause, counts: dict[str, int]) -> str | None:
    """Write the line of the schema with its cells, the most frequent first; PRIVATE.

    Args:
        cause: with the cells that it explains.
        counts: how often each cell occurs.

    Returns:
        The line, or None where the remedy is not a line with cells.
    """
    ordered = sorted(cause.texts, key=lambda text: -counts.get(text, 0))
    texts = {text: cause.texts[text] for text in ordered}
    if cause.key in ("case", "spelling", "dots", "zeros", "typing") and all(texts.values()):
        return hints.values_line(texts)
    if cause.key in ("missing-word", "missing-code"):
        return hints.missing_line(texts)
    if cause.key.startswith("censored-"):
        return hints.censored_line(texts, cause.key.removeprefix("censored-"))
    if cause.key == "truth-words":
        return hints.truth_line(texts)
    return None
