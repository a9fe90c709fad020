"""Options that several commands share. Epsilon and delta have no default, on purpose."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import click

from dpsynth._util.messages import did_you_mean
from dpsynth._util.outside_names import outside_name
from dpsynth.models import check_model
from dpsynth.models.registry import AUTO, DEFAULT, KNOWN, model_names, names_of
from dpsynth.tables.formats import usual_suffixes

_DATA = (
    f"DATA is a file ({usual_suffixes()}), a part of one ('file.xlsx#SHEET'), a folder of Parquet "
    "files, or a table of a database ('postgresql://host/db#schema.table'). Linked tables are the "
    "files of a folder, or the parts of one file or database, with the names of the tables; or one "
    "table with the rows of all, if the schema declares rows_where."
)
Command = TypeVar("Command", bound=Callable[..., Any])


class ModelChoice(click.Choice[str]):
    """One of the generators, those of other packages included; a near miss is pointed out."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a name of dpsynth's own, or one that an installed package offers."""
        listed = value in self.choices or not isinstance(value, str)
        if not listed and (outside_name(value) is not None or value in model_names()):
            return check_model(value)
        return super().convert(value, param, ctx)

    def fail(
        self,
        message: str,
        param: click.Parameter | None = None,
        ctx: click.Context | None = None,
    ) -> Any:
        """Add what was perhaps meant to the message."""
        tried = message.split("'")[1] if "'" in message else ""
        super().fail(message + did_you_mean(tried, model_names()), param, ctx)


def budget_options(command: Command) -> Command:
    """Add ``--epsilon`` or ``--risk``, ``--delta``, all required, and ``--model``."""
    return _budget(command, required=True)


def budget_options_unless_not_private(command: Command) -> Command:
    """Add the same, and ``--not-private`` in the place of a budget; see `check_budget`."""
    command = click.option(
        "--not-private",
        is_flag=True,
        help="Fit WITHOUT privacy, instead of with a budget. For benchmarks only: the run is "
        "stamped and can never be released. For the models "
        f"{', '.join(names_of(lambda spec: spec.neural))}.",
    )(command)
    return _budget(command, required=False)


def check_budget(
    not_private: bool = False, *, epsilon: float | None, risk: str | None, **others: object
) -> None:
    """Require a budget, of which epsilon or a risk is a part, or ``--not-private`` and no budget.

    Raises:
        UsageError: an option is missing, or contradicts another one.
    """
    if not_private:
        for name, value in {"epsilon": epsilon, "risk": risk, **others}.items():
            if value is not None and name != "dataset":
                raise click.UsageError(f"--not-private spends no budget; leave out --{name}")
        return
    if epsilon is not None and risk is not None:
        raise click.UsageError("an epsilon follows from --risk; leave out --epsilon or --risk")
    if epsilon is None and risk is None:
        raise click.MissingParameter(param_hint="'--epsilon' or '--risk'", param_type="option")
    for name, value in others.items():
        if value is None:
            raise click.MissingParameter(param_hint=f"'--{name}'", param_type="option")


def _budget(command: Command, *, required: bool) -> Command:
    command = click.option(
        "--model",
        default=DEFAULT,
        show_default=True,
        type=ModelChoice((*KNOWN, AUTO)),
        help="Generator to fit; auto chooses one from public facts: size, columns and budget. You "
        "can also name a generator of another installed package.",
    )(command)
    command = click.option(
        "--delta",
        required=required,
        type=float,
        help="Probability with which the epsilon bound may not hold; keep it well below 1 / "
        "patients.",
    )(command)
    command = click.option(
        "--risk",
        metavar="FOUND@ALARMS",
        help="In place of --epsilon: the largest share of the patients in the data that any attack "
        "may find, at a share of false alarms. 0.05@0.01 means at most 5 % found at 1 % false "
        "alarms. The epsilon follows from it.",
    )(command)
    return click.option(
        "--epsilon",
        type=float,
        help="Privacy budget of this fit, for each privacy unit.",
    )(command)


def policy_options(command: Command) -> Command:
    """Add ``--policy`` and ``--tier``."""
    command = click.option(
        "--tier", help="Tier of the policy under which to charge, if the policy has tiers."
    )(command)
    return click.option(
        "--policy",
        envvar="DPSYNTH_POLICY",
        type=click.Path(),
        help="Policy file to apply. If the ledger has adopted a policy, that one applies anyway.",
    )(command)


def dataset_option(command: Command) -> Command:
    """Add ``--dataset``, which only a charge needs."""
    return click.option(
        "--dataset",
        envvar="DPSYNTH_DATASET",
        help="Name under which the ledger counts the budget that these patients have spent.",
    )(command)


def publish_option(command: Command) -> Command:
    """Add ``--publish-quality``."""
    return click.option(
        "--publish-quality",
        type=float,
        metavar="SHARE",
        help="Set aside this share of the budget (such as 0.05) for quality figures that you can "
        "publish. `dpsynth evaluate --publish` spends it once.",
    )(command)


def workers_option(what: str) -> Callable[[Command], Command]:
    """Add ``--workers``.

    Args:
        what: what these processes do.
    """
    return click.option(
        "--workers",
        type=click.IntRange(min=1),
        help=f"Number of processes that {what}. The result is the same with any number.  "
        "[default: 1 for each core, if DATA is a large file]",
    )


memory_option = click.option(
    "--any-memory",
    is_flag=True,
    help="Fit also if the fit needs more memory than this machine, its container or ulimit gives. "
    "It may then fail after it was charged.",
)
"""Adds ``--any-memory``."""


def takes_query(function: Command) -> Command:
    """Add ``--query`` to a command whose DATA may be the URL of a database; goes last, above it."""

    @click.option(
        "--query",
        type=click.Path(),
        metavar="FILE",
        help="File with one SELECT, to run in the database whose URL is DATA.",
    )
    @functools.wraps(function)
    def joined(*args: Any, query: str | None, **values: Any) -> Any:
        if query is not None:
            values["data"] = _query_of(values.get("data"), query)
        return function(*args, **values)

    text = inspect.cleandoc(function.__doc__ or "")
    joined.__doc__ = f"{text}\n\n{_DATA}"
    return cast(Command, joined)


def _query_of(data: str | None, query: str) -> str:
    from dpsynth.errors import InputError
    from dpsynth.tables import with_query

    try:
        return with_query(data or "", query)
    except InputError as error:
        raise click.UsageError(str(error)) from None


def takes_schema(function: Command) -> Command:
    """Say in a command's help what its SCHEMA may be; goes below the options."""
    text = inspect.cleandoc(function.__doc__ or "")
    function.__doc__ = f"{text}\n\nSCHEMA is a path (YAML or JSON) or the name of a shipped schema."
    return function


def refuse_options(options: Mapping[str, object], why: str) -> None:
    """Refuse options that a command has for the other kind of run.

    Raises:
        UsageError: one is given.
    """
    for name, value in options.items():
        if value not in (None, False, ()):
            raise click.UsageError(f"{name} {why}")
