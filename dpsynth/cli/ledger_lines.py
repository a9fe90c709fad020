"""The lines of ``dpsynth ledger``: fits and budgets, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth._util.formatting import counted
from dpsynth.cli.console import table

if TYPE_CHECKING:
    from dpsynth.ledger import Account
    from dpsynth.ledger.entry import Entry
    from dpsynth.policy import CapUsage


def status(entry: Entry) -> str:
    """Say what became of a fit."""
    signed = f", {len(entry.signatures)} signed" if entry.signatures else ""
    measured = ", quality measured" if entry.measured is not None else ""
    measured += ", quality forfeited" if entry.forfeited is not None else ""
    return entry.status + signed + measured + (", released" if entry.releases else "")


def entry_lines(entries: list[Entry], twins: dict[str, tuple[str, ...]]) -> list[str]:
    """Lay out fits, with what is counted and what an open one means."""
    from dpsynth.ledger import explained
    from dpsynth.privacy import counted_of

    def same(entry: Entry) -> str:
        names = twins.get(entry.id, ())
        return f"THE SAME FILE AS {', '.join(names)}" if names else ""

    header = (
        "entry",
        "when (UTC)",
        "who",
        "dataset",
        "model",
        "for each",
        "epsilon",
        "delta",
        "status",
        "",
    )
    rows = [
        (
            entry.id[:8],
            when(entry.at),
            entry.who,
            entry.dataset,
            entry.model,
            counted_of(entry.unit),
            f"{entry.cost[0]:g}",
            f"{entry.cost[1]:.4g}",
            status(entry),
            "; ".join(filter(None, (entry.tier, entry.purpose, explained(entry), same(entry)))),
        )
        for entry in entries
    ]
    return table(header, rows)


def account_lines(accounts: tuple[Account, ...]) -> list[str]:
    """Say what each budget has spent, for whom, and what is left."""
    from dpsynth.privacy import described

    lines = []
    for account in accounts:
        spent = account.spent
        whom = "" if account.counts is None else f" for each {account.counts}"
        lines.append(
            f"{account.name}: {counted(spent.fits, 'fit')}, total epsilon {spent.epsilon_sum:g} "
            f"and delta {spent.delta_sum:.6g}{whom}"
        )
        lines += [f"  counts {described(unit)}" for unit in account.units]
        if account.composed is not None:
            lines.append(
                f"  composed: epsilon {account.composed:.4g} at delta {account.delta:g} (for "
                "information; caps use a privacy filter)"
            )
        lines += [f"  {meter(cap)}" for cap in account.meters]
    return lines


def meter(cap: CapUsage) -> str:
    """Say how much of a cap is used."""
    from dpsynth.policy.rules import SINGLE

    if cap.name.endswith(SINGLE):
        return f"{cap.name}: at most {cap.limit:g}"
    return f"{cap.name}: {cap.used:.4g} of {cap.limit:g} used, by the privacy filter"


def when(at: str) -> str:
    """Give a time to the minute."""
    return at[:16].replace("T", " ")
