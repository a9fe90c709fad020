"""``dpsynth run``: from a private table to a bundle, in one go that can be resumed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.environment import variable
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.options import (
    ModelChoice,
    memory_option,
    takes_query,
    takes_schema,
    workers_option,
)
from dpsynth.models.registry import AUTO, DEFAULT, KNOWN

if TYPE_CHECKING:
    from dpsynth.certificate import Override
    from dpsynth.workflow import Outcome, ResolvedSettings, RunState, Settings

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # see dpsynth.cli.evaluate

FILE = "dpsynth.yaml"  # as in dpsynth.settings, which is imported when the command runs
VARIABLES = {"dataset": "DPSYNTH_DATASET", "policy": "DPSYNTH_POLICY"}


@click.command(
    epilog="Example:  dpsynth run diabetes130 extract.csv --dataset diabetes "
    "--epsilon 3 --delta 1e-6 -o bundle/"
)
@click.argument("schema", required=False)
@click.argument("data", type=click.Path(), required=False)
@click.option("--config", type=click.Path(), help=f"Settings file; default without SCHEMA: {FILE}.")
@click.option("--dataset", help="Name under which the ledger counts what these patients spent.")
@click.option("--epsilon", type=float, help="Privacy budget of the fit, for each privacy unit.")
@click.option("--delta", type=float, help="Probability with which epsilon may not hold.")
@click.option(
    "--model",
    type=ModelChoice((*KNOWN, AUTO)),
    help=f"Generator to fit; default: {DEFAULT}, which chooses one from public facts.",
)
@click.option("--output", "-o", type=click.Path(), help="New folder for the bundle.")
@click.option("--holdout", type=float, help="Share of units to hold out; default: 0.2; 0 for none.")
@click.option("--opt-out", type=click.Path(), help="List of units to leave out of every stage.")
@click.option("--rows", type=int, help="Rows to draw; default: the public number of fitted rows.")
@click.option("--seed", type=int, help="Public seed for sampling; default: a new, recorded one.")
@click.option(
    "--publish-quality", type=float, metavar="SHARE", help="Share of the budget; see fit."
)
@click.option("--policy", type=click.Path(), help="Policy file to apply, as in fit.")
@click.option("--tier", help="Tier of the policy, if the policy has tiers.")
@click.option("--purpose", help="Purpose of the fit, in a few words for the ledger.")
@click.option("--gates", type=click.Path(), help="YAML file with your own internal gates.")
@click.option(
    "--rules", type=click.Path(), help="Rules that were confirmed after the fit; see dpsynth rules."
)
@click.option("--canaries", type=int, help="Patients to plant in the audit; default: 1000.")
@click.option("--attacks/--no-attacks", default=None, help="Also attack the table, or do not.")
@click.option(
    "--accept",
    multiple=True,
    metavar="NAME",
    help="Go on although the check found this, such as hba1c:clipped. Repeat it for several.",
)
@click.option("--about", type=click.Path(), help="YAML file with public facts about the release.")
@click.option("--work", type=click.Path(), help="Folder for the stages; default: OUTPUT.work.")
@click.option("--internal", type=click.Path(), help="Internal results; default: OUTPUT.internal.")
@click.option("--save-config", type=click.Path(), help="First write all settings to this file.")
@workers_option("read, draw, evaluate and attack a large table")
@memory_option
@click.option("--dry-run", is_flag=True, help="Show the stages and the plan; open no data.")
@click.option("--fit-again", is_flag=True, help="Fit again after an interruption; charged again.")
@click.option("--override", metavar="REASON", help="Release although a public gate stops it.")
@click.option("--by", metavar="NAME", help="Person responsible for --override; both are public.")
@output_options
@takes_query
@takes_schema
def run(
    config: str | None,
    save_config: str | None,
    dry_run: bool,
    fit_again: bool,
    override: str | None,
    by: str | None,
    workers: int | None,
    any_memory: bool,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Make a bundle from a private table in one command.

    The stages are check, split, fit, sample, evaluate, audit and release. The check compares the
    table with its schema; a serious finding stops the run before anything is charged. Run the same
    command again to continue after the last completed stage. An interrupted fit stays charged. A
    network goes on from its last checkpoint, without a new charge; dpsynth repeats another fit only
    with --fit-again. Without SCHEMA and DATA, settings come from
    dpsynth.yaml. Options override the file.

    Evaluation and audit are INTERNAL. They never influence whether the bundle is written or what it
    contains, even if they cannot be completed. The command ends with their answer: what the table
    is fit for, where it differs most, and whether to release it. The exit code is 3 if the check
    stopped the run (nothing is charged), if a public gate stopped the release (then there is no
    bundle), if an internal gate failed, if an attack succeeded, if no
    attack could have seen a leak or one was claimed where nothing leaks, or if the evaluation or
    audit could not be completed. Read internal.html before you sign the
    bundle with dpsynth sign.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.bundle.format.layout import SIGNATURE
        from dpsynth.certificate import Override
        from dpsynth.workflow import ResolvedSettings

        if (override is None) != (by is None):
            raise click.UsageError("give both --override REASON and --by NAME, or neither")
        excuse = None if override is None or by is None else Override(override, by)
        settings = _settings(config, values)
        order = ResolvedSettings.of(settings)
        if save_config is not None:
            fresh = order.settings.seed_in(save_config) if settings.seed is None else None
            if fresh is not None:
                order = replace(order, settings=replace(order.settings, seed=fresh))
            order.settings.save(save_config)
            console.advice(f"settings    {save_config}")
        if dry_run:
            _show_plan(console, order)
            return
        outcome = _run(console, order, fit_again, excuse, workers, any_memory)
        console.result("run", *_told(outcome))
        for note in outcome.notes:
            console.advice(f"Note: {note}.")
        console.advice(
            f"Keep {order.settings.work_folder} and {order.internal} in the office: the first "
            "contains real rows, the second results computed from them."
        )
        if not (order.bundle / SIGNATURE).exists():
            console.advice(
                f"Next: read {order.page}, then dpsynth sign {order.bundle} --key office.key"
            )
        outcome.require_quiet()
        console.advice(_verdict(outcome))


def _verdict(outcome: Outcome) -> str:
    """Say what was judged where nothing stood out."""
    from dpsynth.schema import Schema

    tables = "table was" if isinstance(outcome.order.fitted, Schema) else "tables were"
    attacked = "no attack succeeded" if outcome.order.attacks else f"the {tables} not attacked"
    return f"Internal results: every gate passed or was not judged, and {attacked}."


def _settings(config: str | None, values: dict[str, Any]) -> Settings:
    """Read the file if there is one to read; options come first, the environment last."""
    from dpsynth.workflow import Settings
    from dpsynth.workflow.settings import REQUIRED

    options = {name: value for name, value in values.items() if value not in (None, ())}
    if config is None and not {"schema", "data"} & set(options) and Path(FILE).is_file():
        config = FILE
    fallbacks = {
        name: value for name, known in VARIABLES.items() if (value := variable(known)) is not None
    }
    if config is not None:
        return Settings.load(config, fallbacks, **options)
    options = fallbacks | options
    if missing := [name for name in REQUIRED if name not in options]:
        words = [name.upper() if name in ("schema", "data") else f"'--{name}'" for name in missing]
        hint = "" if len(missing) < len(REQUIRED) else f", or write them into {FILE}"
        raise click.UsageError(f"Missing {', '.join(words)}{hint}.")
    return Settings.of(**options)


def _run(
    console: Console,
    order: ResolvedSettings,
    fit_again: bool,
    override: Override | None,
    workers: int | None,
    any_memory: bool,
) -> Outcome:
    """Carry out the stages; say what became of each."""
    from dpsynth.workflow import run_stages

    def tell(state: RunState) -> None:
        duration = "" if state.seconds is None else f"{state.seconds:10.1f} s"
        console.advice(f"{state.stage:<12}{state.state:<12}{duration}".rstrip())

    return run_stages(
        order,
        fit_again=fit_again,
        override=override,
        progress=console.progress,
        workers=workers,
        tell=tell,
        advise=console.advice,
        any_memory=any_memory,
    )


def _show_plan(console: Console, order: ResolvedSettings) -> None:
    """Show what would be done, and with what noise; nothing is opened."""
    from dpsynth.certificate import attack_rates_of
    from dpsynth.forecasts.capacity_words import capacity_lines
    from dpsynth.forecasts.plan_words import (
        attack_lines,
        cost_text,
        describe_event,
        unit_noun,
        unit_text,
    )
    from dpsynth.privacy import Unit
    from dpsynth.synthesis import capacity
    from dpsynth.workflow import Subject, planned
    from dpsynth.workflow.runner import STAGES

    states, plan, settings = planned(order), order.prepared.plan, order.settings
    rows = [
        (state.stage, state.state, stage.purpose)
        for state, stage in zip(states, STAGES, strict=True)
    ]
    total = sum(event.mu() ** 2 for event in plan.events)
    events = [
        (
            event.name,
            f"{event.mu() ** 2 / total:.0%}",
            describe_event(event, unit_noun(order.fitted)),
        )
        for event in plan.events
    ]
    rates = attack_rates_of(plan.events, Unit.of(order.fitted))
    carries = capacity(order.prepared)
    values = {
        "dry_run": True,
        "settings": settings.to_dict(),
        "stages": [{"stage": one.stage, "state": one.state} for one in states],
        "population": order.fitted.population.value,
        "plan": plan.to_dict(),
        "attack_rates": vars(rates),
        "carries": carries.to_dict(),
    }
    lines = [
        f"bundle      {order.bundle}",
        f"dataset     {settings.dataset}",
        f"budget      epsilon {settings.epsilon:g}, delta {settings.delta:g}; all mechanisms "
        f"together cost epsilon {plan.epsilon:.4g}"
        + cost_text(order.fitted, settings.epsilon, settings.delta),
        *attack_lines(rates, order.fitted),
        f"model       {settings.model} ({order.prepared.reason})",
        f"unit        {unit_text(order.fitted)}",
        f"fitted      {order.fitted.population.value} units (public); "
        f"{settings.holdout:g} held out",
        f"drawn       {settings.rows} {Subject(order.schema).drawn}, seed {settings.seed}",
        "",
        *capacity_lines(carries),
        "",
        *table(("stage", "", ""), rows),
        "",
        *table(("mechanism", "share", "noise"), events),
    ]
    console.result("run-plan", values, lines)


def _told(outcome: Outcome) -> tuple[dict[str, Any], list[str]]:
    """Say where everything is, and the answer of the internal page, as values and as lines."""
    from dpsynth.eval.report import lines_of

    order, settings = outcome.order, outcome.order.settings
    page = order.page
    values = {
        "internal": True,
        "bundle": str(order.bundle),
        "page": str(page),
        "work": str(settings.work_folder),
        "stages": [{"stage": state.stage, "state": state.state} for state in outcome.states],
        "gates_failed": list(outcome.gates),
        "attacks_found": list(outcome.attacks),
        "audit_faults": list(outcome.faults),
        "not_done": list(outcome.not_done),
        "notes": list(outcome.notes),
        "answer": outcome.answer().to_dict(),
    }
    lines = [
        f"bundle      {order.bundle}: epsilon {settings.epsilon:g}, delta {settings.delta:g}, "
        "verified",
        f"internal    {page}",
        f"work        {settings.work_folder}",
        "",
        *lines_of(outcome.answer()),
    ]
    return values, lines
