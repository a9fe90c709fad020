"""Private files stay apart from what is given away: they never lie in a run or a bundle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth.errors import InputError

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
