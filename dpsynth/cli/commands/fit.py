"""``dpsynth fit``: learn a generator from private rows, and charge the ledger for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.formatting import counted
from dpsynth.cli.console import Console, output_options
from dpsynth.cli.options import (
    budget_options_unless_not_private,
    check_budget,
    memory_option,
    policy_options,
    publish_option,
    refuse_options,
    takes_query,
    takes_schema,
)
from dpsynth.forecasts.plan_words import cost_text, epsilon_of_risk, found_codes, found_lines
from dpsynth.models.registry import DEVICES, names_of

if TYPE_CHECKING:
    from dpsynth.synthesis.run import Run


@click.command(
    epilog="Example:  dpsynth fit diabetes130 extract.csv.gz --dataset diabetes "
    "--epsilon 3 --delta 1e-6 --model autoregressive -o run/"
)
@click.argument("schema")
@click.argument("data", type=click.Path())
@click.option(
    "--dataset",
    envvar="DPSYNTH_DATASET",
    help="Name under which the ledger counts the budget that these patients have spent.",
)
@budget_options_unless_not_private
@click.option("--output", "-o", required=True, type=click.Path(), help="New folder for the run.")
@click.option("--purpose", default="", help="Purpose of the fit, in a few words for the ledger.")
@policy_options
@publish_option
@click.option(
    "--no-ledger", is_flag=True, help="Charge no ledger. The run is stamped and never released."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Number of processes that read a large table in parallel. The result is the same with any "
    "number.  [default: 1 for each core]",
)
@click.option(
    "--engine",
    metavar="ADDRESS",
    help="Dask cluster that reads the table, such as dask://HOST:8786. With --shards, it also "
    "counts the rows. The result is the same. Noise is added on this machine.",
)
@click.option(
    "--shards",
    metavar="DIR",
    type=click.Path(),
    help="Folder in which coded rows are kept on disk during the fit, not in memory. With "
    "--engine, all machines of the cluster must see it. For the models "
    f"{', '.join(names_of(lambda spec: spec.in_shards))}, of a single table.  "
    "[default: for 256 MB or more without --engine, the folder of temporary files]",
)
@click.option(
    "--in-warehouse",
    is_flag=True,
    help="Let the rows stay in their database, DuckDB or PostgreSQL, which counts them by SQL. "
    f"For the models {', '.join(names_of(lambda spec: spec.in_warehouse))}.",
)
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    help="Where the networks of the models "
    f"{', '.join(names_of(lambda spec: spec.on_device))} train. auto: a CUDA device, if there is "
    "one.  [default: cpu]",
)
@click.option(
    "--checkpoints",
    type=click.Path(),
    help="Folder where the fit of a network saves its state. If the fit is stopped, the same "
    "command goes on from there and is not charged again. For the models "
    f"{', '.join(names_of(lambda spec: spec.resumable))}.",
)
@memory_option
@output_options
@takes_query
@takes_schema
def fit(
    schema: str,
    data: str,
    dataset: str | None,
    epsilon: float | None,
    risk: str | None,
    delta: float | None,
    model: str,
    not_private: bool,
    output: str,
    purpose: str,
    tier: str | None,
    policy: str | None,
    publish_quality: float | None,
    no_ledger: bool,
    workers: int | None,
    engine: str | None,
    shards: str | None,
    in_warehouse: bool,
    device: str | None,
    checkpoints: str | None,
    any_memory: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit a generator to DATA under differential privacy.

    The result is a run. You must give --epsilon or --risk, --delta and --dataset. First you see
    about how long the fit will take, and how much memory. A fit that needs more memory than there
    is, is refused. You also see if the table asks for more than its patients and budget can carry.
    Then the ledger is charged, before the first row is read. The budget stays charged even if the
    fit is interrupted: with --checkpoints, the same command goes on with it.

    If SCHEMA is a package of linked tables, DATA has all of them, such as a folder with
    patients.csv and visits.csv, or a database with these tables; or one file with the rows of all,
    if each table says by rows_where which are its own.

    Several processes of one machine train a network together if you start them with torchrun:
    torchrun --standalone --nproc-per-node 2 -m dpsynth fit ...
    """
    from dpsynth.synthesis import assisted, first_of_ranks

    if assisted():
        return
    with Console(as_json=as_json, quiet=quiet) as console, first_of_ranks() as ranks:
        console.starting()
        from dpsynth.policy import Policy
        from dpsynth.schema import LinkedSchema, load_any
        from dpsynth.synthesis import Execution, fitting

        check_budget(not_private, epsilon=epsilon, risk=risk, delta=delta, dataset=dataset)
        loaded = load_any(schema)
        linked = isinstance(loaded, LinkedSchema)
        run: Run
        if linked and (not_private or publish_quality is not None):
            raise click.UsageError(
                "--not-private is for a single table; fit linked tables with a budget"
                if not_private
                else "--publish-quality is for a single table; leave it out: of linked tables, "
                "dpsynth publishes no quality figures"
            )
        of_one_table = {"--workers": workers, "--engine": engine, "--device": device}
        if linked or not_private:
            refuse_options(
                of_one_table | {"--shards": shards, "--in-warehouse": in_warehouse},
                "is for a fit of a single table under a budget; leave it out",
            )
        if not_private:
            refuse_options(
                {"--checkpoints": checkpoints}, "is for a fit under a budget; leave it out"
            )
        if checkpoints is not None and no_ledger:
            raise click.UsageError("--checkpoints needs a ledger; leave out --no-ledger")
        if workers is not None and engine is not None:
            raise click.UsageError("--workers is for this machine; leave it out with --engine")
        elsewhere = {"--engine": engine, "--shards": shards, "--workers": workers}
        if in_warehouse:
            refuse_options(elsewhere, "is for rows that are read; leave it out with --in-warehouse")
        if ranks is not None and (linked or not_private):
            raise click.UsageError(
                "torchrun is for a fit of a single table under a budget; leave it out"
            )
        if not_private:
            if publish_quality is not None:
                raise click.UsageError(
                    "--not-private has no budget, so leave out --publish-quality"
                )
            run = fitting.fit_not_private(
                data, schema, model=model, output=output, progress=console.progress
            )
        else:
            assert delta is not None and dataset is not None
            if risk is not None:
                epsilon, asked = epsilon_of_risk(loaded, risk, delta, model, publish_quality)
                console.advice(f"Risk: {asked}.")
            assert epsilon is not None
            for line in found_lines(loaded, epsilon, delta, model, publish_quality):
                console.advice(line)  # before any data is opened
            run = fitting.fit(
                data,
                loaded,
                epsilon=epsilon,
                delta=delta,
                dataset=dataset,
                model=model,
                purpose=purpose,
                tier=tier,
                policy=None if policy is None or no_ledger else Policy.load(policy),
                without_ledger=no_ledger,
                publish_quality=publish_quality,
                output=output,
                execution=Execution(
                    workers=workers,
                    engine=engine,
                    shards=shards,
                    in_warehouse=in_warehouse,
                    checkpoints=checkpoints,
                    device=device or "cpu",
                    ranks=ranks,
                    any_memory=any_memory,
                ),
                progress=console.progress,
                advise=console.advice,
            )
        console.result("fit", *_told(run, output))
        target = "cohort/" if linked else "synthetic.parquet"
        console.advice(f"Next: dpsynth sample {output} -o {target}")


