"""``dpsynth sample``: synthetic rows from a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth.cli.cohorts import refuse_options
from dpsynth.cli.console import Console, output_options

if TYPE_CHECKING:
    from dpsynth.synthesis import CohortRun


@click.command(epilog="Example:  dpsynth sample run/ --rows 100000 --seed 7 -o synthetic.parquet")
@click.argument("run", type=click.Path())
@click.option("--rows", type=int, help="Rows to draw; default: the schema's public number.")
@click.option(
    "--patients",
    type=int,
    help="Patients to draw from a run of linked tables; default: the schema's public number.",
)
@click.option("--seed", type=int, help="Seed for sampling; default: a new one, which is recorded.")
@click.option(
    "--where",
    metavar="CONDITION",
    help='Keep only synthetic rows that meet a condition, such as "sex == \'F\'", "age >= 65 and '
    "ward in ('ICU', 'surgery')\" or \"grade not in (1, 2)\". Text is in quotes.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False),
    help="Table to write (.parquet, .csv or .csv.gz); of a run of linked tables, a new folder.",
)
@click.option(
    "--format",
    "suffix",
    type=click.Choice(["csv", "csv.gz", "parquet"]),
    help="Kind of the files of linked tables; default: csv.",
)
@click.option("--plain", is_flag=True, help="Draw independent rows, for analyses that need them.")
@click.option(
    "--replicates",
    type=int,
    metavar="M",
    help="Write M tables, OUTPUT-1 to OUTPUT-M, each from a refit of the run, for standard errors; "
    "of a run of linked tables, M folders.",
)
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@output_options
def sample(
    run: str,
    rows: int | None,
    patients: int | None,
    seed: int | None,
    where: str | None,
    plain: bool,
    output: str,
    suffix: str | None,
    replicates: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw synthetic rows from RUN. No other data is read.

    The same run, seed and number of rows give the same table. The run records the table's hash, so
    you can release the table later. Rows are drawn with stratified sampling, so they vary less than
    independent draws and the table stays close to what was learned. Use --plain for independent
    draws.

    A --where condition is written like a rule of the schema: comparisons (< <= > >= == !=) and
    lists (in, not in), joined by and, or, not and implies. It selects among rows that were drawn,
    so it costs no privacy budget. A missing value never meets it.

    With --replicates, the plan of the run is repeated on tables drawn from the run, and each
    replicate is drawn from one such refit. A refit takes as long as the fit but uses no privacy
    budget. Replicates show how uncertain estimates are. They cannot be released.

    A run of linked tables gives --patients patients with all their rows: OUTPUT is a folder with a
    file for each table, and their keys agree.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth._util.seeds import fresh_seed
        from dpsynth.files import check_apart, check_no_bundle
        from dpsynth.synthesis import (
            CohortRun,
            Sampler,
            default_rows,
            load_run,
            record_sample,
        )
        from dpsynth.tables import write_table

        check_no_bundle(output)
        loaded = load_run(run)
        if isinstance(loaded, CohortRun):
            refused = {"--rows": rows, "--where": where, "--plain": plain, "--force": force}
            refuse_options(
                refused, "is for a run of one table; linked tables are drawn by --patients"
            )
            kind = f".{suffix or 'csv'}"
            if replicates is not None:
                _cohort_replicates(console, run, replicates, output, patients, seed, kind)
            else:
                _cohort(console, run, loaded, patients, seed, output, kind)
            return
        refuse_options(
            {"--patients": patients, "--format": suffix}, "is for a run of linked tables"
        )
        if replicates is not None:
            _replicates(
                console, run, replicates, output, rows=rows, seed=seed, where=where, overwrite=force
            )
            return
        count = default_rows(loaded) if rows is None else rows
        chosen = fresh_seed() if seed is None else seed
        frames = Sampler.of(loaded, where=where, plain=plain).frames(
            count, seed=chosen, progress=lambda part: console.progress("sampling", part)
        )
        unprotected = loaded.certificate is None
        if unprotected:
            check_apart(output)
        digest = write_table(
            frames, Path(output), loaded.schema, overwrite=force, private=unprotected
        )
        record_sample(
            Path(run),
            Path(output),
            rows=count,
            seed=chosen,
            condition=where,
            plain=plain,
            sha256=digest,
        )
        values = {
            "table": output,
            "rows": count,
            "seed": chosen,
            "sha256": digest,
            "stamps": list(loaded.stamps),
        }
        lines = [
            f"table       {output}: {count} synthetic rows",
            f"seed        {chosen}",
            f"sha256      {digest}",
        ]
        if loaded.certificate is None:
            lines.append(
                "privacy     NONE: fitted without privacy, so keep this table in the office"
            )
        console.result("sample", values, lines)
        console.advice("Synthetic rows are not linked to each other and have no patient key.")


def _cohort(
    console: Console,
    folder: str,
    run: CohortRun,
    patients: int | None,
    seed: int | None,
    output: str,
    suffix: str,
) -> None:
    """Draw a cohort, and record it in the run."""
    from dpsynth._util.seeds import fresh_seed
    from dpsynth.schema import published_tables
    from dpsynth.synthesis import CohortSample, CohortSampler, add_record
    from dpsynth.tables import write_linked

    count = run.schema.population.value if patients is None else patients
    chosen = fresh_seed() if seed is None else seed
    frames = CohortSampler.of(run).frames(
        count, seed=chosen, progress=lambda part: console.progress("sampling", part)
    )
    tables = published_tables(run.schema)
    digests = write_linked(frames, output, tables, kind=suffix)
    add_record(Path(folder), CohortSample(Path(output).name, digests, suffix, count, chosen))
    files = {name: str(Path(output, name + suffix)) for name in tables}
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
    console.result("sample", values, lines)
    console.advice("Keys are numbers of synthetic patients; they agree between the tables.")


def _replicates(console: Console, run: str, m: int, output: str, **options: Any) -> None:
    """Write replicates, and say how to use them."""
    from dpsynth.synthesis import write_replicates

    console.progress("replicates", 0.0)
    replicates = write_replicates(
        run, m, output, progress=lambda part: console.progress("replicates", part), **options
    )
    folder, first = Path(output).parent, replicates[0]
    files = [str(folder / replicate.file) for replicate in replicates]
    values = {
        "tables": files,
        "rows": first.rows,
        "seed": first.seed,
        "sha256": [replicate.sha256 for replicate in replicates],
    }
    lines = [
        f"replicates  {files[0]} to {files[-1]}: {first.rows} synthetic rows each",
        f"seed        {first.seed}",
        "use         for standard errors; release a sample, not a replicate",
    ]
    console.result("replicates", values, lines)
    console.advice(
        "Next: compute your estimate on each table, then combine them with "
        "dpsynth.eval.combine.combine(estimates, variances, original=...). See docs/inference.md."
    )


def _cohort_replicates(
    console: Console,
    run: str,
    m: int,
    output: str,
    patients: int | None,
    seed: int | None,
    suffix: str,
) -> None:
    """Write replicates of linked tables, and say how to use them."""
    from dpsynth.synthesis import write_cohort_replicates

    console.progress("replicates", 0.0)
    replicates = write_cohort_replicates(
        run,
        m,
        output,
        patients=patients,
        seed=seed,
        suffix=suffix,
        progress=lambda part: console.progress("replicates", part),
    )
    folder, first = Path(output).parent, replicates[0]
    folders = [str(folder / replicate.folder) for replicate in replicates]
    values = {
        "folders": folders,
        "patients": first.patients,
        "seed": first.seed,
        "sha256": [replicate.tables for replicate in replicates],
    }
    lines = [
        f"replicates  {folders[0]} to {folders[-1]}: {first.patients} synthetic patients each",
        f"seed        {first.seed}",
        "use         for standard errors by patient; release a cohort, not a replicate",
    ]
    console.result("replicates", values, lines)
    console.advice(
        "Next: compute your estimate and its variance, by patient, on each cohort, then combine "
        "them with dpsynth.eval.combine.combine(estimates, variances, original=...). See "
        "docs/inference.md."
    )
