"""A request: which statistics an office wants of a table, read strictly from a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_yaml import SUFFIXES
from dpsynth._util.written_files import read_document
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.schema import AnySchema, LinkedSchema, Schema
from dpsynth.schema.files import MAX_FILE
from dpsynth.stats.entries import Reader, check_keys, read_any_schema
from dpsynth.stats.linked import TABLE, LinkedTables
from dpsynth.stats.statistic import Statistic

KEYS = ("schema", "confidence", "statistics")
MAX_STATISTICS = 200
MAX_CONFIDENCE = 0.999999  # nearer 1, an interval has no end


@dataclass(frozen=True, eq=False)
class Request:
    """Statistics of one table, or of linked ones.

    Attributes:
        document: as it was written, with the defaults filled in.
        schema: of the table; of linked tables, that of patients.
        codec: of the schema.
        confidence: of every interval.
        statistics: in order.
        tables: the table that each of them is of; None where there is one table alone.
        linked: linked tables; None where there is one table alone.
    """

    document: dict[str, Any]
    schema: Schema
    codec: Codec
    confidence: float
    statistics: tuple[Statistic, ...]
    tables: tuple[str | None, ...] = ()
    linked: LinkedTables | None = None

    @property
    def facts(self) -> AnySchema:
        """The schema of the table, or of all linked ones: what is certified and charged."""
        return self.schema if self.linked is None else self.linked.schema

    def __repr__(self) -> str:
        """Name the schema."""
        return f"<Request of {len(self.statistics)} statistics of schema {self.facts.name}>"

    @classmethod
    def load(cls, path: str | Path) -> Request:
        """Read a request from YAML or JSON; the schema's path is relative to it.

        Raises:
            InputError: the document is not exactly a request, with the place and what to do.
        """
        place = path_of(path, "the path of a request")
        document = _document(place)
        if not isinstance(document, dict):
            raise InputError(f"{place} is not a request: it must be an object with statistics")
        where = document.get("schema")
        if isinstance(where, str) and (place.parent / where).is_file():
            document = document | {"schema": str(place.parent / where)}
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Request:
        """Read a request from plain values; its schema may be a name, a path, or a document.

        Raises:
            InputError: as `load`.

        Example:
            >>> request = Request.from_dict({"schema": "demo", "statistics": [
            ...     {"name": "patients by sex", "count": "patients", "by": ["sex"]},
            ...     {"name": "age", "quantiles": "age", "shares": [0.25, 0.5, 0.75]}]})
            >>> [statistic.name for statistic in request.statistics]
            ['patients by sex', 'age']
        """
        check_keys(document, "the request", KEYS, ("schema", "statistics"))
        facts = read_any_schema(document["schema"])
        confidence = document.get("confidence", 0.95)
        if isinstance(confidence, bool) or not isinstance(confidence, int | float):
            raise InputError("confidence must be a number such as 0.95")
        if not 0.5 <= confidence <= MAX_CONFIDENCE:
            raise InputError(f"confidence must be at least 0.5 and at most {MAX_CONFIDENCE}")
        entries = document["statistics"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_STATISTICS:
            raise InputError(f"statistics must be a list of 1 to {MAX_STATISTICS} entries")
        if isinstance(facts, LinkedSchema) and any(
            column.discovers
            for table in (facts.patients, *(child.schema for child in facts.children))
            for column in table.modelled
        ):
            raise InputError(
                "statistics of linked tables need declared codes; list them in the schema, and "
                "remove discover"
            )
        linked = LinkedTables.of(facts) if isinstance(facts, LinkedSchema) else None
        if isinstance(facts, LinkedSchema):
            assert linked is not None
            read = [_of_table(linked, entry, place) for place, entry in enumerate(entries, 1)]
            schema, codec = facts.patients, linked.codec.patients
        else:
            schema, codec = facts, Codec(facts)
            reader = Reader(schema, codec)
            read = [(None, reader.statistic(entry, n)) for n, entry in enumerate(entries, 1)]
        tables, found = tuple(name for name, _ in read), tuple(one for _, one in read)
        names = [one.name.lower() for one in found]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"two statistics are called '{name}'; give each its own name")
        whole = {
            "schema": facts.to_dict(),
            "confidence": float(confidence),
            "statistics": [dict(entry) for entry in entries],
        }
        return cls(whole, schema, codec, float(confidence), found, tables, linked)


def _of_table(linked: LinkedTables, entry: Any, number: int) -> tuple[str | None, Statistic]:
    """Read an entry about one of linked tables."""
    if not isinstance(entry, Mapping):
        entry, name = {}, linked.schema.patients.name
    else:
        try:
            name = linked.table_of(entry)
        except InputError as error:
            raise InputError(f"statistic {number}: {error}") from None
    table = linked.asked[name]
    rest = {key: value for key, value in entry.items() if key != TABLE}
    return name, Reader(table.schema, table.codec).statistic(rest, number)


def is_request(path: str | Path) -> bool:
    """Whether a path is of a request of statistics, and not of a schema.

    Raises:
        InputError: there is a file that cannot be read.
    """
    place = Path(path)
    if place.suffix.lower() not in SUFFIXES or not place.is_file():
        return False
    document = _document(place)
    return isinstance(document, dict) and "statistics" in document


def _document(place: Path) -> Any:
    return read_document(place, "request", largest=MAX_FILE, never="a request is not")
