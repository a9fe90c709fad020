"""The package of docs/extending.md, installed as a folder that Python looks into."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
FULL_NAME = "dpsynth-toy==0.1:toy"


def toy_source() -> str:
    """The module that the page shows."""
    match = re.search(r"```python\n(# dpsynth_toy\.py\n.*?)```", PAGE.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    *,
    name: str = "toy",
    package: str = "dpsynth-toy",
    version: str = "0.1",
) -> None:
    """Install a package with one generator, class ``Toy``, for the rest of a test."""
    module = package.replace("-", "_")
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[dpsynth.generators]\n{name} = {module}:Toy\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, module, raising=False)
