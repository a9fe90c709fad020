"""The cohorts of an assessment of linked tables: real ones and a synthetic one, read alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import digest
from dpsynth.assessment.evaluation import check_people, facts_of
from dpsynth.encoding import Histories, HistoryCodec, read_any_tables, read_histories
from dpsynth.encoding.any_table import AUTO, ISO
from dpsynth.errors import GateError
from dpsynth.eval import Progress, silent
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import CohortRun, CohortSample, read_records
from dpsynth.tables import (
    NamedSource,
    Source,
    linked_digests,
    linked_files,
    linked_sources,
    open_linked,
    open_synthetic_linked,
    written_schema,
)

Folder = str | Path | Mapping[str, Source]
"""A folder with a file for each table, or the source of each by the table's name."""


@dataclass(frozen=True, repr=False)
class CohortCandidate:
    """A synthetic cohort to be judged.

    Attributes:
        name: what pages call it.
        tables: its files.
        run: facts of the run that it was drawn from; None for another tool's.
        sha256: over the digests of its files; None if they are DataFrames.
        form: how another tool's tables are written; see `dpsynth.assessment.Candidate`.
    """

    name: str
    tables: Folder
    run: dict[str, object] | None = None
    sha256: str | None = None
    form: str = AUTO

    @property
    def written(self) -> str:
        """How its cells are written: dpsynth wrote those of a run."""
        return self.form if self.run is None else ISO

    @classmethod
    def of(cls, schema: LinkedSchema, folder: str | Path, form: str = AUTO) -> CohortCandidate:
        """Take the cohort in a folder, written as ``form`` says.

        Raises:
            TableError: a table has no file there, or several.
        """
        sha256 = digest(linked_digests(folder, schema))
        files = linked_files(folder, schema, synthetic=True)
        return cls(Path(folder).name, files, None, sha256, form)

    @classmethod
    def of_run(cls, run_folder: str | Path, folder: str | Path) -> CohortCandidate:
        """Take a cohort that was drawn from a run, as its ``cohorts.json`` records it.

        Raises:
            GateError: the cohort is not recorded there, or was changed since.
        """
        run = CohortRun.load(run_folder)
        own = cls.of(run.schema, folder)
        recorded = [digest(one.tables) for one in read_records(run_folder, CohortSample)]
        if own.sha256 not in recorded:
            raise GateError(
                f"{folder} is not recorded in {run_folder}/cohorts.json as drawn from this run, or "
                "was changed since; draw it again with `dpsynth sample`, or give the schema "
                "instead of the run"
            )
        return cls(own.name, own.tables, facts_of(run), own.sha256)


@dataclass(frozen=True, repr=False)
class CohortSides:
    """Coded histories of a synthetic cohort, of its source, and of other people.

    Attributes:
        codec: of all of them.
        source: what the generator learned from.
        synthetic: what is judged.
        holdout: of people who are not in the source; None if there are none.
        notes: how the synthetic tables were read, where that is not certain.
    """

    codec: HistoryCodec
    source: Histories
    synthetic: Histories
    holdout: Histories | None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show no number: they are of real people."""
        return short_repr(self, f"schema {self.codec.schema.name}")

    @classmethod
    def read(
        cls,
        schema: LinkedSchema,
        source: Folder,
        synthetic: Folder,
        holdout: Folder | None,
        *,
        form: str = ISO,
        seed: int = 0,
        progress: Progress = silent,
    ) -> CohortSides:
        """Read all of them; the same files and seed give the same histories.

        Raises:
            InputError: a table is wrong, or source and holdout share people.
        """
        patients = schema.patients.name
        sides = [_files(one, schema) for one in (source, synthetic)]
        others = None if holdout is None else _files(holdout, schema)
        codec = HistoryCodec(schema)
        check_people(
            schema.patients, sides[0][patients], None if others is None else others[patients]
        )

        def real(files: Mapping[str, Source]) -> Histories:
            tables = open_linked(files, schema)
            return read_histories(
                tables, codec, SeededEntropy(seed), progress=lambda part: progress("reading", part)
            )

        read, notes = read_any_tables(sides[1], schema, form)
        drawn = read_histories(
            open_synthetic_linked(read, schema),
            HistoryCodec(written_schema(schema)),
            SeededEntropy(seed),
            progress=lambda part: progress("reading", part),
        )
        apart = None if others is None else real(others)
        return cls(codec, real(sides[0]), drawn, apart, notes)


def _files(folder: Folder, schema: LinkedSchema) -> Mapping[str, NamedSource]:
    return linked_sources(folder, schema)
