"""``dpsynth sample``: synthetic rows from a run."""

from __future__ import annotations

from pathlib import Path

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
@click.option("--force", is_flag=True, help="Replace the output if it exists.")
@output_options
def sample(
    run: str,
    rows: int | None,
    seed: int | None,
    where: str | None,
    plain: bool,
    output: str,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw synthetic rows from RUN; nothing but the run is read.

    The same run, seed and number of rows give the same table. The table's hash is recorded in the
    run, so that it can be released later. Rows are spread more evenly than chance would, which
    keeps the table close to what was learned; with --plain they are independent draws.
    """
    from dpsynth.run import Run
    from dpsynth.sampler import Sampler, default_rows, fresh_seed
    from dpsynth.samples import record_sample
    from dpsynth.table import write_table

    with Console(as_json=as_json, quiet=quiet) as console:
        loaded = Run.load(run)
        wanted = default_rows(loaded) if rows is None else rows
        chosen = fresh_seed() if seed is None else seed
        frames = Sampler.of(loaded, where=where, plain=plain).frames(
            wanted, seed=chosen, progress=lambda part: console.progress("sampling", part)
        )
        write_table(frames, Path(output), loaded.schema, overwrite=force)
        digest = record_sample(
            Path(run), Path(output), rows=wanted, seed=chosen, condition=where, plain=plain
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
        console.advice("Each row is a synthetic visit or patient of its own; keys are not drawn.")
