"""``dpsynth stats``, ``labels``, ``linkage`` and ``local``: answers without a generator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import click

from dpsynth._util.formatting import figure
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.group import HelpfulGroup
from dpsynth.cli.options import (
    Command,
    dataset_option,
    policy_options,
    takes_query,
    takes_schema,
)

if TYPE_CHECKING:
    from dpsynth.stats import Answers, ChargedRequest, Reports


@dataclass(frozen=True)
class AnswerOptions:
    """Options that every answer from private rows takes."""

    epsilon: float | None
    delta: float
    wondered: bool
    output: str | None
    purpose: str
    tier: str | None
    policy: str | None
    no_ledger: bool
    as_json: bool
    quiet: bool


def answer_options(noun: str) -> Callable[[Command], Command]:
    """Add what every answer from private rows takes, as an `AnswerOptions`; goes on top.

    Args:
        noun: what is made, in the plural.
    """
    options = [
        click.option("--epsilon", type=float, help=f"Privacy budget of all {noun} together."),
        click.option(
            "--delta",
            required=True,
            type=float,
            help="Probability with which the epsilon bound may not hold; keep it well below 1 / "
            "patients.",
        ),
        click.option(
            "--what-if",
            "wondered",
            is_flag=True,
            help=f"Show how precise the {noun} would be at several epsilons.",
        ),
        click.option("--output", "-o", type=click.Path(), help=f"New folder for the {noun}."),
        click.option("--purpose", default="", help="Purpose, in a few words for the ledger."),
        policy_options,
        click.option(
            "--no-ledger",
            is_flag=True,
            help=f"Charge no ledger. The {noun} are stamped and never released.",
        ),
    ]

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def joined(**values: Any) -> Any:
            given = {one.name: values.pop(one.name) for one in fields(AnswerOptions)}
            return command(options=AnswerOptions(**given), **values)

        made = cast(Command, joined)
        return functools.reduce(lambda made, option: option(made), reversed(options), made)

    return decorated


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
    in_warehouse: bool,
    options: AnswerOptions,
) -> None:
    """Answer the statistics of REQUEST about DATA under differential privacy.

    REQUEST is a YAML or JSON file that lists statistics. Without DATA, nothing is read or charged:
    the command prints how precise each statistic will be (--what-if: at several epsilons).

    With DATA, the ledger is charged before the first row is read. The tables are written to
    --output with their noise and intervals. If the schema has linked tables, DATA is a folder with
    a file for each table.
    """
    from dpsynth.stats import StatisticsRequest, statistics

    verb = functools.partial(statistics, request=request, in_warehouse=in_warehouse)
    read = functools.partial(StatisticsRequest.load, request)
    _answer("stats", "DATA", data, options, read, verb, dataset=dataset)


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
    teachers: int | None,
    asked: int | None,
    vote: str,
    options: AnswerOptions,
) -> None:
    """Label the rows of PUBLIC with what DATA teaches, under differential privacy.

    PUBLIC is a table of public or synthetic rows, which are published with their labels. Each
    patient of DATA is assigned to one of many teachers. The teachers vote on each row, and the
    numbers of votes get noise. A student learns from the noisy votes to label every row.

    Without DATA, the command reads no private row and charges nothing: it prints what to expect.
    """
    from dpsynth.stats import LabelsRequest
    from dpsynth.stats.labelling import labels as label_rows

    task: dict[str, Any] = {"schema": schema, "label": label}
    task |= {"teachers": teachers, "asked": asked, "vote": vote}
    read = functools.partial(LabelsRequest.of, rows, **task)
    verb = functools.partial(label_rows, queries=rows, **task)
    _answer("labels", "DATA", data, options, read, verb, dataset=dataset)


@click.command(
    epilog="Example:  dpsynth linkage request.yaml pairs.csv --dataset-a births --dataset-b "
    "cancers --epsilon 1 --delta 1e-7 -o linkage/"
)
@click.argument("request", type=click.Path())
@click.argument("pairs", type=click.Path(), required=False)
@click.option(
    "--dataset-a",
    help="Name under which the ledger counts what the people of the first register have spent.",
)
@click.option("--dataset-b", help="Likewise for the second register; both are charged.")
@answer_options("figures")
@output_options
def linkage(
    request: str,
    pairs: str | None,
    dataset_a: str | None,
    dataset_b: str | None,
    options: AnswerOptions,
) -> None:
    """Count the candidate PAIRS of two registers that match, under differential privacy.

    REQUEST is a YAML or JSON file that names the two registers, the columns of PAIRS, thresholds
    of the score, and how many pairs of a person count. PAIRS has a row for each candidate pair.
    The results are precision, recall and F1 by threshold, with intervals.

    Without PAIRS, nothing is read or charged: the command prints how precise the figures will be.
    With PAIRS, the ledger charges the datasets of both registers, or neither, before the first row
    is read. If people may be in both (same_people), both must be in one group of the policy, which
    is charged once. REQUEST must declare that each pair follows from its own two records alone.
    """
    from dpsynth.stats import LinkageRequest
    from dpsynth.stats.linking import linkage as link

    def read() -> LinkageRequest:
        asked = LinkageRequest.load(request)
        asked.require_own_records()
        return asked

    verb = functools.partial(link, request=request)
    datasets = {"dataset_a": dataset_a, "dataset_b": dataset_b}
    _answer("linkage", "PAIRS", pairs, options, read, verb, **datasets)


def _answer(
    command: str,
    argument: str,
    data: str | None,
    options: AnswerOptions,
    request: Callable[[], ChargedRequest],
    verb: Callable[..., Answers],
    **datasets: str | None,
) -> None:
    """Say what to expect; or, where private rows are given, answer, write and say what it cost.

    Args:
        command: its name, as results are called.
        argument: what the command calls the private rows.
        data: their place, if any.
        options: of every answer.
        request: reads what is asked.
        verb: answers it about private rows, which are its first argument.
        datasets: that are charged, by the parameter of the verb.
    """
    with Console(as_json=options.as_json, quiet=options.quiet) as console:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.stats import what_if

        _require_asked(argument, data, options)
        if data is None:
            asked = request()
            if options.epsilon is None:
                tried = what_if(asked, delta=options.delta)
                console.result(f"{command}-what-if", *asked.foreseen(tried))
            else:
                console.result(f"{command}-plan", *planned(asked, options.epsilon, options.delta))
            return
        _require_charged(**datasets, output=options.output)
        assert options.output is not None
        policy = None if options.no_ledger else options.policy
        found = verb(
            data,
            epsilon=options.epsilon,
            delta=options.delta,
            **datasets,
            purpose=options.purpose,
            tier=options.tier,
            policy=None if policy is None else Policy.load(policy),
            without_ledger=options.no_ledger,
            output=options.output,
        )
        console.result(command, *_answered(found, options.output))


def planned(
    request: ChargedRequest, epsilon: float, delta: float
) -> tuple[dict[str, Any], list[str]]:
    """Say how precise the answers of a request will be and what they cost, before any data."""
    plan = request.plan(epsilon, delta)
    preview = request.expected(plan)
    values, lines = request.cost(plan)
    return preview.values | values, [*preview.lines, *lines]


def _answered(found: Answers, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what was written and what it cost, as values and as lines."""
    certificate, name = found.certificate, found.request.kind.name
    assert certificate is not None
    more, words = found.request.summary(found.results)
    values = {
        name: output,
        "epsilon": certificate.epsilon,
        "composed_epsilon": certificate.composed_epsilon,
        "delta": certificate.delta,
        "stamps": list(found.stamps),
    }
    cost = f"cost        epsilon {certificate.epsilon:g}, delta {certificate.delta:g}"
    lines = [f"{name:<12}{output}: {words}", cost]
    if found.stamps:
        lines.append(f"stamped     {', '.join(found.stamps)}: not to be released")
    elif certificate.second is not None:
        first, second = found.request.payers()
        shared = f"once, to the budget that {first} and {second} share"
        lines[1] += f", charged {shared if certificate.is_joint else f'to {first} and to {second}'}"
    return values | more, lines


