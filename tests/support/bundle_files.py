"""What every bundle of the tests holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILES = [
    *("CARD.md", "croissant.json"),
    *("data/SYNTHETIC.txt", "data/synthetic.csv", "data/synthetic.parquet"),
    *("privacy.json", "report.html", "schema.json"),
]
Files = Callable[[Path], dict[str, bytes]]


def manifest_of(bundle: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((bundle / "datapackage.json").read_text())
    return document
