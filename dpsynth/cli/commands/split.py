"""``dpsynth split``: a private table into train and holdout, by unit."""

from __future__ import annotations

from typing import Any

import click

from dpsynth._util.formatting import counted
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import takes_query, takes_schema


@click.command(
    epilog="Example:  dpsynth split mine.schema.yaml extract.csv --holdout 0.2 -o split/"
)
@click.argument("schema")
@click.argument("data", type=click.Path())
@click.option(
    "--holdout",
    type=float,
    default=0.2,
    show_default=True,
    help="Share of the units to hold out, with all their rows.",
)
@click.option(
    "--seed",
    type=int,
    help="Makes the split repeatable, for benchmarks; it adds no noise. Default: fresh entropy.",
)
@click.option(
    "--opt-out",
    type=click.Path(),
    help="List of units to leave out of both files: one key per line, or a table with the unit's "
    "column.",
)
@click.option("--output", "-o", required=True, type=click.Path(), help="New folder for both files.")
@output_options
@takes_query
@takes_schema
def split(
    schema: str,
    data: str,
    holdout: float,
    seed: int | None,
    opt_out: str | None,
    output: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Split DATA by unit into train and holdout.

    Of linked tables, DATA has all of them. Then train and holdout are folders with a file for each
    table, and a patient is in one of them with all her rows in all tables.

    CSV, TSV and Parquet give files of the same format and dialect, with rows copied unchanged.
    Other sources give Parquet files of text. Units are held out at random. Both files are as
    private as the source.
    """
    from dpsynth.schema import LinkedSchema, load_any
    from dpsynth.tables import OptOut, split_file

    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        loaded = load_any(schema)
        linked = isinstance(loaded, LinkedSchema)
        own = loaded.patients if isinstance(loaded, LinkedSchema) else loaded
        absent = None if opt_out is None else OptOut.load(opt_out, own)
        how: dict[str, Any] = {"holdout": holdout, "seed": seed, "opt_out": absent}
        how["progress"] = lambda part: console.progress("splitting", part)
        train, rest = split_file(data, loaded, output, **how)
        keyless = None if own.unit.column is None else "drop" if linked else own.unit.missing_key
        values = {
            "train": str(train),
            "holdout": str(rest),
            "share": holdout,
            "seed": seed,
            "rows_without_key": keyless,
            "opt_out": None if absent is None else {"file": opt_out, "keys": absent.lines},
            "internal": True,
        }
        if isinstance(loaded, LinkedSchema):
            values["tables"] = list(loaded.table_names)
        whole = ("patient", "all rows in all tables") if linked else ("unit", "all its rows")
        lines = [
            f"train       {train}",
            f"holdout     {rest}: each {whole[0]} with probability {holdout:g}, with {whole[1]}",
        ]
        if keyless is not None:
            lines.append(f"no key      {_WORDS[keyless]}")
        if absent is not None:
            keys = counted(absent.lines, "key")
            lines.append(f"opted out   {keys} read from {opt_out}: no row with such a key is left")
        lines.append(
            f"private     both {'folders' if linked else 'files'} contain real rows, like the "
            "source: never release them"
        )
        console.result("split", values, lines)
        console.advice(
            f"To fit train alone, use a schema with the population {'' if linked else 'and rows '}"
            "of train: "
            f"{1 - holdout:g} of the whole."
        )


_WORDS = {
    "own": "each row without a key is a separate unit",
    "drop": "rows without a key, if any, are in neither file, because a fit leaves them out",
}
