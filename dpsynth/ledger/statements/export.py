"""The ledger for those who do not run dpsynth: one JSON document, or one page for a board.

Both are internal: they name people, and say when what was fitted on whose data. Neither holds the
ledger's key or the keyed digests of files that were read.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from dpsynth._util.strict_json import written
from dpsynth.errors import InputError
from dpsynth.files import check_apart, write_atomically
from dpsynth.ledger import LedgerFile
from dpsynth.ledger.statements.page import page
from dpsynth.ledger.statements.snapshot import Snapshot


def exported(
    ledger: LedgerFile, output: str | Path, *, html: bool = False, now: datetime | None = None
) -> Path:
    """Write a ledger into one file that only its owner can read; an existing file is replaced.

    Args:
        ledger: what to write.
        output: the file.
        html: a page for a board, in the place of JSON.
        now: the moment that it is about, with its time zone; default: this one. The same ledger
            and moment give the same bytes as long as no fit's process ends meanwhile.

    Raises:
        InputError: the file cannot be written, is a folder, or is the ledger itself.
        BudgetError: the ledger was changed by something else than dpsynth.
    """
    target = Path(output)
    if os.path.isdir(target):  # a root has no name that a temporary file could be named after
        raise InputError(f"cannot write {target}: it is a folder; name a file")
    if ledger.store.database.is_file(target):
        raise InputError(f"{target} is the ledger itself; name another file for the export")
    snapshot = Snapshot.of(ledger, now or datetime.now(UTC))
    if html:
        content = page(snapshot).encode()
    else:
        content = written(snapshot.to_dict())
    check_apart(target)
    write_atomically(target, content, private=True)
    return target
