"""The JSON documents of the commands, as tests/promises/documents.txt promises them.

    DPSYNTH_RENEW_PROMISES=FOLDER make test; python tests/promises/renew.py FOLDER

writes the page anew from the documents that the tests meet. Its difference is what a user of the
command line would have to change.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from .shapes import Shape, departures, shape_of

PAGE = Path(__file__).parents[1] / "promises/documents.txt"
RENEW = "DPSYNTH_RENEW_PROMISES"

# objects whose keys are names that somebody chose, or numbers
MAPS = {
    "cells",
    "datasets",
    "epsilons",
    "epsilons.<name>.pairs_off",
    "epsilons.<name>.right_at_lead",
    "measures",
    "read",
    "same_file",
}


def read(page: Path = PAGE) -> dict[str, Shape]:
    """Return the shape of each kind of document."""
    found: dict[str, Shape] = {}
    shape: Shape = {}
    for line in page.read_text().splitlines():
        if line.startswith(" "):
            path, _, kinds = line.strip().partition(": ")
            shape[path] = frozenset(kinds.split(", "))
        elif line and not line.startswith("#"):
            shape = found.setdefault(line.strip(), {})
    return found


def written(shapes: dict[str, Shape]) -> str:
    """Return the page of some shapes."""
    lines = ["# By kind: each key, and what stands there. After `?`: not in every document."]
    for kind, shape in sorted(shapes.items()):
        lines += ["", kind]
        lines += [f"  {path}: {', '.join(sorted(kinds))}" for path, kinds in sorted(shape.items())]
    return "\n".join([*lines, ""])


@cache
def promised() -> dict[str, Shape]:
    """Return what the page promises."""
    return read()


def departures_of(document: dict[str, Any]) -> list[str]:
    """Tell in what a document that a command printed is not as it was promised."""
    kind = document["kind"]
    folder = os.environ.get(RENEW)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with Path(folder, f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(document) + "\n")
        return []
    if kind not in promised():
        return [f"{kind} is a new kind of document; see {__name__}"]
    wrong = departures(shape_of([document], MAPS), promised()[kind])
    return [f"{kind}: {part}: other than {PAGE.name} promises" for part in wrong]
