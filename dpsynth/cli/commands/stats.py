"""``dpsynth stats``: statistics of a private table, with noise and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure, figure_at_most
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import answer_options, dataset_option, require_asked, require_charged

if TYPE_CHECKING:
    from dpsynth.stats import Expected, Request, Statistics


@click.command(
    epilog="Example:  dpsynth stats request.yaml extract.csv --dataset cohort-a --epsilon 0.5 "
    "--delta 1e-7 -o statistics/"
)
@click.argument("request", type=click.Path())
@click.argument("data", type=click.Path(), required=False)
@dataset_option
@answer_options("statistics")
@click.option(
    "--in-warehouse",
    is_flag=True,
    help="Leave the rows in their database (DuckDB or PostgreSQL), which counts them by SQL. "
    "What SQL cannot express is refused before the charge.",
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
    in_warehouse: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Answer the statistics of REQUEST about DATA under differential privacy.

    REQUEST is a YAML or JSON file that lists statistics. Without DATA, nothing is read or charged:
    the command prints how precise each statistic will be (--what-if: at several epsilons).

    With DATA, the ledger is charged before the first row is read. The tables are written to
    --output with their noise and intervals. If the schema has linked tables, DATA has all of them.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats import Request, statistics, what_if

        asked = Request.load(request)
        require_asked("DATA", data, wondered=wondered, epsilon=epsilon, output=output)
        if wondered:
            console.result("stats-what-if", *_wondered(what_if(asked, delta=delta)))
            return
        assert epsilon is not None
        if data is None:
            console.result("stats-plan", *planned(asked, epsilon, delta))
            return
        require_charged(dataset=dataset, output=output)
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
            in_warehouse=in_warehouse,
        )
        console.result("stats", *_told(found, output))


def planned(request: Request, epsilon: float, delta: float) -> tuple[dict[str, Any], list[str]]:
    """Say how precise each statistic of a request will be, as values and as lines."""
    from dpsynth.stats import expectations, plan_request, replaced_epsilon

    plan = plan_request(request, epsilon=epsilon, delta=delta)
    expected = expectations(request, plan)
    values = {
        "composed_epsilon": plan.epsilon,
        "epsilon_if_replaced": replaced_epsilon(plan),
        "statistics": [
            {"name": one.name, "share": one.share, "precision": one.precision} for one in expected
        ],
    }
    width = max(len(one.name) for one in expected)
    lines = [f"{one.name:<{width}}  {one.precision}" for one in expected]
    lines.append(f"cost: epsilon {figure(plan.epsilon)} for all statistics together")
    lines.append(f"if one unit replaces another: epsilon {figure_at_most(replaced_epsilon(plan))}")
    return values, lines


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
