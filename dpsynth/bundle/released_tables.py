"""The tables of a release: drawn from the run now, or drawn earlier and recorded in the run.

Whether a run is of one table or of linked ones, each table is put into the bundle as Parquet, and
as text where it is not too large for that.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.seeds import check_seed, fresh_seed
from dpsynth._util.strict_json import file_digest
from dpsynth.bundle.format import CohortProvenance, Drawing, Provenance, table_path
from dpsynth.bundle.format.layout import CSV, MAX_CSV_ROWS, PARQUET, TEXT, TYPED
from dpsynth.encoding import typed_frames
from dpsynth.errors import GateError, InputError
from dpsynth.schema import SyntheticTable, published_tables, synthetic_tables
from dpsynth.synthesis import (
    AnyRun,
    CohortRun,
    CohortSample,
    CohortSampler,
    Run,
    Sample,
    default_rows,
    read_records,
    read_samples,
    run_digest,
    sample_frames,
)
from dpsynth.tables import check_file, linked_files, table_kind, write_linked, write_table


@dataclass(frozen=True)
class Asked:
    """Which tables are to be released.

    Attributes:
        table: drawn earlier: a file, or of linked tables a folder; None to draw now.
        rows: to draw from a run of one table; None for the schema's number.
        patients: to draw from a run of linked tables; likewise.
        seed: of the sampling; None for a fresh one.
    """

    table: Path | None
    rows: int | None
    patients: int | None
    seed: int | None

    def check(self, run: AnyRun) -> None:
        """Refuse what the run does not have, and what a table that is given has already.

        Raises:
            InputError: with what to give instead.
        """
        linked = isinstance(run, CohortRun)
        if linked and self.rows is not None:
            raise InputError(
                "rows are drawn from a run of one table; of linked tables give patients"
            )
        if not linked and self.patients is not None:
            raise InputError(
                "patients are drawn from a run of linked tables; of a single one give rows"
            )
        count = self.patients if linked else self.rows
        if self.table is not None and (count is not None or self.seed is not None):
            noun = "patients" if linked else "rows"
            raise InputError(
                f"a given table is released unchanged: give either a table, or {noun} and seed"
            )


def put_tables(
    run: AnyRun, run_folder: Path, folder: Path, asked: Asked
) -> tuple[Drawing, Sample | CohortSample]:
    """Write the tables of a release into the new bundle in ``folder``.

    Returns:
        How they were drawn, for the manifest; and the record of what was drawn.

    Raises:
        GateError: a given table is not one that was drawn from the run.
        InputError: rows, patients, seed or the given table are wrong.
    """
    drawing: Drawing
    record: Sample | CohortSample
    if isinstance(run, CohortRun):
        if asked.table is None:
            record = _draw_cohort(run, folder, asked)
        else:
            record = _take_cohort(run, run_folder, asked.table, folder)
        drawing = _of_cohort(run, run_folder, record)
    else:
        (folder / "data").mkdir()
        if asked.table is None:
            record = _draw(run, folder / PARQUET, asked)
        else:
            record = _take(run, run_folder, asked.table, folder)
        drawing = _of_sample(run, run_folder, record)
    for name, table in synthetic_tables(run.schema).items():
        _put_text(folder / table_path(name, TYPED), folder / table_path(name, TEXT), table)
    return drawing, record


def _of_sample(run: Run, run_folder: Path, sample: Sample) -> Provenance:
    return Provenance(
        run.generator,
        run_digest(run_folder),
        rows=sample.rows,
        seed=sample.seed,
        condition=sample.condition,
        plain=sample.plain,
    )


def _of_cohort(run: CohortRun, run_folder: Path, cohort: CohortSample) -> CohortProvenance:
    return CohortProvenance(
        run.generator,
        run_digest(run_folder),
        patients=cohort.patients,
        seed=cohort.seed,
        plain=cohort.plain,
    )


def _put_text(typed: Path, text: Path, table: SyntheticTable) -> None:
    """Write a table as text, if it is not too large for that; else leave none."""
    import pyarrow.parquet as pq

    if pq.read_metadata(typed).num_rows > MAX_CSV_ROWS:
        text.unlink(missing_ok=True)
    elif not text.exists():
        write_table(typed_frames(typed, table), text, table.schema)


def _draw(run: Run, path: Path, asked: Asked) -> Sample:
    """Draw a table from the run into a Parquet file."""
    count = default_rows(run) if asked.rows is None else asked.rows
    chosen = fresh_seed() if asked.seed is None else asked.seed
    check_seed(chosen)
    write_table(sample_frames(run, count, chosen), path, run.schema)
    return Sample(path.name, file_digest(path), count, chosen, condition=None, plain=False)


def _draw_cohort(run: CohortRun, folder: Path, asked: Asked) -> CohortSample:
    """Draw a cohort from the run into Parquet files."""
    count = run.schema.population.value if asked.patients is None else asked.patients
    chosen = fresh_seed() if asked.seed is None else asked.seed
    check_seed(chosen)
    frames = CohortSampler.of(run).frames(count, seed=chosen)
    tables = published_tables(run.schema)
    digests = write_linked(frames, folder / "data", tables, kind=TYPED, note=False)
    return CohortSample("data", digests, TYPED, count, chosen)


def _take(run: Run, run_folder: Path, table: Path, folder: Path) -> Sample:
    """Copy a table that was drawn earlier; write it as Parquet too if it is text."""
    kind = table_kind(table)
    check_file(table)
    copy = folder / {".parquet": PARQUET, ".csv": CSV}.get(kind, f"data/copy{kind}")
    shutil.copyfile(table, copy)
    sha256 = file_digest(copy)  # of the copy: the original may change meanwhile
    recorded = [sample for sample in read_samples(run_folder) if sample.sha256 == sha256]
    if not recorded:
        raise _unrecorded(table, run_folder, "samples")
    _put_typed(copy, folder / PARQUET, *synthetic_tables(run.schema).values())
    return recorded[-1]


def _take_cohort(run: CohortRun, run_folder: Path, source: Path, folder: Path) -> CohortSample:
    """Copy a cohort that was drawn earlier; write it as Parquet too if it is text."""
    found = linked_files(source, run.schema, synthetic=True)
    files = {name: Path(str(file)) for name, file in found.items()}
    (folder / "data").mkdir()
    copies = {}
    for name, file in files.items():
        kind = table_kind(file)
        check_file(file)
        copies[name] = folder / table_path(name, kind)
        shutil.copyfile(file, copies[name])
    digests = {name: file_digest(copy) for name, copy in copies.items()}
    recorded = [one for one in read_records(run_folder, CohortSample) if one.tables == digests]
    if not recorded:
        raise _unrecorded(source, run_folder, "cohorts")
    for name, table in synthetic_tables(run.schema).items():
        _put_typed(copies[name], folder / table_path(name, TYPED), table)
    return recorded[-1]


def _put_typed(copy: Path, typed: Path, table: SyntheticTable) -> None:
    """Write a copied text as Parquet too; a packed one does not stay in the bundle."""
    if copy.suffix == TYPED:
        return
    write_table(typed_frames(copy, table), typed, table.schema)
    if copy.suffix != TEXT:
        copy.unlink()


def _unrecorded(table: Path, run_folder: Path, log: str) -> GateError:
    kinds = ", without --balance or --like, whose rows cannot be released"
    return GateError(
        f"{table} is not recorded in {run_folder}/{log}.json as drawn from this run, or was "
        f"changed since; draw it again with `dpsynth sample`{kinds if log == 'samples' else ''}"
    )
