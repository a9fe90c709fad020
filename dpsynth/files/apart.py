"""Private files stay apart from what is given away: they never lie in a run or a bundle.

Large ones that are needed for a while lie in a private folder of their own.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.files.atomic import check_vacant, clear_errors, remove_for_good, temporary_folder
from dpsynth.files.output_claim import check_room

_RELEASED = ("run.json", "state.safetensors", "datapackage.json", "privacy.json")
_ELSEWHERE = (
    "results computed from real rows must not go into a run or a bundle; choose another place"
)


def check_apart(path: str | Path, *released: Path) -> None:
    """Refuse a place for internal files in something that others are given, links followed.

    Args:
        path: the file or folder to be written; a folder that is there may itself be a bundle.
        released: runs and bundles that will be made, at paths where there may be nothing yet.

    Raises:
        InputError: the place, or a folder above it, is or will be a run or a bundle.
    """
    future = {ancestor for folder in released for ancestor in _both_ways(folder)}
    for place in _both_ways(path_of(path)):
        for folder in (place, *place.parents):
            relation = "is a folder" if folder == place else f"is inside {folder}, a folder"
            if folder in future:
                raise InputError(f"{path} {relation} that other people will receive: {_ELSEWHERE}")
            for name in _RELEASED:
                if os.path.lexists(folder / name):
                    raise InputError(f"{path} {relation} that contains {name}: {_ELSEWHERE}")


def check_no_bundle(path: str | Path) -> None:
    """Refuse a place inside a bundle, which holds the files of its manifest and no others.

    Raises:
        InputError: a folder above the place is a bundle.
    """
    for place in _both_ways(path_of(path)):
        for folder in place.parents:
            if os.path.lexists(folder / "datapackage.json"):
                raise InputError(
                    f"{path} is inside the bundle {folder}: an extra file would make its "
                    "verification fail; choose another place"
                )


def _both_ways(path: Path) -> Iterator[Path]:
    """Yield a path as it is written, and where its links lead."""
    yield Path(os.path.abspath(path))
    yield Path(os.path.realpath(path))


NAME = "dpsynth-shards"


@contextmanager
def scratch_folder(place: str | Path | None = None, room: int = 0) -> Iterator[Path]:
    """Give an empty folder for its owner alone (mode 0700); it is removed when the block ends.

    It is removed after an error too, also while others still write into it. If the process is
    killed, the next one that asks for such a folder in the same place removes it, see
    `dpsynth.files.atomic`.

    Args:
        place: the folder to make it in, which is made if it is not there; the system's folder of
            temporary files (``TMPDIR``) if None.
        room: bytes that its files may take together; 0 if that is not known.

    Raises:
        InputError: nothing can be written there, its disk has too little room, or the place is in a
            run or a bundle.

    Warns:
        DpsynthWarning: it could not be removed.

    >>> with scratch_folder() as folder:
    ...     (folder / "codes").write_bytes(b"...")
    3
    >>> folder.exists()
    False
    """
    target = Path(tempfile.gettempdir() if place is None else place) / NAME
    check_apart(target.parent)
    with ExitStack() as stack:
        with clear_errors(target):
            if not target.parent.is_dir():
                check_vacant(target)
                target.parent.mkdir(parents=True, exist_ok=True)
            folder = stack.enter_context(temporary_folder(target, private=True))
        try:
            check_room(folder, room)
            yield folder
        finally:
            if not remove_for_good(folder):
                warnings.warn(
                    f"{folder.parent} still has a folder whose name ends in {NAME}; remove it, "
                    "because it holds codes of private rows",
                    DpsynthWarning,
                    stacklevel=3,
                )
