"""Messages name the cause: each is injected, and the message says it, the place and the remedy."""

from __future__ import annotations

import csv
import errno
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util import dependencies
from dpsynth._util.engines import DaskEngine
from dpsynth.bundle import writer
from dpsynth.cli import group
from dpsynth.errors import DpsynthWarning, InputError, TableError
from dpsynth.files import atomic_file, atomic_folder
from dpsynth.ledger import Ledger
from dpsynth.ledger.charging import _unclosed
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..support.command_line import Cli
from ..support.reservations import reserve


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_in_a_release_is_named_with_the_bundle(
    cli: Cli, run_folder: Path, made_ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile(made_ledger, "ledger.sqlite")
    monkeypatch.setattr(writer, "_drawn", full)
    ended = cli("release", run_folder, "-o", "released", "--rows", 20)
    assert ended.code == 2 and "cannot write released: no space is left on the disk" in ended.err


def test_a_file_within_a_folder_has_the_name_that_it_would_get(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught, atomic_folder(tmp_path / "bundle") as temporary:
        with atomic_file(temporary / "data" / "synthetic.csv"):
            full()
    assert str(caught.value).startswith(f"cannot write {tmp_path}/bundle/data/synthetic.csv: no")


def test_a_full_disk_that_nothing_closer_words_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "_run", full)
    monkeypatch.setattr(group, "_is_full", lambda folder: folder == os.getcwd())
    ended = cli("plan")
    assert ended.code == 2 and os.getcwd() in ended.err and "no space is left" in ended.err


SHORT = [
    MemoryError(),
    OSError(errno.ENOMEM, "x"),
    ImportError("libtorch.so: failed to map segment from shared object"),
    ImportError("libx.so: cannot allocate memory in static TLS block: Cannot allocate memory"),
]


@pytest.mark.parametrize("error", SHORT)
def test_too_little_memory_is_not_a_broken_installation(
    error: Exception, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(name: str) -> Any:
        raise RuntimeError("wrapped") from error

    monkeypatch.setattr(dependencies, "import_module", load)
    with pytest.raises(InputError, match="too little memory to load") as caught:
        dependencies.load_fitting(networks=False)
    assert "install" not in str(caught.value) and "nothing was charged" in str(caught.value)

    def run(_: object) -> int:
        raise error

    monkeypatch.setattr(group, "_run", run)
    ended = cli("plan")
    assert ended.code == 1 and "out of memory" in ended.err and "unexpected" not in ended.err


def test_another_error_of_a_library_is_one_of_its_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(name: str) -> Any:
        raise ImportError("undefined symbol: x")

    monkeypatch.setattr(dependencies, "import_module", load)
    with pytest.raises(InputError, match="install it again"):
        dependencies.load_fitting(networks=False)


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_huge_cell_is_called_one(quote: str, tmp_path: Path) -> None:
    schema = Schema.load("demo")
    header = ",".join(column.name for column in schema.columns)
    place = tmp_path / "table.csv"
    place.write_text(f"{header}\n{quote}{'x' * (csv.field_size_limit() + 1)}\n")
    with pytest.raises(TableError, match="a cell has more than 131,072 characters") as caught:
        list(open_table(place, schema).chunks())
    assert "do not match" not in str(caught.value) and "line 2" in str(caught.value)


def test_a_ledger_that_was_restored_during_a_fit_is_named(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    shutil.copyfile(tmp_path / "ledger.sqlite", tmp_path / "backup.sqlite")
    entry = reserve(ledger, "ward", epsilon=1, model="mixture", population=100)
    busy = _unclosed(ledger, entry, InputError("the ledger is busy"))
    assert "the ledger is busy" in busy and "the run is valid" in busy
    shutil.copyfile(tmp_path / "backup.sqlite", tmp_path / "ledger.sqlite")
    restored = _unclosed(Ledger(tmp_path / "ledger.sqlite"), entry, InputError("no entry"))
    assert "restored from a backup or replaced" in restored and "is valid" not in restored


@pytest.mark.parametrize("how", ["emptied", "removed"])
def test_a_new_ledger_in_the_place_of_a_known_one_is_said(how: str, tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with warnings.catch_warnings():
        warnings.simplefilter("error", DpsynthWarning)
        earlier = Ledger.create(place)
    if how == "emptied":
        place.write_bytes(b"")
    else:
        place.unlink()
    with pytest.warns(DpsynthWarning, match=f"held ledger {earlier.id}.*still counts"):
        Ledger.create(place)


@pytest.mark.parametrize(
    "url", ["postgresql://[::1", "postgresql://h:port/x", "postgresql://h:99999999999/x"]
)
def test_a_malformed_url_is_refused_in_words(
    url: str, cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = cli("ledger", "create", url)
    assert created.code in (2, 4) and "unexpected" not in created.err
    monkeypatch.setenv("DPSYNTH_LEDGER", url)
    shown = cli("ledger", "show")
    assert shown.code in (2, 4) and "unexpected" not in shown.err
    monkeypatch.delenv("DPSYNTH_LEDGER")
    table = cli("schema", "check", "demo", f"{url}#stays")
    assert table.code == 2 and "unexpected" not in table.err
    with pytest.raises(InputError, match="dask://HOST:PORT"):
        DaskEngine(url.replace("postgresql", "dask"))


def run(
    words: list[bytes], folder: Path, **environment: bytes
) -> subprocess.CompletedProcess[bytes]:
    names = {key.encode(): value for key, value in environment.items()}
    return subprocess.run(
        [sys.executable, b"-m", b"dpsynth", *words],
        capture_output=True,
        cwd=os.fsencode(folder),
        env=os.environb | names,
    )


@pytest.mark.parametrize("way", ["argument", "variable", "folder"])
def test_a_name_that_is_not_utf_8_is_refused_before_the_charge(
    way: str, tmp_path: Path, cohort: Path, new_ledger: Path
) -> None:
    name = os.fsencode(tmp_path) + b"/na\xefve"
    os.mkdir(name)
    place = tmp_path / "ledger.sqlite"
    shutil.copyfile(new_ledger, place)
    words = b"fit demo cohort.csv --epsilon 3 --delta 1e-6 --model independent".split()
    words += [b"-o", name + b"/run" if way == "argument" else b"run", b"--dataset", b"ward"]
    folder = Path(os.fsdecode(name)) if way == "folder" else tmp_path
    more = {"DPSYNTH_POLICY": name} if way == "variable" else {}
    done = run(words, folder, DPSYNTH_LEDGER=os.fsencode(place), **more)
    assert done.returncode == 2 and b"is not UTF-8 text" in done.stderr, done.stderr
    assert done.stderr.isascii() and not Ledger(place).entries()
