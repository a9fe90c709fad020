"""``dpsynth schema``: list, show, draft and check schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth._util.output import write_text
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.group import HelpfulGroup
from dpsynth.cli.options import takes_query, takes_schema

if TYPE_CHECKING:
    from dpsynth.inspection import CheckResult, Finding
    from dpsynth.schema import LinkedSchema
    from dpsynth.schema.linked import AnySchema


@click.command(epilog="Example:  dpsynth schema draft --from dictionary.xlsx -o mine.schema.yaml")
@click.option(
    "--from-header",
    "header",
    type=click.Path(),
    help="The table, in any format that a fit reads except JSON Lines: a file, 'book.xlsx#Sheet', "
    "or the URL of a database. For linked tables: a folder with a file for each, a workbook with a "
    "sheet for each, or a database. Only the names of the columns are read.",
)
@click.option(
    "--from",
    "dictionary",
    type=click.Path(),
    help="Data dictionary (.csv, .xlsx), also as REDCap exports it, or a file of SPSS, SAS or "
    "Stata, of which only the header is read.",
)
@click.option(
    "--output", "-o", type=click.Path(), help="New file for the draft; default: standard output."
)
@click.option(
    "--delimiter",
    help="Character between the cells of a text file, such as ';'. Default: the one of , ; | and "
    "tab that the header shows, for each file of a folder.",
)
@click.option(
    "--encoding",
    help="Encoding of a text file without a byte order mark. Default: utf-8, or cp1252 where a "
    "header is not utf-8.",
)
@click.option(
    "--sheet",
    help="Sheet of a workbook; default: the first that is a dictionary, or all with headings.",
)
@click.option(
    "--header-row",
    type=click.IntRange(min=1),
    metavar="N",
    help="Line of the table with the headings, from 1; the draft declares it as "
    "dialect.header_row. Default: the first that is not a title.",
)
@click.option(
    "--repeating",
    multiple=True,
    metavar="FORM",
    help="Form of a REDCap project of which a record may have several, as its data dictionary "
    "names it; may be given several times. The draft has a table for each, and one of patients.",
)
@click.option(
    "--catalog",
    type=click.Path(),
    help="Format catalogue (.sas7bcat) with the value labels of a SAS file; default: the one "
    "beside it with its name, or formats.sas7bcat.",
)
@output_options
def draft(
    header: str | None,
    dictionary: str | None,
    output: str | None,
    delimiter: str | None,
    encoding: str | None,
    sheet: str | None,
    header_row: int | None,
    repeating: tuple[str, ...],
    catalog: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draft a schema from column names or a data dictionary.

    No row is read. Bounds and units are proposals, from your document or from a shipped table of
    clinical ranges, each with its source. Everything else is TODO. A person confirms each
    proposal: until then, no fit accepts the schema.

    Give --from-header, --from, or both: then the columns are those of the header.

    With several tables (a folder, a workbook or a database with more than one, or a dictionary
    whose column "Table" or whose sheets name them), you get a package of linked tables. It proposes
    which table has one row a patient, and the key, the time and the kind of each table. The export
    of a REDCap project with repeating instruments is one file of several tables, too: name its
    forms that repeat with --repeating.
    """
    from dpsynth.draft import draft_any
    from dpsynth.files import check_vacant, write_new

    if header is None and dictionary is None:
        raise click.UsageError(
            "name the table with --from-header, a data dictionary with --from, or both"
        )
    if delimiter == "\\t":
        delimiter = "\t"
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '\r\n"'):
        raise click.BadParameter("one character is expected, like ';'", param_hint="--delimiter")
    with Console(as_json=as_json, quiet=quiet) as console:
        if output is not None:
            check_vacant(output)
        drafted = draft_any(
            header=header,
            dictionary=dictionary,
            delimiter=delimiter,
            encoding=encoding,
            sheet=sheet,
            catalog=catalog,
            header_row=header_row,
            repeating=repeating,
        )
        if output is not None:
            write_new(output, drafted.text.encode())
        values: dict[str, object] = {
            "proposed": list(drafted.proposed),
            "open": list(drafted.open),
            "dropped": list(drafted.dropped),
            "only_in_header": list(drafted.only_in_header),
            "only_in_dictionary": list(drafted.only_in_dictionary),
            "unused_headings": list(drafted.unused_headings),
            "left_out": list(drafted.left_out),
        }
        if drafted.catalog is not None:
            values["catalog"] = drafted.catalog
        values |= {"schema": drafted.text} if output is None else {"output": str(output)}
        lines = drafted.text.splitlines() if output is None else [f"wrote {output}"]
        console.result("schema.draft", values, lines)
        total = len(drafted.proposed) + len(drafted.open) + len(drafted.dropped)
        console.advice(
            f"{counted(total, 'column')}: {len(drafted.proposed)} proposed, {len(drafted.open)} "
            f"with a TODO, {len(drafted.dropped)} dropped; confirm each, then remove draft: true"
        )
        if drafted.catalog is not None:
            found = "" if catalog is not None else ", found beside the file"
            console.advice(f"value labels from the format catalogue {drafted.catalog}{found}")
        for one in drafted.left_out:
            console.advice(f"left out {one}")
        if drafted.only_in_header:
            console.advice(f"not in the dictionary: {listed(drafted.only_in_header)}")
        if drafted.unused_headings:
            unused = listed(drafted.unused_headings)
            console.advice(
                f"headings of the dictionary that were not used: {unused}; "
                "if one has bounds, units or values, call it minimum, maximum, unit or values"
            )
        if drafted.only_in_dictionary:
            console.advice(f"not in the header, left out: {listed(drafted.only_in_dictionary)}")


