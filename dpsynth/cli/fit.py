"""``dpsynth fit``: learn a generator from private rows, and charge the ledger for it."""

from __future__ import annotations

import click

from dpsynth.cli.console import Console, counted, output_options
from dpsynth.cli.options import budget_options, takes_schema


@click.command(
    epilog="Example:  dpsynth fit diabetes130 extract.csv.gz --dataset diabetes "
    "--epsilon 3 --delta 1e-6 --model tvae -o run/"
)
@click.argument("schema")
@click.argument("data", type=click.Path())
@click.option(
    "--dataset",
    required=True,
    envvar="DPSYNTH_DATASET",
    help="Name under which the ledger counts what these patients have spent.",
)
@budget_options
@click.option("--output", "-o", required=True, type=click.Path(), help="Folder of the run; new.")
@click.option("--purpose", default="", help="A few words for the ledger.")
@click.option(
    "--no-ledger", is_flag=True, help="Charge nowhere: the run is stamped and never released."
)
@output_options
@takes_schema
def fit(
    schema: str,
    data: str,
    dataset: str,
    epsilon: float,
    delta: float,
    model: str,
    output: str,
    purpose: str,
    no_ledger: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Learn a generator from DATA under differential privacy; write a run.

    The budget is reserved in the ledger before the first row is read, and counts as spent from
    then on, also if the fit is interrupted.
    """
    from dpsynth import pipeline

    with Console(as_json=as_json, quiet=quiet) as console:
        run = pipeline.fit(
            data,
            schema,
            epsilon=epsilon,
            delta=delta,
            dataset=dataset,
            model=model,
            purpose=purpose,
            without_ledger=no_ledger,
            output=output,
            progress=console.progress,
        )
        certificate = run.certificate
        ledger = certificate.get("ledger")
        values = {
            "run": output,
            "model": run.model,
            "epsilon": certificate["epsilon"],
            "composed_epsilon": certificate["composed_epsilon"],
            "delta": certificate["delta"],
            "ledger": ledger,
            "stamps": list(run.stamps),
        }
        lines = [
            f"run         {output}: model {run.model}",
            f"cost        epsilon {epsilon:g}, delta {delta:g} "
            f"(composed: {certificate['composed_epsilon']:.4f})",
        ]
        if ledger:
            lines.append(
                f"ledger      dataset {ledger['dataset']}: {counted(ledger['fits'], 'fit')}, "
                f"epsilon {ledger['epsilon_total']:g} in all"
            )
        if run.stamps:
            lines.append(f"stamped     {', '.join(run.stamps)}: this run cannot be released")
        console.result("fit", values, lines)
        console.advice(f"Next: dpsynth sample {output} -o synthetic.parquet")