def _require_asked(argument: str, data: str | None, options: AnswerOptions) -> None:
    """Require a budget, or ``--what-if`` alone; and an output only where something is read.

    Raises:
        UsageError: an option is missing, or contradicts another.
    """
    given = (data, options.epsilon, options.output)
    if options.wondered and any(one is not None for one in given):
        raise click.UsageError(
            f"--what-if tries several epsilons and reads no private row: leave out {argument}, "
            "--epsilon and --output"
        )
    if options.epsilon is None and not options.wondered:
        raise click.MissingParameter(param_hint="'--epsilon'", param_type="option")
    if data is None and options.output is not None:
        raise click.UsageError(
            f"--output needs {argument}; without {argument}, there is nothing to write"
        )


def _require_charged(**options: str | None) -> None:
    """Require what only a charge needs.

    Raises:
        UsageError: one of them is missing.
    """
    for name, value in options.items():
        if value is None:
            hint = f"'--{name.replace('_', '-')}'"
            raise click.MissingParameter(param_hint=hint, param_type="option")


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

    DATA is a CSV file, plain or gzipped, with one line for each person: each line is a row, and a
    cell has no line break. Once its header is accepted, there is a report for each row, whatever
    the answers are.

    Run this once, where the answers are given: each further run about the same people spends
    epsilon again. The public settings are written next to the table, as OUTPUT.json.
    """
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        from dpsynth.stats import perturb as perturbed

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
        from dpsynth.stats import estimate as estimates

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


def _estimated(found: Answers, output: str | None) -> tuple[dict[str, Any], list[str]]:
    """Say how many people have each category, as values and as lines."""
    more, _ = found.request.summary(found.results)
    values = {"estimates": output, "stamps": list(found.stamps)} | more
    header = ["column", "category", "count", "lower", "upper", "share", "lower", "upper"]
    cells = [
        [str(row["column"]), str(row["category"])]
        + [f"{row[key]:.1f}" for key in ("count", "lower", "upper")]
        + [f"{row[key]:.4f}" for key in ("share", "share_lower", "share_upper")]
        for row in more["rows"]
    ]
    lines = table(header, cells)
    lines.append(f"people: {more['people']:,}; confidence {more['confidence']:g} of each interval")
    if found.stamps:
        lines.append(f"stamped: {', '.join(found.stamps)}: protects nobody")
    return values, lines
