"""An office to break: a folder with a table, a run and a ledger, used by commands alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

COMMAND = [sys.executable, "-m", "dpsynth"]
BUDGET = "--dataset demo --epsilon 1 --delta 1e-6 --model independent --quiet".split()
FIT = ["fit", "demo", "source.csv", *BUDGET, "-o"]
WELL_ENDED = (0, 2, 3, 4, 129, 130, 131, 141, 143)
STATE = "state"  # a folder: what the user's commands remember of ledgers


@dataclass
class Office:
    """A folder with a table, a run, a ledger, and what was found wrong.

    Attributes:
        folder: where commands run.
        found: what should not be, in words.
    """

    folder: Path
    found: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path, found: list[str] | None = None, *, patients: int = 3_000) -> Office:
        """Simulate patients, and make a ledger."""
        from dpsynth.tables.simulated import simulate

        office = cls(folder, [] if found is None else found)
        simulate(patients, seed=1).to_csv(folder / "source.csv", index=False)
        office.expect(["ledger", "create", "ledger.sqlite"], 0)
        return office

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the office's commands: nothing of the user's own is read or written."""
        own = {"DPSYNTH_LEDGER": "ledger.sqlite", "OMP_NUM_THREADS": "1"}
        return os.environ | own | {"XDG_STATE_HOME": str(self.folder / STATE)}

    def start(self, words: list[str], **more: object) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [*COMMAND, *words],
            **{  # type: ignore[call-overload]
                "cwd": self.folder,
                "env": self.environment,
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                **more,
            },
        )

    def run(self, words: list[str], **more: object) -> tuple[int, str, str]:
        """Carry a command out; return its exit code, output and messages."""
        return self.ended(self.start(words, **more), " ".join(words[:4]))

    def ended(self, process: subprocess.Popen[str], name: str) -> tuple[int, str, str]:
        """Wait for a command that nobody killed; it must end in words."""
        try:
            out, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.found.append(f"{name}: no end after five minutes")
        code = process.returncode
        if code not in WELL_ENDED or "unexpected" in err or "Traceback" in err:
            self.found.append(f"{name}: exit code {code}: {err.strip()[-300:]}")
        return code, out, err

    def expect(self, words: list[str], *codes: int) -> str:
        """Carry a command out that must end with one of these codes."""
        got, out, err = self.run(words)
        if got not in codes:
            self.found.append(f"{' '.join(words[:4])}: {got} in place of {codes}: {err[-300:]}")
        return out

    def seconds(self, words: list[str], *codes: int) -> float:
        """Carry a command out; return how long it took."""
        begun = time.monotonic()
        self.expect(words, *codes)
        return time.monotonic() - begun

    def entries(self) -> list[dict[str, object]]:
        """Verify the ledger, and return its entries."""
        self.expect(["ledger", "verify"], 0)
        self.expect(["ledger", "export", "-o", "ledger.json"], 0)
        document = json.loads((self.folder / "ledger.json").read_text())
        return list(document["entries"])

    def leftovers(self) -> list[Path]:
        """Return temporary names; private ones must be for their owner alone, from the start."""
        tops = [path for path in self.folder.rglob(".tmp-*") if ".tmp-" not in str(path.parent)]
        for top in tops:
            private = any(word in str(top) for word in ("split", "work", "internal", "-int"))
            held = (top, *top.rglob("*")) if top.is_dir() else (top,)
            if private and any(path.lstat().st_mode & 0o077 for path in held if path.exists()):
                if top.is_file() or top.lstat().st_mode & 0o077:
                    self.found.append(f"{top.name} is open to others")
        return tops
