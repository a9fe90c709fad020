"""``dpsynth plan --forecast``: its options, and a forecast as lines of the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpsynth.cli.console import Console, table

if TYPE_CHECKING:
    from dpsynth.schema import AnySchema

Command = TypeVar("Command", bound=Callable[..., Any])
SHOWN = 15  # columns in the terminal, the worst ones


def forecast_options(command: Command) -> Command:
    """Add ``--forecast`` and the options that belong to it."""
    for option in (
        click.option(
            "--output",
            "-o",
            type=click.Path(),
            metavar="FOLDER",
            help="With --forecast: new folder for forecast.json and the page forecast.html.",
        ),
        click.option(
            "--error-of",
            metavar="pairs|columns|COLUMN",
            help="With --forecast: what the wanted error and the curves are of: the mean over "
            "pairs of columns (default) or over columns, or one column.",
        ),
        click.option(
            "--wanted-error",
            type=float,
            metavar="DISTANCE",
            help="With --forecast: also find the epsilon and the population that would reach this "
            "error, such as 0.02.",
        ),
        click.option(
            "--like",
            type=click.Path(),
            metavar="RUN|BUNDLE",
            help="With --forecast: draw rows from this earlier release with the same columns, "
            "instead of from the schema alone.",
        ),
        click.option(
            "--forecast",
            is_flag=True,
            help="Also forecast the error of each column, each pair and of subgroups, from "
            "simulated fits. Reads no private row and spends nothing; takes about ten times as "
            "long as a fit of mixture.",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class ForecastRequest:
    """What the command line asks of a forecast.

    Attributes:
        forecast: whether there is one.
        like: folder of an earlier release.
        wanted_error: a distance.
        error_of: what it is of.
        output: folder for the document and the page.
    """

    forecast: bool
    like: str | None
    wanted_error: float | None
    error_of: str | None
    output: str | None

    def check(self) -> None:
        """Refuse options that mean nothing without a forecast, and a folder that is in the way.

        Raises:
            UsageError: ``--forecast`` is missing.
            InputError: the folder is there, or cannot be written.
        """
        options = {
            "--like": self.like,
            "--wanted-error": self.wanted_error,
            "--error-of": self.error_of,
            "--output": self.output,
        }
        if not self.forecast:
            if lone := [name for name, value in options.items() if value is not None]:
                raise click.UsageError(f"{lone[0]} belongs to --forecast; add it")
            return
        from dpsynth.forecasts import check_folder

        check_folder(self.output)

    def made(
        self,
        console: Console,
        schema: AnySchema,
        epsilon: float,
        delta: float,
        model: str,
        publish_quality: float | None,
    ) -> dict[str, Any]:
        """Make the forecast, and write it if a folder is named."""
        from dpsynth.forecasts import write_forecast
        from dpsynth.forecasts.forecast import PAIRS, forecast

        console.advice(
            "The forecast simulates 8 to 20 fits, one after the other, and reads no private row. "
            "Once some are done, it says how long the others take."
        )
        document: dict[str, Any] = forecast(
            schema,
            epsilon=epsilon,
            delta=delta,
            model=model,
            like=self.like,
            wanted_error=self.wanted_error,
            error_of=self.error_of or PAIRS,
            publish_quality=publish_quality,
            progress=console.progress,
        )
        if self.output is not None:
            write_forecast(self.output, document)
            console.advice(f"The forecast is in {self.output}: open forecast.html.")
        return document


def forecast_lines(document: Mapping[str, Any]) -> list[str]:
    """Lay out a forecast for a person."""
    from dpsynth.forecasts import source_words, wanted_sentences

    figures = [("one column", document["columns"])]
    if document["pairs"]["each"]:
        figures.append(("a pair of columns", document["pairs"]))
    each = sorted(document["columns"]["each"], key=lambda column: -column["expected"])
    smallest = document["subgroups"]["smallest_of_all"]
    lines = [
        f"forecast    of {document['fits']} simulated fits; no private row was read",
        f"made from   {source_words(document)}",
        "",
        *table(
            ("error (0 to 1), mean over", "expected", "least", "largest"),
            [(name, *_of(found)) for name, found in figures],
        ),
        "",
        *table(
            ("column", "expected", "least", "largest"),
            [(column["name"], *_of(column)) for column in each[:SHOWN]],
        ),
    ]
    if len(each) > SHOWN:
        lines.append(f"and {len(each) - SHOWN} columns with a smaller error")
    if pairs := sorted(document["pairs"]["each"], key=lambda pair: -pair["expected"]):
        first, second = pairs[0]["columns"]
        lines += ["", f"worst pair  {first} and {second}: {pairs[0]['expected']:.4f}"]
    if sizes := document["subgroups"]["by_size"]:
        rows = [
            (
                f"{size['rows']}",
                f"{size['survive']:.0%}",
                f"{size['off']:.0%}",
                "" if size["inside"] is None else f"{size['inside']:.3f}",
                "" if size["chance"] is None else f"{size['chance']:.3f}",
            )
            for size in sizes
        ]
        header = ("subgroup of rows", "survive", "size within", "error inside", "by chance")
        lines += ["", *table(header, rows)]
    lines += [
        "",
        "survive     nine in ten subgroups keep half to twice their rows "
        + ("at no size" if smallest is None else f"from {smallest} rows on"),
    ]
    for place, sentence in enumerate(wanted_sentences(document)):
        lines.append(f"{'' if place else 'wanted':<11} {sentence}")
    return lines


def _of(figures: Mapping[str, float]) -> list[str]:
    return [f"{figures[key]:.4f}" for key in ("expected", "low", "high")]
