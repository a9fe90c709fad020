"""``dpsynth labels``: label public rows from the noisy votes of teachers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import policy_options, takes_query, takes_schema

if TYPE_CHECKING:
    from dpsynth.stats.labels import Labels, Outlook


@click.command(
    epilog="Example:  dpsynth labels cardio public.csv extract.csv --label cardio --dataset "
    "cohort-a --epsilon 1 --delta 1e-7 -o labels/"
)
@click.argument("schema", type=click.Path())
@click.argument("queries", type=click.Path())
@click.argument("data", type=click.Path(), required=False)
@click.option("--label", required=True, help="Column to predict; only the private rows have it.")
@click.option(
    "--dataset",
    envvar="DPSYNTH_DATASET",
    help="Name under which the ledger counts the budget that these patients have spent.",
)
@click.option("--epsilon", type=float, help="Privacy budget of all labels together.")
@click.option(
    "--delta",
    required=True,
    type=float,
    help="Probability with which the epsilon bound may not hold; keep it well below 1 / patients.",
)
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
@click.option(
    "--what-if", "wondered", is_flag=True, help="Show what to expect at several epsilons."
)
@click.option("--output", "-o", type=click.Path(), help="New folder for the labels.")
@click.option("--purpose", default="", help="Purpose, in a few words for the ledger.")
@policy_options
@click.option(
    "--no-ledger", is_flag=True, help="Charge no ledger. The labels are stamped and never released."
)
@output_options
@takes_query
@takes_schema
def labels(
    schema: str,
    queries: str,
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
    """Label the rows of QUERIES with what DATA teaches, under differential privacy.

    QUERIES are public or synthetic rows, which are published with their labels. Each patient of
    DATA is assigned to one of many teachers. The teachers vote on each row, and the numbers of
    votes get noise. A student learns from the noisy votes to label every row.

    Without DATA, the command reads no private row and charges nothing: it prints what to expect.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats.labels import labels as label_rows
        from dpsynth.stats.labels import outlook, prepared, what_if

        if wondered and (data is not None or epsilon is not None or output is not None):
            raise click.UsageError(
                "--what-if tries several epsilons and reads no private row: leave out DATA, "
                "--epsilon and --output"
            )
        if epsilon is None and not wondered:
            raise click.MissingParameter(param_hint="'--epsilon'", param_type="option")
        if data is None:
            if output is not None:
                raise click.UsageError(
                    "--output needs DATA; without DATA, there is nothing to write"
                )
            task, rows = prepared(queries, schema, label, teachers=teachers, asked=asked, vote=vote)
            if epsilon is None:
                tried = what_if(task, rows, delta=delta)
                console.result("labels-what-if", *_wondered(tried))
            else:
                found = outlook(task, rows, task.plan(epsilon, delta))
                cost = f"cost: epsilon {figure(found.epsilon)} for all labels together"
                console.result("labels-plan", _values(found), [*found.lines(), cost])
            return
        for name, value in (("--dataset", dataset), ("--output", output)):
            if value is None:
                raise click.MissingParameter(param_hint=f"'{name}'", param_type="option")
        assert dataset is not None and output is not None and epsilon is not None
        labelled = label_rows(
            data,
            queries,
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


def _wondered(tried: dict[float, Outlook]) -> tuple[dict[str, Any], list[str]]:
    """Say what to expect at each budget, as values and as lines."""
    values: dict[str, Any] = {"epsilons": {f"{one:g}": _values(tried[one]) for one in tried}}
    lines = []
    for epsilon, found in tried.items():
        lines += [f"epsilon {epsilon:g}", *[f"  {line}" for line in found.lines()]]
    return values, lines


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
