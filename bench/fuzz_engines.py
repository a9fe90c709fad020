"""Where inputs come from: seeded chance, or libFuzzer, which looks for code not yet reached.

Either way an input is made by a target from a `Random`. For libFuzzer its bytes are the choices, so
that what it keeps and changes are choices, and not the bytes of a file, which few changes survive.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

from fuzz_children import Tell
from fuzz_failures import keep
from fuzz_oracle import Ear, judge
from fuzz_targets import Target

LONGEST = 4096  # bytes of choices
PLANTED = 64


class Choices(Random):
    """Choices that follow bytes; all zero when these are used up."""

    def __new__(cls, content: bytes) -> Choices:
        """Make one without a seed."""
        return super().__new__(cls)

    def __init__(self, content: bytes) -> None:
        """Take the bytes."""
        super().__init__(0)
        self._content, self._place = content, 0

    def getrandbits(self, bits: int) -> int:
        """Take the next bytes as a number."""
        size = -(-bits // 8)
        piece = self._content[self._place : self._place + size]
        self._place += size
        return int.from_bytes(piece, "big") >> (8 * size - bits) if len(piece) == size else 0

    def random(self) -> float:
        """Take two bytes as a share of one."""
        return self.getrandbits(16) / 2**16


def by_chance(
    target: Target, numbers: Sequence[int], seed: int, seconds: float, scratch: Path, kept: Path
) -> Callable[[Tell], None]:
    """Return the work of a child: the inputs of these numbers, each from a seed of its own."""

    def work(tell: Tell) -> None:
        with Ear().listening() as ear:
            for number in numbers:
                name = f"{seed}:{target.name}:{number}"
                try:
                    ways = target.make(Random(name), emptied(scratch))
                except Exception as error:  # one input is lost, and counts as failed
                    said = {"seconds": 0.0, "said": f"{name}: {error}"}
                    said |= {"outcome": "NotMade", "failure": "the fuzzer could not make it"}
                    tell({"number": number, **said})
                    continue
                verdict = judge(ways, ear, seconds=seconds)
                if verdict.failure is not None:
                    keep(kept / f"{target.name}-{number}", scratch, name, verdict, ways, ear)
                tell({"number": number, **asdict(verdict)})

    return work


def by_coverage(
    target: Target, numbers: range, seed: int, seconds: float, scratch: Path, kept: Path
) -> Callable[[Tell], None]:
    """Return the work of a child: so many inputs that libFuzzer chooses."""

    def work(tell: Tell) -> None:
        import atheris

        count = numbers.start
        ear = Ear()

        def one(content: bytes) -> None:
            nonlocal count
            ways = target.make(Choices(content), emptied(scratch))
            verdict = judge(ways, ear, seconds=seconds)
            if verdict.failure is not None:
                place = kept / f"{target.name}-guided-{count}"
                keep(place, scratch, content.hex(), verdict, ways, ear)
            tell({"number": count, **asdict(verdict)})
            count += 1

        corpus = scratch.with_name("corpus")
        shutil.rmtree(corpus, ignore_errors=True)
        corpus.mkdir()
        for number in range(PLANTED):
            content = Random(f"{seed}:{number}").randbytes(256 * (1 + number % 8))
            (corpus / str(number)).write_bytes(content)
        with ear.listening():
            options = [
                f"-atheris_runs={len(numbers)}",
                f"-seed={seed + count + 1}",
                f"-max_len={LONGEST}",
            ]
            options += ["-rss_limit_mb=0", "-timeout=0", "-verbosity=0"]
            atheris.Setup([sys.argv[0], *options, str(corpus)], one)
            try:
                atheris.Fuzz()
            except SystemExit as stop:  # libFuzzer's own way of coming to an end
                if stop.code:
                    raise

    return work


def emptied(folder: Path) -> Path:
    """Return a folder that is there and empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def replayed(target: Target, name: str, folder: Path) -> None:
    """Make an input again in a folder from what `keep` noted of it: its seed, or its choices."""
    chosen = Random(name) if ":" in name else Choices(bytes.fromhex(name))
    target.make(chosen, emptied(folder))


def noted(place: Path) -> str:
    """Read from a kept failure what makes it again."""
    return str(json.loads((place / "failure.json").read_text())["seed"])
