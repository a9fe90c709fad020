"""The house: packages match the disk, and imports run in the drawn directions."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {"models": ROOT / "models", "eval": ROOT / "eval", "data_schemas": ROOT / "data_schemas"}


def sources(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.py"))


def imported(path: Path, *, top_level_only: bool) -> set[str]:
    """Modules that a file imports; with ``top_level_only``, those imported when it is loaded."""
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def names_any(modules: set[str], prefix: str) -> bool:
    return any(module == prefix or module.startswith(prefix + ".") for module in modules)


def test_package_list_matches_the_disk() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    on_disk = {"dpsynth"} | {f"dpsynth.{room}" for room in ROOMS}
    for init in (ROOT / "dpsynth").glob("*/__init__.py"):
        on_disk.add(f"dpsynth.{init.parent.name}")
    assert set(settings["packages"]) == on_disk
    for room in ROOMS:
        assert settings["package-dir"][f"dpsynth.{room}"] == room
        link = ROOT / "dpsynth" / room
        assert link.is_symlink() and os.readlink(link) == f"../{room}"


def test_rooms_are_flat() -> None:
    for folder in (ROOMS["models"], ROOMS["eval"]):
        assert not [
            p for p in folder.iterdir() if p.is_dir() and p.name not in ("__pycache__", "templates")
        ]


def test_models_and_eval_never_import_each_other() -> None:
    for path in sources(ROOMS["models"]):
        assert not names_any(imported(path, top_level_only=False), "dpsynth.eval"), path
    for path in sources(ROOMS["eval"]):
        assert not names_any(imported(path, top_level_only=False), "dpsynth.models"), path


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("opacus", {"models/dpsgd.py"}),
        ("sdmetrics", {"eval/fidelity.py"}),
        ("plotly", {"eval/charts.py", "eval/report.py"}),
        (
            "jinja2",
            {
                *("eval/charts.py", "eval/report.py"),
                *("dpsynth/ledger_page.py", "dpsynth/page_frame.py", "dpsynth/public_report.py"),
            },
        ),
    ],
)
def test_libraries_stay_in_their_files(library: str, allowed: set[str]) -> None:
    for path in [p for folder in ROOMS.values() for p in sources(folder)] + [
        *sources(ROOT / "dpsynth"),
        *sources(ROOT / "dpsynth/cli"),
    ]:
        if names_any(imported(path, top_level_only=False), library):
            assert path.relative_to(ROOT).as_posix() in allowed, path


def test_click_only_in_the_command_line() -> None:
    folders = [*ROOMS.values(), ROOT / "dpsynth"]
    for path in [p for folder in folders for p in sources(folder)]:
        assert not names_any(imported(path, top_level_only=False), "click"), path


def test_light_modules_load_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['opacus'] = None\n"
        "import dpsynth, dpsynth.schema, dpsynth.codec, dpsynth.table, dpsynth.verify\n"
        "import dpsynth.eval.fidelity, dpsynth.eval.overview, dpsynth.cli\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


def test_a_file_can_be_read_at_one_sitting() -> None:
    folders = [*ROOMS.values(), ROOT / "dpsynth", ROOT / "dpsynth/cli"]
    for path in [p for folder in folders for p in sources(folder)]:
        assert len(path.read_text().splitlines()) <= 300, f"{path}: look for the second noun"


def test_no_pickle_and_no_eval() -> None:
    for folder in [*ROOMS.values(), ROOT / "dpsynth", ROOT / "dpsynth/cli"]:
        for path in sources(folder):
            modules = imported(path, top_level_only=False)
            for banned in ("pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"):
                assert not names_any(modules, banned), path
            calls = {
                node.func.id
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            assert not calls & {"eval", "exec"}, path
