"""``dpsynth stats`` and ``dpsynth local``: noisy figures, with or without a trusted curator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import figure, figure_at_most
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.options import policy_options, takes_query, takes_schema
from dpsynth.cli.whole_help import HelpfulGroup

if TYPE_CHECKING:
    from dpsynth.local import Estimates, Reports
    from dpsynth.stats import Expected, Request, Statistics


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
@click.option("--epsilon", type=float, help="Privacy budget of all statistics together.")
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
    help="Show how precise the statistics would be at several epsilons.",
)
@click.option("--output", "-o", type=click.Path(), help="New folder for the statistics.")
@click.option("--purpose", default="", help="Purpose, in a few words for the ledger.")
@policy_options
@click.option(
    "--no-ledger",
    is_flag=True,
    help="Charge no ledger. The statistics are stamped and never released.",
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

    REQUEST is a YAML or JSON file that lists statistics. Without DATA, nothing is read or charged:
    the command prints how precise each statistic will be (--what-if: at several epsilons).

    With DATA, the ledger is charged before the first row is read. The tables are written to
    --output with their noise and intervals. If the schema has linked tables, DATA is a folder with
    a file for each table.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats import Request, statistics, what_if

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
        if data is None:
            if output is not None:
                raise click.UsageError(
                    "--output needs DATA; without DATA, there is nothing to write"
                )
            console.result("stats-plan", *planned(asked, epsilon, delta))
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


@click.group(
    cls=HelpfulGroup, epilog="Example:  dpsynth local estimate perturbed.csv -o estimates/"
)
def local() -> None:
    """Randomise answers at the source, and count them, when no curator is trusted."""


@local.command(
    epilog="Example:  dpsynth local perturb cardio answers.csv --columns gender,height --cuts "
    "height=150,170 --epsilon 2 -o perturbed.csv"
)
@click.argument("schema", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--columns", required=True, help="Columns to perturb, separated by commas.")
@click.option(
    "--cuts",
    multiple=True,
    metavar="COLUMN=A,B",
    help="Public numbers at which to cut a column.",
)
@click.option(
    "--epsilon",
    required=True,
    type=float,
    help="What each person spends on all columns together, in equal parts.",
)
@click.option("--output", "-o", required=True, type=click.Path(), help="New CSV file to write.")
@output_options
@takes_query
@takes_schema
def perturb(
    schema: str,
    data: str,
    columns: str,
    cuts: tuple[str, ...],
    epsilon: float,
    output: str,
    as_json: bool,
    quiet: bool,
) -> None:
    """Randomise each person's answers in DATA; write nothing else.

    Run this once, where the answers are given: each further run about the same people spends
    epsilon again. The public settings are written next to the table, as OUTPUT.json.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.local import perturb as perturbed

        names = [name.strip() for name in columns.split(",") if name.strip()]
        reports = perturbed(data, schema, names, epsilon=epsilon, cuts=_cuts(cuts), output=output)
        console.result("local-perturb", *_perturbed(reports, output))


@local.command(epilog="Example:  dpsynth local estimate perturbed.csv -o estimates/")
@click.argument("perturbed", type=click.Path(), nargs=-1, required=True)
@click.option(
    "--confidence",
    default=0.95,
    show_default=True,
    type=float,
    help="Confidence of each interval, taken separately.",
)
@click.option("--output", "-o", type=click.Path(), help="New folder for a CSV and a JSON file.")
@output_options
def estimate(
    perturbed: tuple[str, ...], confidence: float, output: str | None, as_json: bool, quiet: bool
) -> None:
    """Estimate from PERTURBED tables how many people are in each category.

    Several tables with the same settings are counted together. The settings are read from the JSON
    file next to each table.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.local import estimate as estimates

        found = estimates(list(perturbed), confidence=confidence, output=output)
        console.result("local-estimate", *_estimated(found, output))


def _cuts(words: tuple[str, ...]) -> dict[str, list[float]]:
    """Read ``column=a,b``."""
    found = {}
    for word in words:
        name, _, numbers = word.rpartition("=")
        try:
            found[name.strip()] = [float(number) for number in numbers.split(",")]
        except ValueError:
            name = ""
        if not name:
            raise click.UsageError("--cuts needs a column and rising numbers: --cuts age=40,65")
    return found


def _perturbed(reports: Reports, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what was written, from public settings alone."""
    settings = reports.settings
    lines = [
        f"{one.name}: {one.randomiser.kind} among {len(one.labels)} categories, "
        f"epsilon {figure(one.randomiser.epsilon)}"
        for one in settings.columns
    ]
    lines.append(f"cost: epsilon {figure(settings.epsilon)} for each person, at each run")
    lines.append(f"perturbed {output}, with its public settings in {output}.json")
    return {"perturbed": output, "settings": settings.to_dict()}, lines


def _estimated(found: Estimates, output: str | None) -> tuple[dict[str, Any], list[str]]:
    """Say how many people have each category, as values and as lines."""
    rows = found.table.to_dict("records")
    values = {
        "estimates": output,
        "people": found.people,
        "confidence": found.confidence,
        "stamps": list(found.settings.stamps),
        "rows": rows,
    }
    header = ["column", "category", "count", "lower", "upper", "share", "lower", "upper"]
    texts = [
        [str(row["column"]), str(row["category"])]
        + [f"{row[key]:.1f}" for key in ("count", "lower", "upper")]
        + [f"{row[key]:.4f}" for key in ("share", "share_lower", "share_upper")]
        for row in rows
    ]
    lines = table(header, texts)
    lines.append(f"people: {found.people:,}; confidence {found.confidence:g} of each interval")
    if found.settings.stamps:
        lines.append(f"stamped: {', '.join(found.settings.stamps)}: protects nobody")
    return values, lines
