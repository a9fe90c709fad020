"""``dpsynth plan``: every mechanism of a fit and its noise, before any data is opened."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.options import (
    budget_options,
    check_budget,
    policy_options,
    publish_option,
    takes_schema,
)
from dpsynth.errors import BudgetError
from dpsynth.forecasts.capacity_words import capacity_lines
from dpsynth.forecasts.plan_words import (
    attack_lines,
    cost_text,
    describe_event,
    discovery_lines,
    discovery_values,
    epsilon_of_risk,
    unit_noun,
    unit_text,
)
from dpsynth.privacy import ChosenHistograms

if TYPE_CHECKING:
    from dpsynth.certificate.table_bound import TableBound
    from dpsynth.privacy import PrivacyPlan
    from dpsynth.schema import AnySchema, Schema
    from dpsynth.synthesis import PolicyPreview, Prepared, PreparedCohort, Wish

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


@click.command(
    epilog="Example:  dpsynth plan diabetes130 --epsilon 3 --delta 1e-6 --model autoregressive"
)
@click.argument("schema")
@budget_options
@click.option("--dataset", help="Also check with the ledger whether this dataset can spend this.")
@policy_options
@publish_option
@forecast_options
@output_options
@takes_schema
def plan(
    schema: str,
    epsilon: float | None,
    risk: str | None,
    delta: float,
    model: str,
    publish_quality: float | None,
    dataset: str | None,
    tier: str | None,
    policy: str | None,
    forecast: bool,
    like: str | None,
    wanted_error: float | None,
    error_of: str | None,
    output: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show the mechanisms and noise of a fit; open no data.

    You see every mechanism that the fit would run, with its share of the budget and its noise, and
    about how long the fit would take on this machine and how much memory. You also see attack
    rates: which share of the patients in the data any attack can find at most; and what this
    population and budget can carry: how many columns, which groups and relations are lost in the
    noise, and what helps. With --policy or --dataset, also check the fit against the policy: see
    every constraint, the tightest one, and what would satisfy all of them. The exit code is 4 if
    the policy would refuse the fit.

    With --forecast, also see what error to expect before you spend anything.

    SCHEMA may also be the path of a request for statistics. Then you see how precise each statistic
    would be, as with `dpsynth stats` without DATA. Use only --epsilon and --delta with a request.
    """
    from dataclasses import asdict

    from dpsynth.certificate import attack_rates_of, bounds_of
    from dpsynth.cli.commands.answers import planned
    from dpsynth.inspection import lost_calendar
    from dpsynth.privacy import Unit
    from dpsynth.schema import Schema, load_any
    from dpsynth.stats import StatisticsRequest, is_request
    from dpsynth.synthesis import Wish, capacity, estimated, prepare, require_small_delta
    from dpsynth.synthesis.policy_preview import UNNAMED

    request = ForecastRequest(forecast, like, wanted_error, error_of, output)
    with Console(as_json=as_json, quiet=quiet) as console:
        request.check()
        if is_request(schema):
            _require_default(click.get_current_context())
            check_budget(epsilon=epsilon, risk=None)
            assert epsilon is not None
            console.result("stats-plan", *planned(StatisticsRequest.load(schema), epsilon, delta))
            return
        check_budget(epsilon=epsilon, risk=risk)
        loaded, asked = load_any(schema), ""
        if risk is not None:
            epsilon, asked = epsilon_of_risk(loaded, risk, delta, model, publish_quality)
        assert epsilon is not None
        prepared = prepare(
            loaded, epsilon=epsilon, delta=delta, model=model, publish_quality=publish_quality
        )
        require_small_delta(loaded, epsilon, delta)
        calibrated, model = prepared.plan, prepared.model
        total = sum(event.mu() ** 2 for event in calibrated.events)
        noun = unit_noun(loaded)
        rows = [
            (event.name, _part(event.mu() ** 2 / total), describe_event(event, noun))
            for event in calibrated.events
        ]
        values = {
            "schema": loaded.name,
            "model": model,
            "reason": prepared.reason,
            "unit": unit_text(loaded),
            "population": loaded.population.value,
            "plan": calibrated.to_dict(),
        }
        lines = [
            f"schema      {loaded.name}",
            f"model       {model} ({prepared.reason})",
            f"unit        {unit_text(loaded)}",
            f"population  {loaded.population.value} {noun or 'units'} (public)",
            f"budget      epsilon {epsilon:g}, delta {delta:g}; "
            f"all mechanisms together cost epsilon {calibrated.epsilon:.4g}"
            + cost_text(loaded, calibrated.budget.epsilon, calibrated.budget.delta),
            "",
            *table(("mechanism", "share", "noise"), rows),
        ]
        rates = attack_rates_of(calibrated.events, Unit.of(loaded))
        values["attack_rates"] = vars(rates)
        blank = lines.index("")
        lines[blank:blank] = attack_lines(rates, loaded)
        if risk is not None:
            values["risk"] = risk
            lines.insert(blank - 1, f"risk        {asked}")
        cost = estimated(prepared)
        values["takes"] = cost.to_dict()
        lines.insert(lines.index(""), f"takes       {cost.words}, on this machine")
        carried = capacity(prepared)
        values["carries"] = carried.to_dict()
        lines += ["", *capacity_lines(carried)]
        if lost := lost_calendar(loaded):
            lines += ["", *(f"not kept    {one.place}: {one.message}" for one in lost)]
        if discovery := discovery_values(calibrated, loaded):
            values["discovery"] = discovery
            lines += ["", *discovery_lines(discovery)]
        if bounds := bounds_of(loaded):
            values["tables"] = [asdict(bound) for bound in bounds]
            lines += ["", *_bound_lines(bounds, loaded)]
        wish = Wish(loaded, dataset or UNNAMED, tier, model, publish_quality)
        if publish_quality is not None and isinstance(loaded, Schema):
            lines += ["", _published_within(calibrated, loaded)]
        answer = _answer(console, prepared, wish, policy, named=dataset is not None)
        if answer is not None:
            values["policy"] = answer.to_dict()
            lines += ["", *_answer_lines(answer)]
        if forecast:
            document = request.made(console, loaded, epsilon, delta, model, publish_quality)
            values["forecast"] = document
            lines += ["", *forecast_lines(document)]
        console.result("plan", values, lines)
        if answer is not None and not answer.allowed:
            raise BudgetError(f"the policy '{answer.policy.name}' would refuse this fit")


