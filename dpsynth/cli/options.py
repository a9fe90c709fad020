"""Options that several commands share. Epsilon and delta have no default, on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from dpsynth.models.registry import DEFAULT, NAMES

Command = TypeVar("Command", bound=Callable[..., Any])

SCHEMA_HELP = "SCHEMA is a path (YAML or JSON) or the name of a shipped schema."


def budget_options(command: Command) -> Command:
    """Add ``--epsilon``, ``--delta`` and ``--model``."""
    command = click.option(
        "--model",
        default=DEFAULT,
        show_default=True,
        type=click.Choice(NAMES),
        help="The generator to fit.",
    )(command)
    command = click.option(
        "--delta",
        required=True,
        type=float,
        help="Probability that the guarantee of epsilon may miss; well below 1 / patients.",
    )(command)
    return click.option(
        "--epsilon", required=True, type=float, help="Privacy budget of this fit, for each unit."
    )(command)
