"""`pip install dpsynth` without extras: no torch, and yet bundles are verified and signed.

The long part installs the package into an environment of its own, as a reader of a bundle would.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from dpsynth._util.dependencies import FULL, load_fitting, remedy
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate

from ..support.source_code import nodes_of

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SENTENCE = "is not installed, and this needs it: pip install 'dpsynth[full]'"


def names(requirements: list[str]) -> set[str]:
    """Names of the packages in a list of requirements."""
    return {re.split(r"[^A-Za-z0-9._-]", requirement)[0] for requirement in requirements}


def without_full(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python where the libraries of a full installation cannot be imported."""
    hidden = (
        "from importlib.machinery import PathFinder as finder\n"
        "find = finder.find_spec\n"
        "def find_others(name, path=None, target=None):\n"
        f"    gone = name.partition('.')[0] in {set(FULL)!r}\n"
        "    return None if gone else find(name, path, target)\n"
        "finder.find_spec = find_others\n"
    )
    return subprocess.run(
        [sys.executable, "-c", hidden + program], capture_output=True, text=True, cwd=folder
    )


# what is declared -------------------------------------------------------------------------------


def test_the_extra_full_is_what_a_light_installation_lacks() -> None:
    extras = PROJECT["optional-dependencies"]
    assert names(extras["full"]) == set(FULL.values())
    assert names(PROJECT["dependencies"]).isdisjoint(FULL.values())
    assert extras["verify"] == []
    assert any(one.startswith("dpsynth[full") for one in extras["test"])


