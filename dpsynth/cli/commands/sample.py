"""``dpsynth sample``: synthetic rows from a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth.cli.cohorts import refuse_options
from dpsynth.cli.console import Console, output_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from dpsynth.synthesis import RowSampler, Run


ON_REQUEST = "on-request"  # of rows whose shares, or some of whose cells, the user has set


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
    help='Draw only rows that meet a condition, such as "sex == \'F\'", "age >= 65 and '
    "ward in ('ICU', 'surgery')\" or \"grade not in (1, 2)\". Text is in quotes.",
)
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(),
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
@click.option(
    "--balance", metavar="COLUMN", help="Draw the categories of a column in equal numbers."
)
@click.option(
    "--like",
    metavar="FILE",
    help="Complete the rows of a CSV file: cells that it gives stay, empty ones are drawn.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of processes that draw a large table in parallel. The table is the same with any "
    "number.  [default: 1 for each core]",
)
@click.option(
    "--force",
    is_flag=True,
    help="Replace the output if it exists and this run's records, or the metadata of a Parquet "
    "file, say that dpsynth drew it.",
)
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
    balance: str | None,
    like: str | None,
    workers: int | None,
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
    lists (in, not in), joined by and, or, not and implies. Rows are drawn under the condition,
    however rare it is, and the line "condition" says how many patients are expected behind it: of
    few, the model knows little. A network chooses rows among proposals; the line "proposals" warns
    if they are few. This costs no privacy budget. A missing value never meets a condition.

    Rows that break a rule of the schema are drawn again; the line "rules" says how many met the
    rules. Orders, derived columns and conditions of columns hold in every drawn row.

    Rows of --balance and --like can be used, but not released: the run does not record them.

    With --replicates, the plan of the run is repeated on tables drawn from the run, and each
    replicate is drawn from one such refit. A refit takes as long as the fit but uses no privacy
    budget. Replicates show how uncertain estimates are. They cannot be released.

    A run of linked tables gives --patients patients with all their rows: OUTPUT is a folder with a
    file for each table, and their keys agree. With --plain, patients are independent draws.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth._util.seeds import fresh_seed
        from dpsynth.files import check_apart, check_no_bundle
        from dpsynth.schema import LinkedSchema
        from dpsynth.synthesis import (
            Balanced,
            Run,
            Sampler,
            Support,
            check_replaced,
            default_size,
            record_sample,
            write_drawn,
        )
        from dpsynth.tables import write_table

        check_no_bundle(output)
        loaded = Run.load(run)
        if isinstance(loaded.schema, LinkedSchema):
            refuse_options(
                {
                    "--rows": rows,
                    "--where": where,
                    "--balance": balance,
                    "--like": like,
                },
                "is for a run of one table; linked tables are drawn by --patients",
            )
            kind = f".{suffix or 'csv'}"
            if replicates is not None:
                sample_replicates(
                    console,
                    run,
                    replicates,
                    output,
                    linked=True,
                    size=patients,
                    seed=seed,
                    suffix=kind,
                    overwrite=force,
                )
            else:
                sample_cohort(
                    console,
                    run,
                    loaded,
                    patients,
                    seed,
                    output,
                    kind,
                    workers,
                    plain=plain,
                    overwrite=force,
                )
            return
        refuse_options(
            {"--patients": patients, "--format": suffix}, "is for a run of linked tables"
        )
        if replicates is not None:
            refuse_options(
                {"--balance": balance, "--like": like, "--workers": workers},
                "does not go with --replicates",
            )
            sample_replicates(
                console,
                run,
                replicates,
                output,
                linked=False,
                size=rows,
                seed=seed,
                where=where,
                overwrite=force,
            )
            return
        if like is not None:
            refuse_options(
                {"--rows": rows, "--where": where, "--balance": balance, "--plain": plain}
                | {"--workers": workers},
                "does not go with --like, which completes the rows of its file",
            )
        chosen = fresh_seed() if seed is None else seed
        internal = loaded.certificate is None or like is not None  # may hold cells of a patient
        if internal:
            check_apart(output)
        if force:
            check_replaced(run, output)
        lines, support = [], None
        sampler: Sampler | Balanced | None = None
        count = default_size(loaded) if rows is None else rows
        kinds = {"overwrite": force, "private": internal}

        def show(part: float) -> None:
            console.progress("sampling", part)

        if like is not None:
            frames, count = _completed(loaded, like, chosen)
            digest = write_table(frames, output, loaded.schema, **kinds)
        elif balance is not None:
            sampler = Balanced.of(loaded, balance, where=where, plain=plain)
            frames = sampler.frames(count, seed=chosen, progress=show)
            digest = write_table(frames, output, loaded.schema, **kinds)
        else:
            drawing: RowSampler = Sampler.of(loaded, where=where, plain=plain)
            sampler = drawing
            if where is not None:
                support = Support.of(drawing, loaded, count)
                lines += support.lines
            digest = write_drawn(
                loaded,
                drawing,
                output,
                count,
                seed=chosen,
                workers=workers,
                progress=show,
                **kinds,
            )
        kept = like is None and balance is None
        if kept:
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
            "stamps": [*loaded.stamps, *([] if kept else [ON_REQUEST])],
            **({} if support is None else {"condition": support.to_dict()}),
        }
        if sampler is not None and (acceptance := sampler.acceptance).drawn:
            values["met_rules"] = acceptance.share
            lines.append(f"rules       {acceptance.words('row')}")
        lines = [
            f"table       {output}: {count} synthetic rows",
            f"seed        {chosen}",
            f"sha256      {digest}",
            *lines,
        ]
        if not kept:
            lines.append("release     no: the run does not record rows of this kind")
        if loaded.certificate is None:
            lines.append(
                "privacy     NONE: fitted without privacy, so keep this table in the office"
            )
        console.result("sample", values, lines)
        console.advice("Synthetic rows are not linked to each other and have no patient key.")


def _completed(run: Run, like: str, seed: int) -> tuple[Iterator[pd.DataFrame], int]:
    """Complete the rows of a file."""
    from dpsynth.synthesis import Completion

    frame = Completion.read(run, like).frame(seed=seed)
    return iter([frame]), len(frame)


def sample_cohort(
    console: Console,
    folder: str,
    run: Run,
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
        Sampler,
        add_record,
        check_replaced,
        default_size,
        drawn_frames,
    )
    from dpsynth.tables import write_linked

    count = default_size(run) if patients is None else patients
    chosen = fresh_seed() if seed is None else seed
    if overwrite:
        check_replaced(folder, output, linked=True)
    sampler: Sampler = Sampler.of(run, plain=plain)
    frames = drawn_frames(
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
        options: of `write_replicates`.
    """
    from dpsynth.synthesis import write_replicates

    console.progress("replicates", 0.0)
    replicates: Any = write_replicates(
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
