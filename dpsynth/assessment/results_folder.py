"""A folder of internal results: an evaluation, an audit, or both, and one page for them.

Only its owner can read it, and it never lies inside a run or a bundle. A result takes the place of
an earlier one when it is all there, and not before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from dpsynth._util.strict_json import read_document, read_plain_bytes, written
from dpsynth.errors import DpsynthError, InputError
from dpsynth.files import (
    atomic_folder,
    check_apart,
    check_vacant,
    check_writable,
    save_somewhere,
    updating,
    write_private,
)

EVALUATION, AUDIT, PAGE = "evaluation.json", "audit.json", "internal.html"
COMPARISON, COMPARISON_PAGE = "comparison.json", "comparison.html"
HISTORIES, HISTORIES_PAGE = "histories.json", "histories.html"
_RESULTS = (
    {EVALUATION, PAGE},
    {AUDIT, PAGE},
    {EVALUATION, AUDIT, PAGE},
    {COMPARISON, COMPARISON_PAGE},
    {HISTORIES, HISTORIES_PAGE},
    {HISTORIES, HISTORIES_PAGE, AUDIT, PAGE},
)


def check_place(output: str | Path | None, overwrite: bool, name: str) -> None:
    """Refuse a folder that is there, unless ``name`` may go into it.

    An evaluation and an audit of the same table may share a folder; what has the same name gives
    way only if ``overwrite``, and if dpsynth wrote it.

    Raises:
        InputError: the folder is in the way.
    """
    if output is None:
        return
    folder = Path(output)
    check_apart(folder)
    check_writable(folder)
    if not folder.is_dir() or folder.is_symlink():
        check_vacant(folder)
        return
    names = {path.name for path in folder.iterdir()}
    if names not in _RESULTS or (COMPARISON in names) != (name == COMPARISON):
        if overwrite:
            raise InputError(
                f"{folder} holds no earlier result of this kind; choose another folder"
            )
        check_vacant(folder)
    elif name in names and not overwrite:
        check_vacant(folder)
    elif name in names and not _is_result(folder / name):
        raise InputError(
            f"{folder / name} is not a result that dpsynth wrote, so --force does not replace it; "
            "choose another folder"
        )


def _is_result(path: Path) -> bool:
    """Tell whether a document says that it is one of dpsynth's."""
    try:
        return str(read_document(path).get("format")).startswith("dpsynth-")
    except DpsynthError:
        return False


def beside(output: str | Path, name: str, table_sha256: str | None) -> dict[str, Any] | None:
    """Read the other result of a folder, which will share the page.

    Args:
        output: the folder.
        name: of the other one: `EVALUATION`, `HISTORIES` or `AUDIT`.
        table_sha256: of the synthetic table of the new result; None if it is about none.

    Raises:
        InputError: it is about another table, or is damaged.
    """
    path = Path(output) / name
    if not path.is_file():
        return None
    try:
        document = dict(read_document(path))
        other = (document.get("tables") or {}).get("synthetic") or {}
    except (DpsynthError, AttributeError, TypeError):
        raise InputError(f"{path} is damaged; choose another folder") from None
    if table_sha256 is not None and other and other.get("sha256") != table_sha256:
        raise InputError(f"{path} is about another synthetic table; choose another folder")
    return document


@contextmanager
def alone_at(output: str | Path) -> Iterator[None]:
    """Hold a folder of results while one half is read and both are written."""
    parent = Path(os.path.abspath(output)).parent
    with updating(parent) if parent.is_dir() else nullcontext():
        yield


def reason(error: Exception) -> str:
    """Say why something could not be done; a text that is not dpsynth's own may quote a cell."""
    return str(error) if isinstance(error, DpsynthError) else f"unexpected {type(error).__name__}"


def write_results(folder: Path, documents: Mapping[str, Any], pages: Mapping[str, str]) -> None:
    """Write a folder for its owner only; an earlier one gives way when all is ready.

    Files of an earlier result that are not written anew, such as those of an audit, stay.

    Raises:
        InputError: it cannot be written; the results are saved elsewhere, and the error says where.
    """
    saved = save_somewhere(folder, lambda place: _write(place, documents, pages))
    saved.require_target("the result", "What was spent on it stays spent")


def _write(folder: Path, documents: Mapping[str, Any], pages: Mapping[str, str]) -> None:
    earlier = folder.with_name(f".{folder.name}.earlier")
    if earlier.is_dir() and {path.name for path in earlier.iterdir()} in _RESULTS:
        shutil.rmtree(earlier)  # left behind by a process that was killed
    if earlier.exists():
        raise InputError(f"{earlier} is in the way; remove it")
    if folder.is_dir():
        folder.rename(earlier)
    try:
        with atomic_folder(folder, private=True) as temporary:
            for name, document in documents.items():
                write_private(temporary / name, written(document))
            for name, page in pages.items():
                write_private(temporary / name, page.encode())
            if earlier.is_dir():
                for path in earlier.iterdir():
                    if path.name not in {*documents, *pages}:
                        content = read_plain_bytes(path, largest=2**30)
                        write_private(temporary / path.name, content)
    except BaseException:
        if earlier.is_dir() and not folder.exists():
            earlier.rename(folder)
        raise
    if earlier.is_dir():
        shutil.rmtree(earlier)