NO_TARGET = (
    "tip      no column has the role target, so an evaluation cannot judge how well prediction "
    "models learn from the table; add dpsynth: {role: target} to the outcomes"
)
CLINICAL = (
    "tip      by public lists of clinical edits this can hardly be otherwise; where your documents "
    "say so, add to the rules:"
)


@click.group(cls=HelpfulGroup, epilog="Example:  dpsynth schema check diabetes130 extract.csv.gz")
def schema() -> None:
    """List, show, draft and check schemas. A schema holds the public facts about a table."""


schema.add_command(draft)


@schema.command("list", epilog="Example:  dpsynth schema list")
@output_options
def list_schemas(as_json: bool, quiet: bool) -> None:
    """List the schemas that ship with dpsynth."""
    from dpsynth.schema import LinkedSchema, Schema, shipped_packages, shipped_schemas

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
        packages = {name: LinkedSchema.load(name) for name in shipped_packages()}
        for name, package in packages.items():
            title = f"{package.title or name} ({len(package.table_names)} linked tables)"
            rows.append((name, str(_columns_of(package)), package.key, title))
        lines = table(("name", "columns", "unit", "title"), rows)
        console.result("schemas", {"schemas": [*loaded, *packages]}, lines)


@schema.command(epilog="Example:  dpsynth schema show cardio > mine.schema.yaml")
@click.argument("name")
def show(name: str) -> None:
    """Print a schema as YAML, as a starting point for your own."""
    from dpsynth._util.strict_yaml import yaml_text
    from dpsynth.schema import load_any

    write_text(yaml_text(load_any(name).to_dict()))


