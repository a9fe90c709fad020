"""P14: what a budget was spent on is not thrown away, and what cannot be kept is refused before.

The output is claimed, with room for the run, and every library is loaded before the ledger is
charged. A run that cannot be saved all the same is saved elsewhere, and can be released from there.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import release
from dpsynth.errors import InputError
from dpsynth.files import claimed
from dpsynth.ledger import Ledger
from dpsynth.models import most_bytes, spec_of
from dpsynth.models.registry import NAMES
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, prepare
from dpsynth.tables import simulate

from ..support.quick_fit import quick_fit
from ..support.some_cases import each_generator

Late = dict[str, tuple[int, str, Path]]
LATE = """
import os, sys, traceback
import dp_accounting  # of every plan, which is calibrated before its budget is reserved
from dpsynth.synthesis import fitting, preparation
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate
table = simulate(60, seed=1)

def fit(model, patch):
    book = Ledger.create("ledger.sqlite")
    reserve = Ledger.reserve_all
    before = set()
    def noted(self, *words, **more):
        before.update(sys.modules)
        return reserve(self, *words, **more)
    Ledger.reserve_all = noted
    exec(patch, globals())
    fitting.fit(table, "demo", epsilon=3, delta=1e-6, dataset="x", model=model, ledger=book,
                output="run")
    late = {{name.partition(".")[0] for name in set(sys.modules) - before}}
    print(sorted(late - set(sys.stdlib_module_names) - {{"dpsynth", "__mp_main__"}}))

for name, model, patch in {cases!r}:
    if name in ("mixture", "autoregressive", "tvae", "ctgan"):
        import torch  # modules of networks do at once; "broken" shows that a mixture does in time
    sys.stdout.flush()
    if not (child := os.fork()):  # with what is imported so far, as in a process of its own
        os.chdir(name)
        os.dup2(os.open("output", os.O_WRONLY | os.O_CREAT), 1)
        os.dup2(1, 2)
        code = 1
        try:
            fit(model, patch)
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
QUICK = """
import dataclasses
from dpsynth.models import Preset
chosen = Preset.of.__func__
Preset.of = classmethod(lambda cls, *words: dataclasses.replace(
    chosen(cls, *words), steps=2, warm_steps=2, mixture_steps=2, components=8,
    settling_steps=2 * bool(chosen(cls, *words).settling_steps)))
"""


def book(folder: Path) -> Ledger:
    """The ledger of a folder; it is made for its first fit."""
    place = folder / "ledger.sqlite"
    return Ledger(place) if place.exists() else Ledger.create(place)


def fitted(folder: Path, **more: Any) -> Run:
    return quick_fit(
        simulate(60, seed=1),
        "demo",
        dataset="x",
        ledger=book(folder),
        output=folder / "run",
        **more,
    )


def states(folder: Path) -> list[str]:
    return [entry.status for entry in Ledger(folder / "ledger.sqlite").entries()]


def refusing(number: int) -> Callable[[Run, str | Path], Path]:
    """Save like `Run.save`, but not at the path that was asked for."""
    save = Run.save

    def refused(run: Run, folder: str | Path) -> Path:
        if Path(folder).name == "run" and "dpsynth-saved" not in str(folder):
            raise OSError(number, os.strerror(number))
        return save(run, folder)

    return refused


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EROFS, errno.EIO, errno.EFBIG, errno.EACCES, errno.ENODEV]
)
def test_a_run_that_cannot_be_saved_is_saved_beside_and_released(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "save", refusing(number))
    with pytest.raises(InputError, match="Nothing is lost: the run was saved as .*run-saved-1"):
        fitted(tmp_path)
    assert states(tmp_path) == ["charged"]
    ledger = Ledger(tmp_path / "ledger.sqlite")
    bundle = release(tmp_path / "run-saved-1", tmp_path / "bundle", size=20, ledger=ledger)
    assert (bundle / "datapackage.json").is_file()


def test_where_nothing_can_be_written_beside_it_goes_into_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the name was taken meanwhile, or the whole folder is gone."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    save = Run.save

    def refused(run: Run, folder: str | Path) -> Path:
        if Path(folder).parent == tmp_path:
            raise PermissionError(errno.EACCES, "denied", str(folder))
        return save(run, folder)

    monkeypatch.setattr(Run, "save", refused)
    with pytest.raises(InputError, match="saved as .*elsewhere"):
        fitted(tmp_path)
    [folder] = elsewhere.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700 and Run.load(folder / "run")
    assert states(tmp_path) == ["charged"]


