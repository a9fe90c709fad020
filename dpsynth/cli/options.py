"""Options that several commands share. Epsilon and delta have no default, on purpose."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import click

from dpsynth.models.registry import AUTO, DEFAULT, NAMES
from dpsynth.schema_wording import did_you_mean

Command = TypeVar("Command", bound=Callable[..., Any])


class ModelChoice(click.Choice[str]):
    """One of the generators; a near miss is pointed out."""

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> Any:
        """Add what was perhaps meant to the message."""
        tried = message.split("'")[1] if "'" in message else ""
        super().fail(message + did_you_mean(tried, NAMES), param, ctx)


def budget_options(command: Command) -> Command:
    """Add ``--epsilon``, ``--delta`` and ``--model``."""
    command = click.option(
        "--model",
        default=DEFAULT,
        show_default=True,
        type=ModelChoice((*NAMES, AUTO)),
        help="The generator to fit; auto chooses by the public size.",
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


def takes_schema(function: Command) -> Command:
    """Say in a command's help what its SCHEMA may be; goes below the options."""
    text = inspect.cleandoc(function.__doc__ or "")
    function.__doc__ = f"{text}\n\nSCHEMA is a path (YAML or JSON) or the name of a shipped schema."
    return function
