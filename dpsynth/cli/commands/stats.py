"""``dpsynth stats``: counts, means, quantiles and rankings with their own noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import policy_options

if TYPE_CHECKING:
    from dpsynth.stats import Expected, Statistics


@click.command(
    epilog="Example:  dpsynth stats request.yaml extract.csv --dataset cohort-a --epsilon 0.5 "
    "--delta 1e-7 -o statistics/"
)
@click.argument("request", type=click.Path())
@click.argument("data", type=click.Path(), required=False)
@click.option(
    "--dataset",
    envvar="DPSYNTH_DATASET",
    help="Name under which the ledger counts the budget that these patients have spent.",
)
@click.option("--epsilon", type=float, help="Budget of all statistics together.")
@click.option(
    "--delta",
    required=True,
    type=float,
    help="Probability with which the epsilon bound may not hold; keep it well below 1 / patients.",
)
@click.option(
    "--what-if",
    "wondered",
    is_flag=True,
    help="Show how precise they would be at several epsilons.",
)
@click.option("--output", "-o", type=click.Path(), help="New folder for the statistics.")
@click.option("--purpose", default="", help="Purpose, in a few words for the ledger.")
@policy_options
@click.option(
    "--no-ledger", is_flag=True, help="Charge no ledger. The statistics are stamped as such."
)
@output_options
def stats(
    request: str,
    data: str | None,
    dataset: str | None,
    epsilon: float | None,
    delta: float,
    wondered: bool,
    output: str | None,
    purpose: str,
    tier: str | None,
    policy: str | None,
    no_ledger: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Answer the statistics of REQUEST about DATA under differential privacy.

    Without DATA nothing is read and nothing is charged: the command prints how precise each
    statistic will be, or with --what-if, would be at several budgets. With DATA, the ledger is
    charged before the first row is read, and the tables are written to --output with their noise
    and intervals.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats import Request, expectations, plan_request, statistics, what_if

        asked = Request.load(request)
        if wondered:
            if data is not None or epsilon is not None or output is not None:
                raise click.UsageError(
                    "--what-if tries several epsilons and reads nothing: leave out DATA, --epsilon "
                    "and --output"
                )
            console.result("stats-what-if", *_wondered(what_if(asked, delta=delta)))
            return
        if epsilon is None:
            raise click.MissingParameter(param_hint="'--epsilon'", param_type="option")
        plan = plan_request(asked, epsilon=epsilon, delta=delta)
        expected = expectations(asked, plan)
        if data is None:
            if output is not None:
                raise click.UsageError("--output needs DATA; without it, nothing is asked")
            console.result("stats-plan", *_planned(expected, plan.epsilon))
            return
        for name, value in (("--dataset", dataset), ("--output", output)):
            if value is None:
                raise click.MissingParameter(param_hint=f"'{name}'", param_type="option")
        assert dataset is not None and output is not None
        found = statistics(
            data,
            asked,
            epsilon=epsilon,
            delta=delta,
            dataset=dataset,
            purpose=purpose,
            tier=tier,
            policy=None if policy is None or no_ledger else Policy.load(policy),
            without_ledger=no_ledger,
            output=output,
        )
        console.result("stats", *_told(found, output))


def _planned(expected: list[Expected], epsilon: float) -> tuple[dict[str, Any], list[str]]:
    """Say what to expect, as values and as lines."""
    values = {
        "composed_epsilon": epsilon,
        "statistics": [
            {"name": one.name, "share": one.share, "precision": one.precision} for one in expected
        ],
    }
    width = max(len(one.name) for one in expected)
    lines = [f"{one.name:<{width}}  {one.precision}" for one in expected]
    return values, [*lines, f"cost: epsilon {figure(epsilon)} for all of them together"]


def _wondered(tried: dict[float, list[Expected]]) -> tuple[dict[str, Any], list[str]]:
    """Say how precise each statistic would be at each budget, as values and as lines."""
    names = [one.name for one in next(iter(tried.values()))]
    values: dict[str, Any] = {"statistics": []}
    lines = []
    for place, name in enumerate(names):
        each = {epsilon: expected[place].precision for epsilon, expected in tried.items()}
        values["statistics"].append(
            {"name": name, "precision": {f"{epsilon:g}": words for epsilon, words in each.items()}}
        )
        lines.append(name)
        lines += [f"  epsilon {epsilon:<5g} {words}" for epsilon, words in each.items()]
    return values, lines


def _told(found: Statistics, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what was written and what it cost, as values and as lines."""
    certificate = found.certificate
    values = {
        "statistics": output,
        "epsilon": certificate.epsilon,
        "composed_epsilon": certificate.composed_epsilon,
        "delta": certificate.delta,
        "stamps": list(found.stamps),
        "tables": [result.name for result in found.results()],
    }
    lines = [f"statistics  {output}: {len(found.request.statistics)} tables"]
    lines.append(f"cost        epsilon {certificate.epsilon:g}, delta {certificate.delta:g}")
    if found.stamps:
        lines.append(f"stamped     {', '.join(found.stamps)}: not to be released")
    return values, lines