@schema.command(epilog="Example:  dpsynth schema check diabetes130 extract.csv.gz")
@click.argument("schema")
@click.argument("data", required=False, type=click.Path())
@click.option(
    "--show-values",
    type=click.Path(),
    metavar="FILE",
    help="Write the cells that do not fit, with counts, to a new file that only you can read.",
)
@click.option(
    "--in-warehouse",
    is_flag=True,
    help="Leave the rows in their database (DuckDB or PostgreSQL). It gives the different cells of "
    "each column with their counts, without their rows.",
)
@output_options
@takes_query
@takes_schema
def check(
    schema: str,
    data: str | None,
    show_values: str | None,
    in_warehouse: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Check SCHEMA, and how well DATA fits it.

    All mistakes in the schema are listed at once. Rules that contradict each other are refused, and
    the fewest that do are named. With DATA, you also see what does not fit:
    unknown and unreadable cells, cells outside the bounds, rows that break a rule or occur twice,
    and sizes that are far from the declared ones. Each finding comes with its likely causes and
    what to do. Of linked tables, DATA has all of them; then you also see rows without a patient,
    rows outside the window or follow-up, and temporal rules that patients break.
    Of a text file, you also see lines that are no records: too short or too long, quotes that
    match no record, footers. Of keys, those that may be two keys of one patient.
    The numbers of records, rows and units that were read are always printed.

    These figures are exact and not private. They are INTERNAL: do not release them. No cell is
    shown; --show-values writes the cells to a file.

    The exit code is 3 if a finding is serious. `dpsynth run` stops at the same findings before it
    charges anything.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.errors import GateError, InputError, Problem, SchemaError

        if show_values is not None and data is None:
            raise click.UsageError("--show-values lists cells of a table; name DATA too")
        if in_warehouse and data is None:
            raise click.UsageError("--in-warehouse is about a table; name DATA too")
        try:
            values, lines, serious = _checked(console, schema, data, show_values, in_warehouse)
        except InputError as error:
            if as_json:
                problems = [Problem("", str(error))]
                if isinstance(error, SchemaError):
                    problems = list(error.problems)
                document = {"schema": schema, "problems": [vars(problem) for problem in problems]}
                console.result("schema.check", document, [])
            raise
        console.result("schema.check", values, lines)
        if serious:
            raise GateError(
                f"{counted(serious, 'serious finding')}: correct the schema or the extract before "
                "you fit"
            )


def _checked(
    console: Console, name: str, data: str | None, show_values: str | None, in_warehouse: bool
) -> tuple[dict[str, object], list[str], int]:
    """Check a schema, and a table if there is one; return values, lines and serious findings."""
    from dpsynth.inspection import (
        check,
        check_values_file,
        write_values,
    )
    from dpsynth.schema import LinkedSchema, load_any, require_consistent_tables

    loaded = load_any(name)
    loaded.require_complete()
    require_consistent_tables(loaded)
    lines, values = _schema_lines(loaded)
    if data is None:
        for word, key in (("warning", "warnings"), ("note", "notes")):
            lines += [f"{word:<7}  {one['place']}: {one['message']}" for one in values[key]]
        return values, lines, 0
    if show_values is not None:
        check_values_file(show_values)

    def told(part: float) -> None:
        console.progress("reading", part)

    if in_warehouse and isinstance(loaded, LinkedSchema):
        raise click.UsageError("linked tables are read; leave out --in-warehouse")
    found = check(data, loaded, in_warehouse=in_warehouse, progress=told)
    if show_values is not None:
        write_values(found, show_values)
        console.advice(f"{show_values} holds cells of real patients; delete it when you are done")
    values |= {"internal": True, **found.to_dict()}
    return values, [*lines, *_found_lines(found)], len(found.serious)


def _schema_lines(schema: AnySchema) -> tuple[list[str], dict[str, Any]]:
    """Say what a schema without a mistake is about."""
    from dpsynth.certificate import OWN_ROWS
    from dpsynth.draft import clinical_rules
    from dpsynth.inspection import schema_notes, schema_warnings
    from dpsynth.schema import LinkedSchema, declared_texts

    if isinstance(schema, LinkedSchema):
        tables = [schema.patients, *(child.schema for child in schema.children)]
        columns, size = _columns_of(schema), counted(len(tables), "table")
        lines = [f"schema {schema.name}: {size}, {columns} columns, unit {schema.key}: no mistakes"]
        lines += [f"{one.name}: {link.left_out}" for one in schema.children for link in one.links]
        lines += [f"declared: {text}" for text in declared_texts(schema)]
    else:
        tables, columns = [schema], len(schema.modelled)
        unit = schema.unit.column or "row"
        lines = [f"schema {schema.name}: {columns} columns, unit {unit}: no mistakes"]
    warnings = [vars(problem) for problem in schema_warnings(schema)]
    notes = [vars(problem) for problem in schema_notes(schema)]
    is_single = not isinstance(schema, LinkedSchema)  # histories are judged by their next rows
    if is_single and not any("target" in c.roles for own in tables for c in own.modelled):
        lines.append(NO_TARGET)
    values: dict[str, Any] = {"schema": schema.name, "columns": columns}
    if isinstance(schema, LinkedSchema):
        values["tables"] = list(schema.table_names)
    proposed = clinical_rules(schema)
    if proposed:
        lines.append(CLINICAL)
        lines += [f"         {one.text}  ({one.reason})" for one in proposed]
    values["proposed_rules"] = [vars(one) for one in proposed]
    lines.append(f"assumed, and not checked: {OWN_ROWS}")
    values["assumed"] = [OWN_ROWS]
    return lines, values | {"problems": [], "warnings": warnings, "notes": notes}


def _columns_of(schema: LinkedSchema) -> int:
    """Count what is modelled: columns, and the tests of long tables."""
    of_rows = (len(child.schema.modelled) + len(child.tests) for child in schema.children)
    return len(schema.patients.modelled) + sum(of_rows)


def _found_lines(check: CheckResult) -> list[str]:
    """Word a check: findings and what to do, the worst first; then the shares of their columns."""
    from dpsynth.schema import LinkedSchema

    head = ["", "INTERNAL: exact figures of real rows; do not release", ""]
    units = [*_read_lines(check), *_unit_lines(check)]
    lines = [line for finding in _shown(check) for line in finding.lines()]
    if all(finding.level.word == "note" for finding in check.findings):
        what = "The tables fit" if isinstance(check.schema, LinkedSchema) else "The table fits"
        notes = counted(len(check.findings), "note") if check.findings else "no finding"
        words = f"{what} the schema: {notes} in {len(check.cells)} columns."
        return [*head, *lines, *([""] if lines else []), words, *units]
    places = {finding.place for finding in check.findings}
    rows = [
        (
            name,
            f"{row.missing:.2%}",
            f"{row.clipped:.2%}",
            f"{row.unknown:.2%}",
            f"{row.bad:.2%}",
        )
        for name, row in check.cells.items()
        if name in places
    ]
    if rows:
        lines += ["", *table(("column", "missing", "clipped", "unknown", "unreadable"), rows)]
    clean = len(check.cells) - len(rows)
    return [*head, *lines, "", f"No finding in {counted(clean, 'other column')}.", *units]


def _shown(check: CheckResult) -> list[Finding]:
    """Return the findings for a person: those of many tests that say the same are one."""
    from dpsynth.inspection import together
    from dpsynth.schema import LinkedSchema

    if isinstance(check.schema, LinkedSchema):
        return together(check.findings, check.schema)
    return list(check.findings)


def _read_lines(check: CheckResult) -> list[str]:
    """Say how much was read: lines and records of a text file, rows and units."""
    from dpsynth.inspection.findings import TABLE

    noun = check.schema.key if hasattr(check.schema, "key") else check.schema.unit.column
    lines = []
    for name, sizes in check.read.items():
        text = f"{counted(sizes['rows'], 'row')}"
        if noun is not None:
            text += f" of {counted(sizes['units'], 'unit')} ({noun})"
        if "records" in sizes:
            records, physical = counted(sizes["records"], "record"), counted(sizes["lines"], "line")
            text += f", from {records} below the header, on {physical} of the file"
        lines.append(f"read{'' if name == TABLE else f' {name}'}: {text}")
    return lines


def _unit_lines(check: CheckResult) -> list[str]:
    """Say how the rows of one table divide into units."""
    from dpsynth.schema import Schema

    if not isinstance(check.schema, Schema) or check.units is None:
        return []
    return [
        f"{counted(check.units.keyless_rows, 'row')} without a key; "
        f"{check.units.over_max_rows:.2%} of the units have more than "
        f"{counted(check.schema.unit.max_rows, 'row')}"
    ]
