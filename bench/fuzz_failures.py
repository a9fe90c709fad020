"""Inputs that failed: kept in a folder with the seed that gives them, and made smaller."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fuzz_oracle import Ear, Verdict, judge

TRIES = 150
HASTE = 2.0  # seconds of one try
LARGEST = 2**20  # bytes of a file that is kept


def keep(
    place: Path,
    folder: Path,
    seed: str,
    verdict: Verdict,
    ways: Sequence[Callable[[], Any]],
    ear: Ear,
) -> None:
    """Keep a failing input, and a smaller one that fails likewise if it is a single file.

    Args:
        place: folder to keep it in.
        folder: the input, as it lies there; the smaller one takes its place.
        seed: what makes the input again.
        verdict: what is wrong.
        ways: of reading the folder.
        ear: that listens.
    """
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "failure.json").write_text(json.dumps({"seed": seed, **asdict(verdict)}, indent=2))
    _copy(folder, place / "input")
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    if len(files) != 1 or verdict.outcome in ("Hang", "MemoryError"):
        return
    [file] = files
    content = file.read_bytes()

    def fails(smaller: bytes) -> bool:
        file.write_bytes(smaller)
        again = judge(ways, ear, seconds=HASTE)
        return (again.outcome, again.failure) == (verdict.outcome, verdict.failure)

    smaller = reduced(content, fails)
    file.write_bytes(smaller)
    if len(smaller) < len(content):
        (place / f"smaller{file.suffix}").write_bytes(smaller)


def keep_fatal(place: Path, made: Callable[[Path], Any], seed: str, death: str) -> None:
    """Keep an input that ended the process which read it: it is made once more."""
    shutil.rmtree(place, ignore_errors=True)
    (place / "input").mkdir(parents=True)
    verdict = Verdict("Died", 0.0, death)
    (place / "failure.json").write_text(json.dumps({"seed": seed, **asdict(verdict)}, indent=2))
    made(place / "input")


def reduced(content: bytes, fails: Callable[[bytes], bool], *, tries: int = TRIES) -> bytes:
    """Remove pieces of content, large ones first, as long as it still fails.

    The method is a simple form of Zeller and Hildebrandt, Simplifying and Isolating
    Failure-Inducing Input, IEEE Transactions on Software Engineering 28, 2002.
    """
    width = len(content) // 2
    while width and tries:
        place = 0
        while place < len(content) and tries:
            tries -= 1
            smaller = content[:place] + content[place + width :]
            if fails(smaller):
                content = smaller
            else:
                place += width
        width //= 2
    return content


def _copy(folder: Path, place: Path) -> None:
    """Copy plain files; of others, and of huge ones, note the name."""
    strange = []
    for path in sorted(folder.rglob("*")):
        to = place / path.relative_to(folder)
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            strange.append(str(to.relative_to(place)))
        elif path.is_file() and path.stat().st_size <= LARGEST:
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
        elif path.is_file():
            strange.append(str(to.relative_to(place)))
    if strange:
        (place.parent / "not-copied.txt").write_text("\n".join(strange))
