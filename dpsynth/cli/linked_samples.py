"""``dpsynth sample`` of linked tables: cohorts of patients, and replicates of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth.cli.console import Console

if TYPE_CHECKING:
    from dpsynth.synthesis import CohortRun


def sample_cohort(
    console: Console,
    folder: str,
    run: CohortRun,
    patients: int | None,
    seed: int | None,
    output: str,
    suffix: str,
    workers: int | None,
    *,
    plain: bool = False,
    overwrite: bool = False,
) -> None:
    """Draw a cohort, and record it in the run."""
    from dpsynth._util.seeds import fresh_seed
    from dpsynth.schema import file_stem, published_tables
    from dpsynth.synthesis import (
        CohortSample,
        CohortSampler,
        add_record,
        check_replaced,
        drawn_patients,
    )
    from dpsynth.tables import write_linked

    count = run.schema.population.value if patients is None else patients
    chosen = fresh_seed() if seed is None else seed
    if overwrite:
        check_replaced(folder, output, linked=True)
    sampler = CohortSampler.of(run, plain=plain)
    frames = drawn_patients(
        run,
        sampler,
        count,
        seed=chosen,
        workers=workers,
        progress=lambda part: console.progress("sampling", part),
    )
    tables = published_tables(run.schema)
    digests = write_linked(frames, output, tables, kind=suffix, overwrite=overwrite)
    name = Path(output).name
    add_record(Path(folder), CohortSample(name, digests, suffix, count, chosen, plain))
    files = {name: str(Path(output, file_stem(name) + suffix)) for name in tables}
    values = {
        "folder": output,
        "tables": files,
        "patients": count,
        "seed": chosen,
        "sha256": digests,
        "stamps": list(run.stamps),
    }
    lines = [
        f"cohort      {output}: {count} synthetic patients in {len(tables)} tables",
        *(f"table       {file}" for file in files.values()),
        f"seed        {chosen}",
    ]
    if sampler.acceptance.drawn:
        values["met_rules"] = sampler.acceptance.share
        lines.append(f"rules       {sampler.acceptance.words('patient')}")
    console.result("sample", values, lines)
    console.advice("Keys belong to synthetic patients; they agree between the tables.")


def sample_replicates(
    console: Console, run: str, m: int, output: str, *, linked: bool, **options: Any
) -> None:
    """Write replicates of a table or of linked tables, and say how to use them.

    Args:
        console: to print to.
        run: the folder.
        m: replicates.
        output: the name of the first, without its number.
        linked: whether the run is of linked tables.
        options: of `write_replicates` or `write_cohort_replicates`.
    """
    from dpsynth.synthesis import write_cohort_replicates, write_replicates

    console.progress("replicates", 0.0)
    write: Any = write_cohort_replicates if linked else write_replicates
    replicates = write(
        run, m, output, progress=lambda part: console.progress("replicates", part), **options
    )
    first = replicates[0]
    files = [str(Path(output).parent / (r.folder if linked else r.file)) for r in replicates]
    number = first.patients if linked else first.rows
    values = {
        "folders" if linked else "tables": files,
        "patients" if linked else "rows": number,
        "seed": first.seed,
        "sha256": [replicate.tables if linked else replicate.sha256 for replicate in replicates],
    }
    what = "patients" if linked else "rows"
    use = "errors by patient; release a cohort" if linked else "errors; release a sample"
    lines = [
        f"replicates  {files[0]} to {files[-1]}: {number} synthetic {what} each",
        f"seed        {first.seed}",
        f"use         for standard {use}, not a replicate",
    ]
    console.result("replicates", values, lines)
    by_patient = "estimate and its variance, by patient, on each cohort"
    estimate = by_patient if linked else "estimate on each table"
    console.advice(
        f"Next: compute your {estimate}, then combine them with "
        "dpsynth.eval.combine.combine(estimates, variances, original=...). See docs/inference.md."
    )
