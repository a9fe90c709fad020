"""``dpsynth labels``: label public rows from the noisy votes of teachers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import (
    answer_options,
    dataset_option,
    require_asked,
    require_charged,
    takes_query,
    takes_schema,
)
from dpsynth.cli.plan_words import by_budget

if TYPE_CHECKING:
    from dpsynth.stats.labels import Labels, Outlook


@click.command(
    epilog="Example:  dpsynth labels cardio public.csv extract.csv --label cardio --dataset "
    "cohort-a --epsilon 1 --delta 1e-7 -o labels/"
)
@click.argument("schema", type=click.Path())
@click.argument("rows", metavar="PUBLIC", type=click.Path())
@click.argument("data", type=click.Path(), required=False)
@click.option("--label", required=True, help="Column to predict; only the private rows have it.")
@dataset_option
@click.option(
    "--teachers",
    type=int,
    help="Number of teachers.  [default: 1 for every 70 patients of the population]",
)
@click.option(
    "--asked",
    type=int,
    help="Number of rows on which teachers vote, from the first.  [default: 5000, or all if fewer]",
)
@click.option(
    "--vote",
    type=click.Choice(["best", "drawn"]),
    default="best",
    show_default=True,
    help="Vote for the likeliest class, or draw a class by its probability (for rare classes).",
)
@answer_options("labels")
@output_options
@takes_query
@takes_schema
def labels(
    schema: str,
    rows: str,
    data: str | None,
    label: str,
    dataset: str | None,
    epsilon: float | None,
    delta: float,
    teachers: int | None,
    asked: int | None,
    vote: str,
    wondered: bool,
    output: str | None,
    purpose: str,
    tier: str | None,
    policy: str | None,
    no_ledger: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Label the rows of PUBLIC with what DATA teaches, under differential privacy.

    PUBLIC is a table of public or synthetic rows, which are published with their labels. Each
    patient of DATA is assigned to one of many teachers. The teachers vote on each row, and the
    numbers of votes get noise. A student learns from the noisy votes to label every row.

    Without DATA, the command reads no private row and charges nothing: it prints what to expect.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats.labels import labels as label_rows
        from dpsynth.stats.labels import outlook, prepared, what_if

        require_asked("DATA", data, wondered=wondered, epsilon=epsilon, output=output)
        if data is None:
            task, public = prepared(rows, schema, label, teachers=teachers, asked=asked, vote=vote)
            if epsilon is None:
                tried = what_if(task, public, delta=delta)
                console.result("labels-what-if", *by_budget(tried, _values))
            else:
                found = outlook(task, public, task.plan(epsilon, delta))
                cost = f"cost: epsilon {figure(found.epsilon)} for all labels together"
                console.result("labels-plan", _values(found), [*found.lines(), cost])
            return
        require_charged(dataset=dataset, output=output)
        assert dataset is not None and output is not None and epsilon is not None
        labelled = label_rows(
            data,
            rows,
            schema,
            label,
            epsilon=epsilon,
            delta=delta,
            dataset=dataset,
            teachers=teachers,
            asked=asked,
            vote=vote,
            purpose=purpose,
            tier=tier,
            policy=None if policy is None or no_ledger else Policy.load(policy),
            without_ledger=no_ledger,
            output=output,
        )
        console.result("labels", *_told(labelled, output))


def _values(found: Outlook) -> dict[str, Any]:
    """Return what to expect as values."""
    return {
        "composed_epsilon": found.epsilon,
        "sigma": found.sigma,
        "teachers": found.teachers,
        "units_each": found.units_each,
        "student_sd": found.student,
        "right_at_lead": {f"{lead:g}": chance for lead, chance in found.right.items()},
        "answerable_by_votes": found.answerable,
    }


def _told(found: Labels, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what was written and what it cost, as values and as lines."""
    certificate, task = found.certificate, found.task
    values = {
        "labels": output,
        "epsilon": certificate.epsilon,
        "composed_epsilon": certificate.composed_epsilon,
        "delta": certificate.delta,
        "stamps": list(found.stamps),
        "rows": found.queries.count,
        "asked": task.asked,
        "teachers": task.teachers,
    }
    lines = [
        f"labels      {output}: {found.queries.count:,} rows, {task.asked:,} of them by the votes "
        f"of {task.teachers:,} teachers",
        f"cost        epsilon {certificate.epsilon:g}, delta {certificate.delta:g}",
    ]
    if found.stamps:
        lines.append(f"stamped     {', '.join(found.stamps)}: not to be released")
    return values, lines
