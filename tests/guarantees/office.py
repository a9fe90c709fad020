"""An office at work: commands are run in a folder, and all that they leave is searched."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .taint import Finding, Search
from .tainted import SOURCE, TYPED, Sources

Shell = Callable[..., Any]
HOMES = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
ROWS = ["--rows", 700]
SCREEN = frozenset({"source", "typed source"})  # canaries that a screen may show


class Office:
    """A folder with the private table in two files, and the search of all that appears there.

    Attributes:
        folder: where commands run.
        search: what was found so far, on the screen and, after `look`, in the folder.
    """

    def __init__(self, made: Sources, folder: Path, shell: Shell, log: Any, screen: Any) -> None:
        self.folder = made.write(folder)
        self.search = Search(made.canaries)
        self._shell, self._log, self._screen = shell, log, screen
        self._inputs = [path for path in folder.iterdir() if path.is_file()]

    def run(self, *arguments: object, code: int = 0, may_show: frozenset[str] = SCREEN) -> Any:
        """Run a command; search its output, warnings and log records of every level.

        What libraries write past Python, to the process's own output, is searched as well.
        """
        self._log.clear()
        output = self._shell(self.folder, *arguments)
        assert output.code == code, output
        command = " ".join(map(str, arguments[:2]))
        records = [f"{logging.Formatter().format(r)} {r.args}" for r in self._log.records]
        texts = {"out": output.out, "err": output.err, "log": "\n".join(records)}
        for place, text in {**texts, "process": "".join(self._screen.readouterr())}.items():
            part = Search(self.search.canaries)
            part.content(f"{place} of {command}", text.encode())
            self.search.found |= {item for item in part.found if item.canary not in may_show}
            self.search.files += part.files
            self.search.size += part.size
        return output

    def fit(self, model: str, source: str = SOURCE, run: str = "run", **options: Any) -> Any:
        """Fit a model to one of the files."""
        budget = ["--dataset", "hospital", "--epsilon", 2, "--delta", "1e-5", "--model", model]
        also = options.pop("also", [])
        files = ["hospital.schema.yaml", source, "-o", run]
        return self.run("fit", *files, *budget, *also, **options)

    def look(self) -> Search:
        """Search every file in the folder but the inputs: ledger, homes and temporary ones too."""
        return self.search.folder(self.folder, besides=self._inputs)

    def everything(self, model: str) -> Search:
        """Go the whole way from both files to bundles, as text and as JSON; search it all."""
        self.fit(model)
        self.fit(model, TYPED, "second", also=["--json"])
        for arguments in (
            ["sample", "run", "--seed", 1, "-o", "drawn.parquet", *ROWS],
            ["sample", "run", "--seed", 2, "-o", "drawn.csv", "--plain", *ROWS],
            ["sample", "second", "-o", "drawn.csv.gz", "--where", "age > 50", "--json", *ROWS],
            ["release", "run", "-o", "bundle", *ROWS],
            ["release", "second", "--table", "drawn.csv.gz", "-o", "other", "--json"],
            ["verify", "bundle"],
            ["verify", "other", "--json"],
            ["ledger", "show"],
            ["ledger", "show", "--json"],
            ["ledger", "verify"],
        ):
            self.run(*arguments)
        return self.look()


def leaks(search: Callable[[str], Search]) -> set[Finding]:
    """Strong findings of a search, and weak ones that two repetitions show at the same place.

    Args:
        search: does the work in a folder of this name, with fresh noise, and looks for canaries.
    """
    first = search("first")
    weak = first.weak
    for name in ("second", "third"):
        if weak:
            weak = weak & search(name).found
    return first.strong | weak
