"""The house: rooms match the disk, and imports run downwards.

Who may import whom is written down once, as contracts of import-linter in pyproject.toml.
"""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ..support.source_code import nodes_of, tree_of

ROOT = Path(__file__).parents[2]
LINKED = ("models", "eval", "data_schemas")
FOLDERS = [ROOT / "dpsynth", *(ROOT / name for name in LINKED)]
SOURCES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
FACES = [path for path in SOURCES if path.name == "__init__.py"]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]


@functools.cache
def imported(path: Path) -> set[str]:
    """Modules that a file imports, at any level."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def names_any(modules: set[str], prefix: str) -> bool:
    return any(module == prefix or module.startswith(prefix + ".") for module in modules)


def package(folder: Path) -> str:
    place = folder.relative_to(ROOT).as_posix().replace("/", ".")
    return place if place.startswith("dpsynth") else f"dpsynth.{place}"


def test_package_list_matches_the_disk() -> None:
    settings = SETTINGS["setuptools"]
    assert set(settings["packages"]) == {package(face.parent) for face in FACES}
    for room in LINKED:
        assert settings["package-dir"][f"dpsynth.{room}"] == room
        link = ROOT / "dpsynth" / room
        assert link.is_symlink() and os.readlink(link) == f"../{room}"


def test_the_contracts_are_kept() -> None:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert f"{len(SETTINGS['importlinter']['contracts'])} kept, 0 broken" in done.stdout


def test_an_import_upwards_breaks_a_contract(tmp_path: Path) -> None:
    """The broken twin, within a function: a schema that asks the ledger."""
    for name in ("dpsynth", *LINKED):
        for path in (ROOT / name).rglob("*.py"):
            place = (
                tmp_path
                / "dpsynth"
                / path.relative_to(ROOT / ("dpsynth" if name == "dpsynth" else ""))
            )
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    with (tmp_path / "dpsynth/schema/rules.py").open("a") as file:
        file.write("\n\ndef asked():\n    from dpsynth.ledger import Ledger\n    return Ledger\n")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "dpsynth.schema.rules -> dpsynth.ledger" in done.stdout


@pytest.mark.parametrize("face", FACES, ids=lambda face: package(face.parent))
def test_a_face_names_every_file_of_its_room(face: Path) -> None:
    text = ast.get_docstring(tree_of(face))
    assert text is not None
    files = [p.stem for p in face.parent.glob("*.py") if not p.stem.startswith("__")]
    if package(face.parent) in ("dpsynth", "dpsynth.data_schemas"):
        return  # the package as a whole, and a folder of schemas
    rooms = [p.parent.name + "/" for p in face.parent.glob("*/__init__.py")]
    assert [name for name in files + rooms if f"- `{name}`:" not in text] == []


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("opacus", {"models/dpsgd/opacus_engine.py", "models/outside/mechanisms.py"}),
        ("sdmetrics", {"eval/fidelity/summary.py"}),
        ("plotly", {"eval/report/rendering.py"}),
        (
            "jinja2",
            {
                "dpsynth/ledger/board_page.py",
                "dpsynth/_util/html.py",
                "dpsynth/bundle/pages/report.py",
                "dpsynth/forecasts/page.py",
                "dpsynth/office/rendering.py",
                "dpsynth/stats/page.py",
            },
        ),
    ],
)
def test_libraries_stay_in_their_files(library: str, allowed: set[str]) -> None:
    for path in SOURCES:
        if names_any(imported(path), library):
            assert path.relative_to(ROOT).as_posix() in allowed, path


def test_click_only_in_the_command_line() -> None:
    for path in SOURCES:
        if not path.is_relative_to(ROOT / "dpsynth/cli"):
            assert not names_any(imported(path), "click"), path


def test_light_modules_load_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['opacus'] = None\n"
        "import dpsynth, dpsynth.cli\n"
        "from dpsynth.schema import Schema\nfrom dpsynth.encoding import Codec\n"
        "from dpsynth.tables import open_table\nfrom dpsynth.bundle import verify\n"
        "from dpsynth.eval.fidelity import mean_tvd\nimport dpsynth.eval.overview\n"
        "import dpsynth.models.histories.latent.generator\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")


def test_no_face_loads_torch() -> None:
    names = [package(face.parent) for face in FACES]
    code = f"import sys, {', '.join(names)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd="/").returncode == 0


def test_no_pickle_and_no_eval() -> None:
    for path in SOURCES:
        modules = imported(path)
        for banned in ("pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"):
            assert not names_any(modules, banned), path
        calls = {
            node.func.id
            for node in nodes_of(path)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"eval", "exec"}, path