def test_a_fit_whose_save_fails_the_entry_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: the run is saved at its place or not at all, as it was before."""
    monkeypatch.setattr(
        "dpsynth.files.output_claim.save_somewhere",
        lambda target, write: write(target),
    )
    monkeypatch.setattr(Run, "save", refusing(errno.ENOSPC))
    with pytest.raises(OSError):
        fitted(tmp_path)
    assert states(tmp_path) == ["failed"] and not list(tmp_path.glob("run*"))


@contextmanager
def limited(size: int) -> Iterator[None]:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_too_little_room_is_known_before_the_charge(tmp_path: Path) -> None:
    book(tmp_path)
    with (
        limited(200_000),
        pytest.raises(InputError, match="which may take 0.* MB: the file exceeds"),
    ):
        fitted(tmp_path)
    assert states(tmp_path) == [] and os.listdir(tmp_path) == ["ledger.sqlite"]


@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_the_room_that_is_kept_suffices(model: str) -> None:
    """At every level of epsilon; the widest run of each model on the demo table, by its shapes."""
    schema = Schema.load("demo")
    for epsilon in (1.0, 3.0, 10.0):
        prepared = prepare(schema, epsilon=epsilon, delta=1e-6, model=model)
        room = most_bytes(model, prepared.domain, prepared.plan.budget)
        assert 2**18 < room < 2**26


def test_an_output_is_one_fits_alone(tmp_path: Path) -> None:
    """The second of two is refused before it is charged; once the first has ended, it is free."""
    with (
        claimed(tmp_path / "run", 1000),
        pytest.raises(InputError, match="another process is about to write .*run"),
    ):
        fitted(tmp_path)
    assert states(tmp_path) == []
    fitted(tmp_path)
    with pytest.raises(InputError, match="exists"):
        fitted(tmp_path)
    assert states(tmp_path) == ["charged"]
    assert sorted(os.listdir(tmp_path)) == ["ledger.sqlite", "run"]


LOOKED_FOR = (
    "from dpsynth.ledger import charging\n"
    "charging.load_fitting = preparation.load_fitting = lambda **_: None\n"
)
CASES = {  # networks last, for whom torch is imported once
    "looked for": ("independent", QUICK + LOOKED_FOR),
    "broken": ("mixture", QUICK),
} | {name: (name, QUICK) for name in sorted(NAMES, key=lambda name: spec_of(name).neural)}


@pytest.fixture(scope="module")
def late_imports(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Late:
    """Fit in a process each, forked where all that were forked so far have imported the same.

    Only models whose tests run are fitted: each network takes seconds to import.

    Of each: how it ended, what it wrote, and its folder.
    """
    top = tmp_path_factory.mktemp("late")
    models = {
        item.callspec.params.get("model")
        for item in request.session.items
        if item.path == request.path
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    }
    tried = {name: case for name, case in CASES.items() if name in models or name not in NAMES}
    for name in tried:
        (top / name).mkdir()
    (top / "broken" / "torch").mkdir()
    (top / "broken" / "torch" / "__init__.py").write_text("raise OSError('libtorch.so is missing')")
    cases = [(name, model, patch) for name, (model, patch) in tried.items()]
    done = subprocess.run(
        [sys.executable, "-c", LATE.format(cases=cases)],
        cwd=top,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=True,
    )
    codes = map(int, done.stdout.split())
    return {
        name: (code, (top / name / "output").read_text().strip(), top / name)
        for name, code in zip(tried, codes, strict=True)
    }


@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_nothing_is_imported_between_charge_and_saved_run(model: str, late_imports: Late) -> None:
    assert late_imports[model][:2] == (0, "[]")


def test_a_library_that_is_loaded_late_is_caught(late_imports: Late) -> None:
    """Broken twin: it is looked for, and not loaded."""
    code, late, _ = late_imports["looked for"]
    assert code == 0 and "opendp" in late


def test_a_library_that_cannot_be_loaded_costs_nothing(late_imports: Late) -> None:
    code, output, folder = late_imports["broken"]
    assert code == 1 and "torch is installed and cannot be loaded (OSError)" in output
    assert states(folder) == []
