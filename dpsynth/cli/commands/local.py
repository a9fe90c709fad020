"""``dpsynth local``: answers that are randomised at their source, without a trusted curator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.group import HelpfulGroup
from dpsynth.cli.options import takes_schema

if TYPE_CHECKING:
    from dpsynth.local import Estimates, Reports


@click.group(
    cls=HelpfulGroup, epilog="Example:  dpsynth local estimate perturbed.csv -o estimates/"
)
def local() -> None:
    """Randomise answers at the source, and count them, when no curator is trusted."""


@local.command(
    epilog="Example:  dpsynth local perturb cardio answers.csv --columns gender,height --cuts "
    "height=150,170 --epsilon 2 -o perturbed.csv"
)
@click.argument("schema", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--columns", required=True, help="Columns to perturb, separated by commas.")
@click.option(
    "--cuts",
    multiple=True,
    metavar="COLUMN=A,B",
    help="Public numbers at which to cut a column.",
)
@click.option(
    "--epsilon",
    required=True,
    type=float,
    help="What each person spends on all columns together, in equal parts.",
)
@click.option("--output", "-o", required=True, type=click.Path(), help="New CSV file to write.")
@output_options
@takes_schema
def perturb(
    schema: str,
    data: str,
    columns: str,
    cuts: tuple[str, ...],
    epsilon: float,
    output: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Randomise each person's answers in DATA; write nothing else.

    DATA is a CSV file, plain or gzipped, with one line for each person: each line is a row, and a
    cell has no line break. Once its header is accepted, there is a report for each row, whatever
    the answers are.

    Run this once, where the answers are given: each further run about the same people spends
    epsilon again. The public settings are written next to the table, as OUTPUT.json.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.local import perturb as perturbed

        names = [name.strip() for name in columns.split(",") if name.strip()]
        reports = perturbed(data, schema, names, epsilon=epsilon, cuts=_cuts(cuts), output=output)
        console.result("local-perturb", *_perturbed(reports, output))


@local.command(epilog="Example:  dpsynth local estimate perturbed.csv -o estimates/")
@click.argument("perturbed", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=float,
    help="Confidence of each interval, taken separately.",
)
@click.option("--output", "-o", type=click.Path(), help="New folder for a CSV and a JSON file.")
@output_options
def estimate(
    perturbed: tuple[str, ...], confidence: float, output: str | None, as_json: bool, quiet: bool
) -> None:
    """Estimate from PERTURBED tables how many people are in each category.

    Several tables with the same settings are counted together. The settings are read from the JSON
    file next to each table.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.local import estimate as estimates

        found = estimates(list(perturbed), confidence=confidence, output=output)
        console.result("local-estimate", *_estimated(found, output))


def _cuts(words: tuple[str, ...]) -> dict[str, list[float]]:
    """Read ``column=a,b``."""
    found = {}
    for word in words:
        name, _, numbers = word.rpartition("=")
        try:
            found[name.strip()] = [float(number) for number in numbers.split(",")]
        except ValueError:
            name = ""
        if not name:
            raise click.UsageError("--cuts needs a column and rising numbers: --cuts age=40,65")
    return found


def _perturbed(reports: Reports, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what was written, from public settings alone."""
    settings = reports.settings
    lines = [
        f"{one.name}: {one.randomiser.kind} among {len(one.labels)} categories, "
        f"epsilon {figure(one.randomiser.epsilon)}"
        for one in settings.columns
    ]
    lines.append(f"cost: epsilon {figure(settings.epsilon)} for each person, at each run")
    lines.append(f"perturbed {output}, with its public settings in {output}.json")
    return {"perturbed": output, "settings": settings.to_dict()}, lines


def _estimated(found: Estimates, output: str | None) -> tuple[dict[str, Any], list[str]]:
    """Say how many people have each category, as values and as lines."""
    rows = found.table.to_dict("records")
    values = {
        "estimates": output,
        "people": found.people,
        "confidence": found.confidence,
        "stamps": list(found.settings.stamps),
        "rows": rows,
    }
    header = ["column", "category", "count", "lower", "upper", "share", "lower", "upper"]
    texts = [
        [str(row["column"]), str(row["category"])]
        + [f"{row[key]:.1f}" for key in ("count", "lower", "upper")]
        + [f"{row[key]:.4f}" for key in ("share", "share_lower", "share_upper")]
        for row in rows
    ]
    lines = table(header, texts)
    lines.append(f"people: {found.people:,}; confidence {found.confidence:g} of each interval")
    if found.settings.stamps:
        lines.append(f"stamped: {', '.join(found.settings.stamps)}: protects nobody")
    return values, lines
