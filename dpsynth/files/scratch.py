"""A private folder for large files that are needed for a while, and removed whatever happens."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dpsynth.errors import DpsynthWarning
from dpsynth.files.apart import check_apart
from dpsynth.files.atomic import check_vacant, clear_errors, remove_for_good, temporary_folder
from dpsynth.files.output_claim import check_room

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
