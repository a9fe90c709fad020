"""Both formats of a table of a bundle: allowed cells, the same rows, and no byte beside them.

The rows of the Parquet table are written anew, and nothing of that is kept but two digests. If they
are those of the files, the CSV table holds the same rows and nothing else, and the Parquet table no
byte that its rows do not need.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth._util.strict_json import file_digest
from dpsynth._version import __version__
from dpsynth.bundle.checks.findings import Findings
from dpsynth.bundle.format import ManifestHeader, Provenance, table_path
from dpsynth.bundle.format.layout import MAX_CSV_ROWS, TEXT, TYPED
from dpsynth.encoding import Content, check_table, typed_frames
from dpsynth.errors import Problem
from dpsynth.schema import SyntheticTable
from dpsynth.tables import table_digests

_LIBRARY = re.compile(r"parquet-cpp-arrow version ([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})")
_HIDING = "is not written as a release writes it: something may hide in it"


@dataclass(frozen=True)
class TablePair:
    """The two files of one table of the bundle in ``folder``; findings go to ``findings``.

    Attributes:
        folder: of the bundle.
        found: the files that are there.
        table: its declaration.
        findings: what is found.
        other_version: whether another dpsynth or another build of its Parquet library may have
            written them, so that bytes cannot be compared.
    """

    folder: Path
    found: set[str]
    table: SyntheticTable
    findings: Findings
    other_version: bool

    @property
    def typed(self) -> str:
        """Where the Parquet table is."""
        return table_path(self.table.name, TYPED)

    @property
    def text(self) -> str:
        """Where the CSV table is."""
        return table_path(self.table.name, TEXT)

    def check(self, heading: ManifestHeader | None) -> None:
        """Check every cell of both, that they hold the same, and how they are written."""
        table = self._cells(self.typed)
        if table is None:
            if self.text in self.found:
                self._cells(self.text)
            return
        findings = self.findings
        if heading is not None and table.rows != (self._rows(heading) or table.rows):
            findings.add(self.typed, "has another number of rows than the manifest says")
        if self.text not in self.found and table.rows <= MAX_CSV_ROWS:
            findings.add(self.text, "is missing")
        with findings.step(self.typed):
            anew = self._anew(heading)
            if self.text in self.found:
                self._compare_text(table, anew.get(self.text))
            if self.typed in anew:
                self._compare_bytes(anew[self.typed])

    def _rows(self, heading: ManifestHeader) -> int | None:
        """Return the number of rows that the manifest states; None where it states none."""
        drawing = heading.drawing
        if isinstance(drawing, Provenance):
            return drawing.rows
        return drawing.patients if self.table.child is None else None

    def _cells(self, path: str) -> Content | None:
        """Check every cell of one of them; None if one is not as the schema allows."""
        before = len(self.findings.problems)
        content = None
        if path in self.found:
            with self.findings.step(path, f"every cell of {path} is one that the schema allows"):
                content, problems = check_table(self.folder / path, self.table)
                self.findings.problems += [
                    Problem(f"{path}: {problem.place}", problem.message) for problem in problems
                ]
        return content if len(self.findings.problems) == before else None

    def _anew(self, heading: ManifestHeader | None) -> dict[str, str]:
        """Return the digests of the files that a release would write of the same rows."""
        if heading is None or heading.writer != __version__:
            return {}
        paths = [path for path in (self.typed, self.text) if path in self.found]
        frames = typed_frames(self.folder / self.typed, self.table)
        kinds = [Path(path).suffix for path in paths]
        return dict(zip(paths, table_digests(frames, self.table.schema, kinds), strict=True))

    def _compare_text(self, table: Content, anew: str | None) -> None:
        """Compare the text table with the other; cell by cell only to say what differs."""
        findings = self.findings
        same = f"{self.text} has the same {table.rows} rows as {self.typed}"
        if anew == file_digest(self.folder / self.text):
            findings.checks += [f"every cell of {self.text} is one that the schema allows", same]
            return
        before = len(findings.problems)
        text = self._cells(self.text)
        if text is not None and text != table:
            findings.add(self.text, f"has other rows than {self.typed}")
        if len(findings.problems) > before:
            return
        if anew is not None:
            findings.add(self.text, _HIDING)
        else:
            findings.checks.append(same)

    def _compare_bytes(self, anew: str) -> None:
        """Compare the bytes of the Parquet table, if the library that wrote it is the one here."""
        findings = self.findings
        if anew == file_digest(self.folder / self.typed):
            findings.checks.append(f"{self.typed} contains nothing except its rows")
            return
        with pq.ParquetFile(self.folder / self.typed) as file:
            writer = str(file.metadata.created_by)
        known = _LIBRARY.fullmatch(writer)
        if known is None:
            findings.add(self.typed, "was written by a program that dpsynth does not use")
        elif self.other_version:
            findings.checks.append(
                f"{self.typed} may contain extra bytes: it is not written as on this machine"
            )
        elif known[1] != pa.cpp_version:
            findings.add(
                self.typed,
                f"says that pyarrow {known[1]} wrote it; this is {pa.cpp_version}, which cannot "
                "compare its bytes: install that version, or accept it (--other-version)",
            )
        else:
            findings.add(
                self.typed,
                f"{_HIDING}; if it was made on another kind of machine, accept it "
                "(--other-version)",
            )
