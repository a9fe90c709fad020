"""Code lists from the office's own copy: a CSV file, or a folder of an OMOP vocabulary.

A schema file names them by path. What is read goes into the schema's document, so that a schema,
its digest and a run do not depend on the file any more. The texts of a licensed system are left out
unless ``displays: true`` asks for them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.messages import shown
from dpsynth._util.whole_files import require_plain
from dpsynth.errors import InputError, Problem, SchemaError
from dpsynth.schema.code_systems.code_tree import CodeTree

LIST, OMOP, DISPLAYS = "list", "omop", "displays"
_MAX_HEADER = 2**16  # characters
CHUNK = 500_000  # rows at a time: a table of relations has millions


def with_code_lists(document: Any, source: str) -> Any:
    """Put the code lists that a schema names by path into its document.

    Args:
        document: as parsed; of one table, or of linked ones.
        source: the schema file: paths are relative to its folder.

    Raises:
        SchemaError: a list cannot be read; the message names the field.
    """
    if not isinstance(document, Mapping):
        return document
    problems: list[Problem] = []
    tables = document.get("resources")
    if isinstance(tables, list):
        filled = dict(document)
        filled["resources"] = [
            _of_table(table, f"resources[{place}].schema.", source, problems)
            for place, table in enumerate(tables)
        ]
    else:
        filled = _of_schema(document, "", source, problems)
    if problems:
        raise SchemaError(source, problems)
    return filled


def _of_table(table: Any, place: str, source: str, problems: list[Problem]) -> Any:
    if not isinstance(table, Mapping) or "schema" not in table:
        return table
    return {**table, "schema": _of_schema(table["schema"], place, source, problems)}


def _of_schema(schema: Any, place: str, source: str, problems: list[Problem]) -> Any:
    if not isinstance(schema, Mapping) or not isinstance(schema.get("fields"), list):
        return schema
    fields = list(schema["fields"])
    for i, field in enumerate(fields):
        own = field.get("dpsynth") if isinstance(field, Mapping) else None
        codes = own.get("codes") if isinstance(own, Mapping) else None
        if not isinstance(own, Mapping) or not isinstance(codes, Mapping):
            continue
        key = next((name for name in (LIST, OMOP) if _is_path(codes.get(name))), None)
        if key is None or codes.get("discover") is True:  # one of the two, the reader says
            continue
        try:
            listed = _read(codes, Path(source).parent)
        except (InputError, ValueError) as error:
            at = f"{place}fields[{i}] {shown(field.get('name'))}.dpsynth.codes.{key}"
            problems.append(Problem(at, str(error)))
            continue
        rest = {name: value for name, value in codes.items() if name not in (LIST, OMOP, DISPLAYS)}
        content = {"codes": list(listed.codes), "parents": list(listed.parents)}
        content |= {"displays": list(listed.displays)} if listed.displays else {}
        fields[i] = {**field, "dpsynth": {**own, "codes": {**rest, LIST: content}}}
    return {**schema, "fields": fields}


def _is_path(value: object) -> bool:
    return isinstance(value, str)


def _read(codes: Mapping[str, Any], folder: Path) -> CodeTree:
    displays = codes.get(DISPLAYS, False)
    if not isinstance(displays, bool):
        raise ValueError(f"displays: true or false is expected, not {shown(displays)}")
    if _is_path(codes.get(LIST)):
        return read_code_list(folder / codes[LIST], displays=displays)
    return read_omop(folder / codes[OMOP], str(codes.get("system")), displays=displays)


def read_code_list(path: Path, *, displays: bool = False) -> CodeTree:
    """Read ``code, display, parent``; the last two columns may be missing.

    Args:
        path: a CSV file in UTF-8, with commas, semicolons or tabs.
        displays: whether what codes stand for is kept: it goes into the published dictionary.

    Raises:
        InputError: the file cannot be read, or has no column ``code``.
        ValueError: as `CodeTree.of`.
    """
    table = pd.concat(_parts(path, sep=_separator(path), chunksize=CHUNK))
    if "code" not in table:
        raise InputError(
            f"code list {path} has no column 'code'; its header is code, display, parent"
        )
    columns = {name: table[name].tolist() for name in ("parent", "display") if name in table}
    return CodeTree.of(
        table["code"].tolist(),
        columns.get("parent", ()),
        columns.get("display", ()) if displays else (),
    )


def read_omop(folder: Path, vocabulary: str, *, displays: bool = False) -> CodeTree:
    """Read one vocabulary of a folder of OMOP vocabularies, as OHDSI Athena gives them.

    Parents are the concepts of the same vocabulary that a concept ``Is a``; of several, the first
    in the order of their codes.

    Args:
        folder: with ``CONCEPT.csv`` and ``CONCEPT_RELATIONSHIP.csv``.
        vocabulary: its ``vocabulary_id``, such as ``ICD10CM`` or ``SNOMED``.
        displays: as of `read_code_list`.

    Raises:
        InputError: a file cannot be read or lacks a column, or the vocabulary has no concept.
        ValueError: as `CodeTree.of`.
    """
    needed = ("concept_id", "concept_name", "vocabulary_id", "concept_code")
    own = _omop(folder / "CONCEPT.csv", needed, {"vocabulary_id": {vocabulary}})
    own = own.sort_values("concept_code")
    if own.empty:
        raise InputError(
            f"{folder / 'CONCEPT.csv'} has no concept of vocabulary {shown(vocabulary)}"
        )
    code_of = dict(zip(own["concept_id"], own["concept_code"], strict=True))
    ends, known = ("concept_id_1", "concept_id_2"), set(code_of)
    wanted = {"relationship_id": {"Is a"}, ends[0]: known, ends[1]: known}
    upward = _omop(folder / "CONCEPT_RELATIONSHIP.csv", tuple(wanted), wanted)
    parents: dict[str, str] = {}
    pairs = zip(upward[ends[0]], upward[ends[1]], strict=True)
    for code, parent in sorted((code_of[low], code_of[high]) for low, high in pairs):
        parents.setdefault(code, parent)
    codes = own["concept_code"].tolist()
    names = own["concept_name"].tolist() if displays else ()
    return CodeTree.of(codes, [parents.get(code, "") for code in codes], names)


def _separator(path: Path) -> str:
    """Return what stands between the words of the header."""
    require_plain(path, noun="code list")
    try:
        with path.open(encoding="utf-8-sig") as file:
            header = file.readline(_MAX_HEADER)
    except (OSError, UnicodeError):  # said when the file is read
        return ","
    return max((",", ";", "\t"), key=header.count)


def _omop(path: Path, needed: tuple[str, ...], wanted: Mapping[str, set[str]]) -> pd.DataFrame:
    """Return the rows of a file of OMOP whose cells are among the wanted ones."""
    parts = []
    for part in _parts(path, sep="\t", quoting=csv.QUOTE_NONE, chunksize=CHUNK):
        missing = [name for name in needed if name not in part]
        if missing:
            raise InputError(f"{path} has no column {shown(missing[0])}")
        kept = np.logical_and.reduce([part[name].isin(cells) for name, cells in wanted.items()])
        parts.append(part.loc[kept, list(needed)])
    return pd.concat(parts)


def _parts(path: Path, **how: Any) -> Iterator[pd.DataFrame]:
    """Read a file as text, every cell as it is written."""
    require_plain(path, noun="code list")
    try:
        with pd.read_csv(
            path, dtype=str, keep_default_na=False, encoding="utf-8-sig", **how
        ) as parts:
            for part in parts:
                yield part.rename(columns=lambda name: str(name).strip().lower())
    except OSError as error:
        raise InputError(f"code list {path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # also of pandas' parser and of decoding
        raise InputError(f"code list {path} is not a CSV file in UTF-8") from error
