"""``dpsynth ledger``: what each dataset has spent."""

from __future__ import annotations

import click

from dpsynth.cli.console import Console, counted, output_options, table


@click.group(epilog="Example:  dpsynth ledger show --dataset diabetes")
def ledger() -> None:
    """Show what the patients of each dataset have spent."""


@ledger.command(epilog="Example:  dpsynth ledger show --dataset diabetes --json")
@click.option("--dataset", help="Only this dataset.")
@output_options
def show(dataset: str | None, as_json: bool, quiet: bool) -> None:
    """List every fit: when, who, dataset, epsilon, delta, status.

    Reserved, charged and failed fits all count: a fit that died may have read rows.
    """
    from dpsynth.ledger import Ledger

    with Console(as_json=as_json, quiet=quiet) as console:
        book = Ledger()
        entries = book.entries(dataset)
        names = sorted({entry.dataset for entry in entries})
        totals = {name: book.spent(name) for name in names}
        values = {
            "ledger": book.id,
            "entries": [entry.to_dict() for entry in entries],
            "datasets": {
                name: {
                    "fits": spent.fits,
                    "epsilon": spent.epsilon_sum,
                    "delta": spent.delta_sum,
                }
                for name, spent in totals.items()
            },
        }
        rows = [
            (
                entry.at[:16].replace("T", " "),
                entry.who,
                entry.dataset,
                entry.model,
                f"{entry.epsilon:g}",
                f"{entry.delta:g}",
                entry.status,
                entry.purpose,
            )
            for entry in entries
        ]
        header = ("when (UTC)", "who", "dataset", "model", "epsilon", "delta", "status", "purpose")
        lines = (
            table(header, rows)
            if rows
            else [f"no fit has been charged {f'on dataset {dataset} ' if dataset else ''}yet"]
        )
        lines += [
            "",
            *[
                f"{name}: {counted(spent.fits, 'fit')}, epsilon "
                f"{spent.epsilon_sum:g} and delta {spent.delta_sum:g} in all"
                for name, spent in totals.items()
            ],
        ]
        console.result("ledger", values, lines if rows else lines[:1])
