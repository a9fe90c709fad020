"""``dpsynth schema``: list, show, draft and check schemas."""

from __future__ import annotations

import click

from dpsynth._util.formatting import counted
from dpsynth.cli.commands.schema_draft import draft
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.options import takes_query, takes_schema


@click.group(epilog="Example:  dpsynth schema check diabetes130 extract.csv.gz")
def schema() -> None:
    """List, show, draft and check schemas. A schema holds the public facts about a table."""


schema.add_command(draft)


@schema.command("list", epilog="Example:  dpsynth schema list")
@output_options
def list_schemas(as_json: bool, quiet: bool) -> None:
    """List the schemas that ship with dpsynth."""
    from dpsynth.schema import Schema, shipped_schemas

    with Console(as_json=as_json, quiet=quiet) as console:
        loaded = {name: Schema.load(name) for name in shipped_schemas()}
        rows = [
            (
                name,
                str(len(item.modelled)),
                item.unit.column or "row",
                item.title or "",
            )
            for name, item in loaded.items()
        ]
        lines = table(("name", "columns", "unit", "title"), rows)
        console.result("schemas", {"schemas": list(loaded)}, lines)


@schema.command(epilog="Example:  dpsynth schema show cardio > mine.schema.yaml")
@click.argument("name")
def show(name: str) -> None:
    """Print a schema as YAML, as a starting point for your own."""
    import yaml

    from dpsynth.schema import Schema

    document = Schema.load(name).to_dict()
    click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)


@schema.command(epilog="Example:  dpsynth schema check diabetes130 extract.csv.gz")
@click.argument("schema")
@click.argument("data", required=False, type=click.Path())
@output_options
@takes_query
@takes_schema
def check(schema: str, data: str | None, as_json: bool, quiet: bool) -> None:
    """Check SCHEMA, and how well DATA fits it.

    All mistakes in the schema are listed at once. You are warned of dates that should be declared
    as intervals. With DATA, you also see the share of missing,
    clipped, unknown and unreadable cells in each column. These figures are exact and not private.
    They are internal: do not release them.
    """
    from dpsynth.encoding import review_table
    from dpsynth.schema import Schema, date_pairs

    with Console(as_json=as_json, quiet=quiet) as console:
        loaded = Schema.load(schema)
        loaded.require_complete()
        unit = loaded.unit.column or "row"
        lines = [f"schema {loaded.name}: {len(loaded.modelled)} columns, unit {unit}: no mistakes"]
        values: dict[str, object] = {"schema": loaded.name, "columns": len(loaded.modelled)}
        if warnings := [pair.warning for pair in date_pairs(loaded)]:
            lines += ["", *(f"warning: {text}" for text in warnings)]
            values["warnings"] = warnings
        if data is not None:
            review = review_table(data, loaded, lambda part: console.progress("reading", part))
            values |= {
                "internal": True,
                "cells": {name: vars(row) for name, row in review.cells.items()},
                "units": vars(review.units) if review.units else None,
            }
            rows = [
                (
                    name,
                    f"{row.missing:.2%}",
                    f"{row.clipped:.2%}",
                    f"{row.unknown:.2%}",
                    f"{row.bad:.2%}",
                )
                for name, row in review.cells.items()
            ]
            lines += ["", "INTERNAL: exact shares of cells; do not release", ""]
            lines += table(("column", "missing", "clipped", "unknown", "unreadable"), rows)
            if review.units:
                lines += [
                    "",
                    f"{counted(review.units.keyless_rows, 'row')} without a key; "
                    f"{review.units.over_max_rows:.2%} of the units have more than "
                    f"{counted(loaded.unit.max_rows, 'row')}",
                ]
        console.result("schema.check", values, lines)