def _told(run: Run, output: str) -> tuple[dict[str, Any], list[str]]:
    """Say what a run is, what it cost and how it meets the counts, as values and as lines."""
    from dpsynth.privacy import AttackRates
    from dpsynth.synthesis import goodness_of_fit

    certificate = run.certificate or {}
    cost = {name: certificate.get(name) for name in ("epsilon", "composed_epsilon", "delta")}
    cost["attack_rates"] = certificate.get("attack_rates")
    ledger = certificate.get("ledger")
    values = {
        "run": output,
        "model": run.model,
        **cost,
        "ledger": ledger,
        "stamps": list(run.stamps),
    }
    lines = [f"run         {output}: model {run.generator}"]
    if certificate:
        lines.append(
            f"cost        epsilon {cost['epsilon']:g}, delta {cost['delta']:g} "
            f"(composed: {cost['composed_epsilon']:.4f})"
            f"{cost_text(run.schema, certificate['epsilon'], certificate['delta'])}"
        )
        rates = AttackRates(**certificate["attack_rates"])
        lines.append(f"attacks     {rates.words}")
    else:
        lines.append("cost        NOT PRIVATE: this run, and tables from it, may reveal patients")
    if (fitness := goodness_of_fit(run)) is not None:
        values["fitness"] = fitness.to_dict()
        lines.append(f"fit         {fitness}")
    if found := found_codes(run.schema):
        values["found"] = found
        words = ", ".join(f"{name} {count}" for name, count in found.items())
        lines.append(f"codes       found by column: {words}")
    if ledger:
        lines.append(
            f"ledger      dataset {ledger['dataset']}: {counted(ledger['fits'], 'fit')}, "
            f"total epsilon {ledger['epsilon_total']:g}"
        )
    if run.stamps:
        lines.append(f"stamped     {', '.join(run.stamps)}: this run cannot be released")
    return values, lines
