"""Files that are read whole take the memory that they need, not that of the largest allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.whole_files import _read, read_whole
from dpsynth.errors import InputError


def test_a_small_file_takes_no_more_memory_than_it_has_bytes(tmp_path: Path) -> None:
    """The broken version asks for all bytes at once, and Python reserves room for them first."""
    path = tmp_path / "state"
    path.write_bytes(b"few bytes")
    with path.open("rb") as file, pytest.raises((MemoryError, OverflowError)):
        file.read(2**60)
    assert read_whole(path, largest=2**60) == b"few bytes"


@pytest.mark.parametrize("size", [0, 1, 9])
def test_the_limit_is_exact(tmp_path: Path, size: int) -> None:
    path = tmp_path / "document"
    path.write_bytes(b"x" * size)
    assert read_whole(path, largest=size) == b"x" * size
    if size:
        with pytest.raises(InputError, match="is larger than"):
            read_whole(path, largest=size - 1)


def test_a_file_that_grows_is_read_on_up_to_the_limit(tmp_path: Path) -> None:
    """The size that the system reports may be out of date."""
    path = tmp_path / "document"
    path.write_bytes(b"x" * 9)
    with path.open("rb") as file:
        assert _read(file, 1, 20) == b"x" * 9
        file.seek(0)
        assert _read(file, 1, 4) == b"x" * 5
