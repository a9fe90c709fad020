"""Files and folders appear whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsynth.errors import InputError
from dpsynth.files import atomic, atomic_file, atomic_folder, write_atomically, write_new

from ..support.unprivileged import unprivileged


@pytest.fixture
def closed() -> Iterator[Path]:
    """Give a folder that may be read and not written to."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o555)
        yield Path(name)
        os.chmod(name, 0o755)


def test_a_file_appears_whole_and_replaces_an_older_one(tmp_path: Path) -> None:
    target = tmp_path / "new" / "table.csv.gz"
    with atomic_file(target) as temporary:
        assert temporary.name.endswith("table.csv.gz") and temporary.parent == target.parent
        temporary.write_text("first")
        assert not target.exists()
    write_atomically(target, b"second")
    assert target.read_text() == "second"
    assert os.listdir(target.parent) == ["table.csv.gz"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interrupted_file_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, error: type[BaseException]
) -> None:
    target = tmp_path / "table.csv"
    target.write_text("old")
    with pytest.raises(error), atomic_file(target) as temporary:
        temporary.write_text("half of the ne")
        raise error
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_an_interrupted_file_that_was_never_begun_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), atomic_file(tmp_path / "t"):
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_folder_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), atomic_folder(tmp_path / "run") as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "file").write_text("x")
        raise error
    assert os.listdir(tmp_path) == []


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "run") as temporary:
        (temporary / "file").write_text("x")
        assert not (tmp_path / "run").exists()
    assert (tmp_path / "run" / "file").read_text() == "x"
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_a_folder_never_takes_the_place_of_anything(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "run"
    if kind == "file":
        target.write_text("x")
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="exists"), atomic_folder(target):
        pytest.fail("the block ran")  # pragma: no cover


def test_a_folder_made_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "run"
    with pytest.raises(InputError, match="exists"), atomic_folder(target):
        target.mkdir()
    assert os.listdir(tmp_path) == ["run"]


def test_a_closed_folder_is_a_clear_error(closed: Path) -> None:
    with unprivileged():
        with pytest.raises(InputError, match=r"cannot write .*t: permission denied; choose"):
            write_atomically(closed / "t", b"x")
        with (
            pytest.raises(InputError, match="permission denied; choose"),
            atomic_folder(closed / "run"),
        ):
            pytest.fail("the block ran")  # pragma: no cover
        with pytest.raises(InputError, match="permission denied; choose"):
            atomic.check_vacant(closed / "deep" / "run")


def test_a_path_through_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="a part of the path is a file"):
        write_atomically(tmp_path / "file" / "t", b"x")
    with pytest.raises(InputError, match="a part of the path is a file"):
        atomic.check_vacant(tmp_path / "file" / "run")


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="no space is left on the disk; free some"),
        atomic_file(tmp_path / "t") as temporary,
    ):
        temporary.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert os.listdir(tmp_path) == []


def test_an_error_about_another_file_keeps_its_own_words(tmp_path: Path) -> None:
    source = tmp_path / "source.csv"
    with pytest.raises(PermissionError), atomic_file(tmp_path / "t"):
        raise PermissionError(errno.EACCES, "Permission denied", str(source))


def test_a_folder_is_no_place_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="it is a folder; name a file"):
        write_atomically(tmp_path, b"x")


def test_a_new_file_has_its_mode_and_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_new(path, b"first", mode=0o600)
    assert path.read_bytes() == b"first" and path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match="file exists; choose another name"):
        write_new(path, b"second")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="dangling exists"):
        write_new(tmp_path / "dangling", b"second")
    assert path.read_bytes() == b"first" and os.listdir(path.parent) == ["file"]
    assert sorted(os.listdir(tmp_path)) == ["dangling", "new"]


def test_of_two_who_write_a_new_file_at_once_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "check_vacant", lambda path: None)  # both found it vacant
    write_new(tmp_path / "file", b"first")
    with pytest.raises(InputError, match="cannot write .*: it exists"):
        write_new(tmp_path / "file", b"second")
    assert (tmp_path / "file").read_bytes() == b"first" and os.listdir(tmp_path) == ["file"]


def test_a_file_system_without_links_replaces_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Path, target: Path) -> None:
        raise OSError(errno.ENOTSUP, "not supported", str(source), None, str(target))

    monkeypatch.setattr(os, "link", refused)
    write_new(tmp_path / "t", b"x")
    assert (tmp_path / "t").read_bytes() == b"x" and os.listdir(tmp_path) == ["t"]
    with (
        pytest.raises(InputError, match="it exists"),
        atomic_file(tmp_path / "t", new=True) as temporary,
    ):
        temporary.write_bytes(b"another")
    assert (tmp_path / "t").read_bytes() == b"x" and os.listdir(tmp_path) == ["t"]
