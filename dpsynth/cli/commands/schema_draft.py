"""``dpsynth schema draft``: a schema proposed from names and documents, never from rows."""

from __future__ import annotations

import click

from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth.cli.console import Console, output_options


@click.command(epilog="Example:  dpsynth schema draft --from dictionary.xlsx -o mine.schema.yaml")
@click.option(
    "--from-header",
    "header",
    type=click.Path(),
    help="CSV file of the table, or a folder with a file for each of several linked tables. Only "
    "first lines are read, for the names of the columns.",
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
@click.option("--sheet", help="Sheet of a workbook; default: the first that is a dictionary.")
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
    catalog: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draft a schema from column names or a data dictionary.

    No row is read. Bounds and units are proposals, from your document or from a shipped table of
    clinical ranges, each with its source. Everything else is TODO. A person confirms each
    proposal: until then, no fit accepts the schema.

    Give --from-header, --from, or both: then the columns are those of the header.

    With a folder, or a dictionary whose column "Table" names several tables or whose workbook has a
    sheet for each, you get a package of linked tables. It proposes which table has one row a
    patient, and the key, the time and the kind of each table.
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
        )
        if output is not None:
            write_new(output, drafted.text.encode())
        values: dict[str, object] = {
            "proposed": list(drafted.proposed),
            "open": list(drafted.open),
            "dropped": list(drafted.dropped),
            "only_in_header": list(drafted.only_in_header),
            "only_in_dictionary": list(drafted.only_in_dictionary),
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
        if drafted.only_in_dictionary:
            console.advice(f"not in the header, left out: {listed(drafted.only_in_dictionary)}")