def test_every_library_that_is_imported_is_declared() -> None:
    """Base, or full, or what an extra of its own names."""
    called = {
        "sklearn": "scikit-learn",
        "yaml": "PyYAML",
        "jinja2": "Jinja2",
        "markupsafe": "Jinja2",
        "lazy_loader": "lazy-loader",
        "typing_extensions": "typing-extensions",
    }
    called |= {"sqlalchemy": "SQLAlchemy", "dp_accounting": "dp-accounting"}
    called |= {"distributed": "dask", "ibis": "ibis-framework"}
    extras = PROJECT["optional-dependencies"]
    declared = names(PROJECT["dependencies"] + extras["full"] + extras["postgres"])
    declared |= names(extras["formats"] + extras["notebook"] + extras["cluster"])
    declared |= names(extras["warehouse"] + extras["office"])
    found = set()
    for folder in ("dpsynth", "models", "eval", "data_schemas"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in nodes_of(path):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    libraries = found - set(sys.stdlib_module_names) - {"dpsynth"}
    assert {called.get(name, name) for name in libraries} - declared == set()


def test_a_library_is_named_as_pip_knows_it() -> None:
    assert remedy("sklearn.linear_model") == f"scikit-learn {SENTENCE}"
    assert remedy("torch") == f"torch {SENTENCE}"
    assert remedy("numpy") is None and remedy(None) is None and remedy("torchvision") is None


def test_a_fit_that_could_not_end_is_refused_before_it_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_fitting(networks=True)
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(InputError, match="opendp is not installed.*; nothing was charged"):
        load_fitting(networks=True)


def test_without_the_libraries_a_fit_charges_nothing(tmp_path: Path) -> None:
    """Also where the model itself loads, and only its noise or its file would fail later."""
    simulate(50, seed=1).to_csv(tmp_path / "cohort.csv", index=False)
    line = "fit demo cohort.csv --dataset x --epsilon 3 --delta 1e-6 -o run --quiet --model"
    models = ("independent", "autoregressive", "tvae")
    program = (
        "import sys\nfrom dpsynth.cli import main\n"
        f"for model in {models!r}:\n"
        "    try:\n"
        f"        main([*{line.split()!r}, model])\n"
        "    except SystemExit as end:\n"
        "        print(model, end.code)\n"
        "        print(model, file=sys.stderr)\n"
    )
    done = without_full(program, tmp_path)
    assert done.stdout.splitlines() == [f"{model} 2" for model in models], done.stderr
    lines = done.stderr.splitlines()
    for model in models:
        assert SENTENCE in lines[lines.index(model) - 1]
    assert not (tmp_path / "run").exists()
    assert list(Ledger().entries()) == []


@pytest.mark.long
def test_a_bundle_is_verified_without_the_libraries(bundle: Path, tmp_path: Path) -> None:
    program = "import sys; from dpsynth.cli import main; main(['verify', 'bundle'])"
    done = without_full(program, tmp_path)
    assert done.returncode == 0 and "bundle verified" in done.stdout, done.stderr


# what is installed ------------------------------------------------------------------------------


def pip(*arguments: object, into: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the pip of this environment, on another one if given."""
    target = [] if into is None else ["--python", str(into / "bin" / "python")]
    command = [sys.executable, "-m", "pip", *target, *map(str, arguments), "--quiet"]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the sources, so that nothing is left in the checkout."""
    if find_spec("pip") is None:
        pytest.skip("this environment has no pip to build a wheel with")
    source = tmp_path_factory.mktemp("source") / "dpsynth"
    source.mkdir()
    for name in ("dpsynth", "models", "eval", "data_schemas"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    asked = pip("download", "setuptools>=77", "--no-deps", "--dest", source.parent / "probe")
    if asked.returncode != 0:
        pytest.skip(f"pip reaches no package index: {asked.stderr.strip().splitlines()[-1]}")
    recent = int(version("setuptools").split(".")[0]) >= 77 if find_spec("setuptools") else False
    isolated = ["--no-build-isolation"] if recent else []  # which would install setuptools again
    built = pip("wheel", source, "--no-deps", "--wheel-dir", source.parent, *isolated)
    assert built.returncode == 0, built.stderr
    return next(source.parent.glob("*.whl"))


@pytest.fixture(scope="module")
def light(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its own dependencies, no extra."""
    folder = tmp_path_factory.mktemp("light") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    options = (
        "--constraint",
        CONSTRAINTS,
        "--no-compile",
    )  # what is not imported needs no bytecode
    done = pip("install", f"{wheel}[verify]", *options, into=folder)
    assert done.returncode == 0, done.stderr
    return folder


def run(light: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the installed command."""
    environment = {
        name: os.environ[name] for name in ("PATH", "DPSYNTH_LEDGER") if name in os.environ
    }
    return subprocess.run(
        [str(light / "bin" / "dpsynth"), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**environment, "HOME": str(cwd), "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.long
def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    expected = {"dpsynth/py.typed"}
    for folder in ("dpsynth", "models", "eval", "data_schemas"):
        room = ROOT if folder == "dpsynth" else ROOT / "dpsynth"
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix != ".pyc":
                place = path.relative_to(ROOT).as_posix()
                expected.add(place if room == ROOT else f"dpsynth/{place}")
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert files == expected


@pytest.mark.long
def test_a_light_installation_has_none_of_the_libraries(light: Path, tmp_path: Path) -> None:
    program = (
        "import importlib.util, json, dpsynth\n"
        f"found = [name for name in {list(FULL)!r} if importlib.util.find_spec(name)]\n"
        "print(json.dumps([found, dpsynth.__file__]))"
    )
    done = subprocess.run(
        [str(light / "bin" / "python"), "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    found, place = json.loads(done.stdout)
    assert found == [] and Path(place).is_relative_to(light)


@pytest.mark.long
def test_a_light_installation_verifies_and_signs(light: Path, bundle: Path, tmp_path: Path) -> None:
    for arguments in (
        ("keygen", "office.key", "--no-passphrase"),
        ("sign", bundle, "--key", "office.key"),
        ("verify", bundle, "--key", "office.key.pub"),
    ):
        done = run(light, *arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    path = bundle / "data" / "synthetic.csv"
    lines = path.read_text().splitlines(keepends=True)
    cells = lines[7].split(",")
    cells[0] = str(int(cells[0]) + 1) if cells[0] else "18"
    path.write_text("".join([*lines[:7], ",".join(cells), *lines[8:]]))
    done = run(light, "verify", bundle, cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "data/synthetic.csv: was changed" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "--help",
        "schema check demo",
        "plan demo --epsilon 3 --delta 1e-6 --model tvae",
        "ledger verify",
    ],
)
@pytest.mark.usefixtures("made_run")  # its ledger is at hand
def test_a_light_installation_runs_what_needs_no_model(
    light: Path, tmp_path: Path, line: str
) -> None:
    done = run(light, *line.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "fit demo cohort.csv --dataset x --epsilon 3 --delta 1e-6 -o new",
        "sample run --rows 10 -o rows.csv",
        "evaluate run cohort.csv --synthetic cohort.csv -o new",
        "demo -o new",
    ],
)
@pytest.mark.usefixtures("run_folder")
def test_a_light_installation_says_what_is_missing(light: Path, tmp_path: Path, line: str) -> None:
    simulate(50, seed=1).to_csv(tmp_path / "cohort.csv", index=False)
    done = run(light, *line.split(), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    message = done.stderr.splitlines()[-1]
    assert message.startswith("dpsynth: ") and SENTENCE in message
    assert "Traceback" not in done.stderr
