"""Every example in a docstring runs and gives what it says; the public verbs all have one."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import dpsynth
from dpsynth.bundle import release

from ..support.short_training import (
    shorten_histories,
    shorten_mixture,
    shorten_networks,
    shorten_training,
)

ROOT = Path(__file__).parents[2]
FOLDERS = {"dpsynth": "dpsynth", "models": "dpsynth.models", "eval": "dpsynth.eval"}


def modules() -> list[str]:
    """Names of the modules that hold an example."""
    names = []
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if not path.is_symlink() and ">>> " in path.read_text():
                names.append(".".join([package, *parts]).removesuffix(".__init__"))
    return sorted({name for name in names if not name.startswith(("dpsynth.models.models",))})


MODULES = modules()


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder, with networks and mixtures that train for a few steps."""
    monkeypatch.chdir(tmp_path)
    for shorten in (shorten_mixture, shorten_training, shorten_histories, shorten_networks):
        shorten(monkeypatch)
    module = import_module(name)
    finder, options = doctest.DocTestFinder(exclude_empty=True), doctest.ELLIPSIS
    failed = []
    for example in finder.find(module, name):
        folder = tmp_path / example.name
        folder.mkdir()
        monkeypatch.chdir(folder)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=options)
        if runner.run(example, out=report.append).failed:
            failed += report
    assert not failed, "".join(failed)


def test_an_example_that_is_wrong_is_noticed() -> None:
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "twin", None, 0)
    assert doctest.DocTestRunner().run(example, out=lambda text: None).failed == 1


@pytest.mark.parametrize("name", [name for name in dpsynth.__all__ if name != "__version__"])
def test_public_names_have_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(dpsynth, name)) or "")


def test_the_release_has_an_example() -> None:
    assert ">>> " in (inspect.getdoc(release) or "")
