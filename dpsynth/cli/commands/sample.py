"""``dpsynth sample``: synthetic rows from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsynth.cli.console import Console, output_options


@click.command(epilog="Example:  dpsynth sample run/ --rows 100000 --seed 7 -o synthetic.parquet")
@click.argument("run", type=click.Path())
@click.option("--rows", type=int, help="How many; default: the schema's public number of rows.")
@click.option("--seed", type=int, help="Seed of the sampling; default: a fresh one, recorded.")
@click.option("--where", help="Keep only rows that satisfy a condition, such as \"sex == 'F'\".")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(dir_okay=False),
    help="Table to write: .parquet, .csv or .csv.gz.",
)
@click.option("--plain", is_flag=True, help="Draw independent rows, for analyses that need them.")
@click.option(
    "--replicates",
    type=int,
    metavar="M",
    help="Write M tables OUTPUT-1 ... OUTPUT-M, each from a refit of the run, for standard errors.",
)
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@output_options
def sample(
    run: str,
    rows: int | None,
    seed: int | None,
    where: str | None,
    plain: bool,
    output: str,
    replicates: int | None,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw synthetic rows from RUN; nothing but the run is read.

    The same run, seed and number of rows give the same table. The table's hash is recorded in the
    run, so that it can be released later. Rows are spread more evenly than chance would, which
    keeps the table close to what was learned; with --plain they are independent draws.

    With --replicates, the plan of the run is carried out again on tables drawn from the run, and
    each replicate is drawn from what that learned. It costs time (a refit takes as long as the fit)
    and no budget. Replicates show how uncertain estimates are; they cannot be released.
    """
    from dpsynth._util.seeds import fresh_seed
    from dpsynth.files import check_apart, check_no_bundle
    from dpsynth.synthesis import Run, Sampler, default_rows, record_sample
    from dpsynth.tables import write_table

    with Console(as_json=as_json, quiet=quiet) as console:
        check_no_bundle(output)
        if replicates is not None:
            _replicates(
                console, run, replicates, output, rows=rows, seed=seed, where=where, overwrite=force
            )
            return
        loaded = Run.load(run)
        wanted = default_rows(loaded) if rows is None else rows
        chosen = fresh_seed() if seed is None else seed
        frames = Sampler.of(loaded, where=where, plain=plain).frames(
            wanted, seed=chosen, progress=lambda part: console.progress("sampling", part)
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
            rows=wanted,
            seed=chosen,
            condition=where,
            plain=plain,
            sha256=digest,
        )
        values = {
            "table": output,
            "rows": wanted,
            "seed": chosen,
            "sha256": digest,
            "stamps": list(loaded.stamps),
        }
        lines = [
            f"table       {output}: {wanted} synthetic rows",
            f"seed        {chosen}",
            f"sha256      {digest}",
        ]
        if loaded.certificate is None:
            lines.append("privacy     NONE: the run was fitted without it; keep this table inside")
        console.result("sample", values, lines)
        console.advice("Rows are independent of each other; synthetic rows have no patient key.")


def _replicates(console: Console, run: str, m: int, output: str, **options: Any) -> None:
    """Write replicates, and say how to use them."""
    from dpsynth.synthesis import write_replicates

    console.progress("replicates", 0.0)
    made = write_replicates(
        run, m, output, progress=lambda part: console.progress("replicates", part), **options
    )
    folder, first = Path(output).parent, made[0]
    files = [str(folder / one.file) for one in made]
    values = {
        "tables": files,
        "rows": first.rows,
        "seed": first.seed,
        "sha256": [one.sha256 for one in made],
    }
    lines = [
        f"replicates  {files[0]} to {files[-1]}: {first.rows} synthetic rows each",
        f"seed        {first.seed}",
        "use         for standard errors; a replicate cannot be released, a sample can",
    ]
    console.result("replicates", values, lines)
    console.advice(
        "Estimate on each table, then dpsynth.eval.combine.combine(estimates, variances, "
        "original=...): see docs/inference.md."
    )
