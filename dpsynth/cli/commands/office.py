"""``dpsynth office``: forms in a browser on this machine, to prepare a release and to run it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpsynth._util.output import write_line
from dpsynth.cli.group import HelpfulGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

_PORT = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port; default: any that is free."
)


@click.group(cls=HelpfulGroup, epilog="Example:  dpsynth office prepare release/")
def office() -> None:
    """Prepare and run a release by forms in a browser, on this machine alone.

    The command prints an address that works once, in one browser. No request leaves the machine.
    Everything that a form does is a command and a file, which its page names. Ctrl-C ends the
    office; nothing is lost.
    """


@office.command(epilog="Example:  dpsynth office prepare release/ --header extract.csv")
@click.argument("folder", type=click.Path())
@click.option(
    "--header",
    type=click.Path(),
    help="Table, or folder of tables, of which the draft reads the headings and no row.",
)
@click.option("--dictionary", type=click.Path(), help="Data dictionary for the draft.")
@_PORT
def prepare(folder: str, header: str | None, dictionary: str | None, port: int) -> None:
    """Describe a table and choose a budget, without seeing a row.

    FOLDER gets the schema and dpsynth.yaml; it is made if it is not there. You draft the schema
    from headings and a data dictionary, confirm each column, name the release, and see what an
    epsilon means. A colleague who may see rows goes on with `dpsynth office run`.
    """
    from dpsynth.files import clear_errors, held

    _need()
    from dpsynth.office import Gate, Prepare, hosts_of, listening, serve

    place = Path(folder)
    with clear_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    with held(place), listening(port) as listener:
        gate = Gate(hosts_of(listener))
        role = Prepare.of(place, gate, header, dictionary)
        serve(listener, gate, role.pages, role.actions, _tell)


@office.command(epilog="Example:  dpsynth office run release/")
@click.argument("folder", type=click.Path())
@click.option(
    "--data",
    type=click.Path(),
    help="The private table, as `dpsynth run` takes it; default: a form asks for it.",
)
@_PORT
def run(folder: str, data: str | None, port: int) -> None:
    """Check, run, review and release; for people who may see rows.

    FOLDER is what `dpsynth office prepare` made. You name the table, read what does not fit, start
    the run, review its internal results, let another person sign off, sign the bundle and download
    it. The run goes on when you end the office; an office that is started again finds it.
    """
    from dpsynth.files import held

    _need()
    from dpsynth.office import Gate, Run, hosts_of, listening, serve

    with listening(port) as listener:
        role = Run.of(Path(folder), Gate(hosts_of(listener)), data)
        with held(role.private):
            serve(listener, role.office.gate, role.pages, role.actions, _tell)


def _need() -> None:
    """Make sure that what serves pages is installed."""
    from dpsynth._util.dependencies import OFFICE, need

    for module in OFFICE:
        need(module)


def _tell(lines: Sequence[str]) -> None:
    for line in lines:
        write_line(line)