def _part(share: float) -> str:
    """Write a share of the budget in whole percents; a small one is not none."""
    return f"{share:.0%}" if share >= 0.005 else "<1%"


_OF_STATISTICS = ("schema", "epsilon", "delta", "as_json", "quiet")


def _require_default(context: click.Context) -> None:
    """Refuse options of a fit; those of the environment are of no account."""
    given = (click.core.ParameterSource.COMMANDLINE,)
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in _OF_STATISTICS and context.get_parameter_source(name) in given:
            raise click.UsageError(
                f"{parameter.opts[0]} is for fits, and this is a request for statistics; leave it "
                "out. `dpsynth stats` checks the ledger and its policy before it charges"
            )


def _answer(
    console: Console,
    prepared: Prepared | PreparedCohort,
    wish: Wish,
    file: str | None,
    *,
    named: bool,
) -> PolicyPreview | None:
    """Ask the policy that is named, else that of the ledger, where a dataset is named."""
    from datetime import UTC, datetime

    from dpsynth.ledger import Ledger
    from dpsynth.policy import Policy
    from dpsynth.synthesis.policy_preview import asked

    policy = None if file is None else Policy.load(file)
    book = Ledger.existing() if named else None
    state = None if book is None else book.state()
    adopted = None if state is None else state.policy
    if policy is not None and adopted is not None and adopted.digest != policy.digest:
        console.advice(
            f"The ledger has adopted the policy '{adopted.name}', which applies to fits."
        )
    return asked(prepared, wish, policy or adopted, state, datetime.now(UTC))


def _answer_lines(answer: PolicyPreview) -> list[str]:
    """Lay out what the policy says of each constraint, what stops the fit, and what would fit."""
    from dpsynth.policy import figure_of

    rows = [
        (
            "ok" if verdict.allowed else "NO",
            verdict.constraint,
            figure_of(verdict.limit),
            "" if verdict.used is None else figure_of(verdict.used),
            figure_of(verdict.asked),
            verdict.basis,
        )
        for verdict in answer.verdicts
    ]
    lines = [
        f"policy      {answer.policy.name}: {'allows this' if answer.allowed else 'refuses this'}",
        "",
        *table(("", "constraint", "limit", "used", "asked", "basis"), rows),
        "",
    ]
    names = ", ".join(verdict.constraint for verdict in answer.binding)
    if answer.allowed:
        return [*lines, f"tightest    {names}"] if names else lines[:-1]
    lines.append(f"stopped by  {names}")
    lines += [f"            {verdict.constraint}: {verdict.remedy}" for verdict in answer.binding]
    if answer.largest is not None:
        lines.append(f"try         epsilon {answer.largest:g}, which satisfies every constraint")
    return lines


def _bound_lines(bounds: tuple[TableBound, ...], schema: AnySchema) -> list[str]:
    """Say what of a patient counts in each linked table."""
    from dpsynth.schema import LinkedSchema

    window = schema.window if isinstance(schema, LinkedSchema) else None
    noun, rows = "day" if window is None else window.noun, []
    for bound in bounds:
        most = f"{bound.max_rows} {'row' if bound.max_rows == 1 else 'rows'} of a patient"
        if bound.kind == "long":
            most += f" for each of {bound.series} tests"
        elif bound.kind == "once":
            most = f"each of {bound.series} events once"
        days = "" if bound.first_day is None else f"{noun}s {bound.first_day} to {bound.last_day}"
        rows.append((bound.name, bound.kind, most, days))
    return table(("table", "kind", "at most", "window"), rows)


def _published_within(plan: PrivacyPlan, schema: Schema) -> str:
    """Say how sharp a public figure will be, so that nobody pays for one that tells nothing."""
    from dpsynth.privacy.public_quality import QUALITY

    event = plan.event(QUALITY)
    assert isinstance(event, ChosenHistograms)
    rows = schema.rows.value
    half = 1.96 * event.noise_multiplier * math.sqrt(event.most) * event.mass / (2 * rows)
    return (
        f"quality     a column's distance (0 to 1) will be published to within about {half:.2g} "
        f"if measured on {rows} rows, or {5 * half:.2g} on a holdout of a fifth of them"
    )


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
