"""The file of an Excel workbook: what it is, before any of its rows is read.

A workbook is a ZIP archive of XML. Sizes are limited before anything is unpacked: the archive
states them, and Python's reader unpacks no more than it states.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.dependencies import need
from dpsynth.errors import TableError

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384  # of Excel
MAX_MEMBER = 4 * 2**30  # bytes, unpacked
MAX_TEXTS = 2**30  # bytes of the texts that cells share: they are kept in memory
MAX_RATIO = 1_000  # real workbooks are packed to a tenth or a twentieth
MIN_CHECKED = 2**24  # bytes; what is smaller may be packed as densely as it likes

_OLE = b"\xd0\xcf\x11\xe0"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


@dataclass(frozen=True)
class WorkbookFile:
    """A workbook that can be opened safely."""

    path: Path

    def check(self) -> None:
        """Refuse what is not a workbook of the current format, or unpacks to too much.

        Raises:
            TableError: with the reason and what to do.
        """
        with self.path.open("rb") as file:
            start = file.read(len(_OLE))
            if start == _OLE:
                if _ENCRYPTED in file.read(2**26):
                    raise TableError(
                        f"{self.path} is encrypted: open it in Excel, remove its password (File, "
                        "Info, Protect Workbook), and save it on an encrypted disk"
                    )
                raise TableError(f"{self.path} is an old workbook (.xls); save it as .xlsx")
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise TableError(f"{self.path} is not an Excel workbook, or it is damaged") from None
        if any(member.flag_bits & 1 for member in members):
            raise TableError(f"{self.path} is encrypted; save it without a password")
        for member in members:
            limit = MAX_TEXTS if member.filename.endswith("sharedStrings.xml") else MAX_MEMBER
            dense = member.file_size > MAX_RATIO * max(1, member.compress_size)
            if member.file_size > limit or (dense and member.file_size > MIN_CHECKED):
                raise TableError(
                    f"{self.path} unpacks to more than a table of its size can hold; save the "
                    "sheet as CSV in Excel"
                )

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the workbook for reading, with the stored values of its formulas.

        Raises:
            TableError: it is damaged. The reader's own text is withheld: it may quote cells.
        """
        self.check()
        need("openpyxl")
        import openpyxl

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they may quote what the file holds
                book = openpyxl.load_workbook(
                    self.path, read_only=True, data_only=True, keep_links=False
                )
        except Exception:  # whatever a damaged archive does to its reader
            raise TableError(f"{self.path} is not an Excel workbook, or it is damaged") from None
        try:
            yield book
        finally:
            book.close()

    def sheet(self, name: str | None) -> str:
        """Return the name of the sheet that is read: the one that is named, or the only one.

        Raises:
            TableError: there is no such sheet, or there are several and none is named. Sheets are
                not listed: their names may be private.
        """
        with self.opened() as book:
            names = [sheet.title for sheet in book.worksheets]
        if name is not None:
            if name not in names:
                raise TableError(
                    f"{self.path} has no sheet with the name given after the #; write it as on the "
                    "tab of the sheet, upper and lower case included"
                )
            return name
        if len(names) != 1:
            raise TableError(
                f"{self.path} has {len(names)} sheets; name the one to read: "
                f"'{self.path.name}#NAME'"
            )
        return str(names[0])
