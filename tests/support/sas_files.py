"""A writer of SAS files for tests: that of ReadStat, which pyreadstat carries along."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

STRING, DOUBLE = 0, 5  # readstat_type_t
WIDTH = 64

Variable = tuple[str, int, str | None]  # name, type, format


@dataclass(frozen=True)
class Special:
    """A special missing value, such as .A."""

    letter: bytes


Row = Sequence[str | float | Special | None]


def write_sas(path: Path, variables: Sequence[Variable], rows: Sequence[Row]) -> Path:
    """Write a ``.sas7bdat`` file; numbers are doubles."""
    with _writing(path) as (library, writer):
        made = []
        for name, kind, form in variables:
            width = ctypes.c_size_t(WIDTH if kind == STRING else 8)
            one = ctypes.c_void_p(
                library.readstat_add_variable(writer, name.encode(), ctypes.c_int(kind), width)
            )
            if form is not None:
                library.readstat_variable_set_format(one, form.encode())
            made.append(one)
        library.readstat_begin_writing_sas7bdat(writer, None, ctypes.c_long(len(rows)))
        for row in rows:
            library.readstat_begin_row(writer)
            for one, cell in zip(made, row, strict=True):
                _insert(library, writer, one, cell)
            library.readstat_end_row(writer)
    return path


def write_catalog(path: Path, formats: Mapping[str, Mapping[float | str, str]]) -> Path:
    """Write a ``.sas7bcat`` file: labels by format; a name with a $ is a format of texts."""
    with _writing(path) as (library, writer):
        for name, labels in formats.items():
            kind = ctypes.c_int(STRING if name.startswith("$") else DOUBLE)
            one = ctypes.c_void_p(library.readstat_add_label_set(writer, kind, name.encode()))
            for value, label in labels.items():
                if isinstance(value, str):
                    library.readstat_label_string_value(one, value.encode(), label.encode())
                else:
                    number = ctypes.c_double(value)
                    library.readstat_label_double_value(one, number, label.encode())
        assert library.readstat_begin_writing_sas7bcat(writer, None) == 0
    return path


@contextmanager
def _writing(path: Path) -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p]]:
    """Open a writer of ReadStat whose bytes go to a file."""
    library = _library()
    callback = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    with path.open("wb") as file:

        @callback
        def sink(data: int, size: int, context: int) -> int:
            return file.write(ctypes.string_at(data, size))

        writer = ctypes.c_void_p(library.readstat_writer_init())
        library.readstat_set_data_writer(writer, sink)
        yield library, writer
        assert library.readstat_end_writing(writer) == 0
        library.readstat_writer_free(writer)


def _insert(
    library: ctypes.CDLL,
    writer: ctypes.c_void_p,
    one: ctypes.c_void_p,
    cell: str | float | Special | None,
) -> None:
    if cell is None:
        code = library.readstat_insert_missing_value(writer, one)
    elif isinstance(cell, Special):
        code = library.readstat_insert_tagged_missing_value(writer, one, ctypes.c_char(cell.letter))
    elif isinstance(cell, str):
        code = library.readstat_insert_string_value(writer, one, cell.encode())
    else:
        code = library.readstat_insert_double_value(writer, one, ctypes.c_double(cell))
    assert code == 0, code


def _library() -> ctypes.CDLL:
    spec = find_spec("pyreadstat")
    assert spec is not None and spec.origin is not None
    [file] = Path(spec.origin).parent.glob("_readstat_writer*.so")
    library = ctypes.CDLL(str(file))
    for name in ("readstat_writer_init", "readstat_add_variable", "readstat_add_label_set"):
        getattr(library, name).restype = ctypes.c_void_p
    return library
