"""A ledger in lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.cli.console import counted, table

if TYPE_CHECKING:
    from dpsynth.ledger_accounts import Account
    from dpsynth.ledger_entry import Entry
    from dpsynth.policy_rules import Meter


def _status(entry: Entry) -> str:
    signed = f", {len(entry.signatures)} signed" if entry.signatures else ""
    measured = ", quality measured" if entry.measured is not None else ""
    return entry.status + signed + measured + (", released" if entry.releases else "")


def entry_lines(entries: list[Entry], twins: dict[str, tuple[str, ...]]) -> list[str]:
    """Lay out fits as a table."""
    from dpsynth.ledger_accounts import explained

    def same(entry: Entry) -> str:
        names = twins.get(entry.id, ())
        return f"THE SAME FILE AS {', '.join(names)}" if names else ""

    header = ("entry", "when (UTC)", "who", "dataset", "model", "epsilon", "delta", "status", "")
    rows = [
        (
            entry.id[:8],
            when(entry.at),
            entry.who,
            entry.dataset,
            entry.model,
            f"{entry.epsilon:g}",
            f"{entry.delta:g}",
            _status(entry),
            "; ".join(filter(None, (entry.tier, entry.purpose, explained(entry), same(entry)))),
        )
        for entry in entries
    ]
    return table(header, rows)


def account_lines(accounts: tuple[Account, ...]) -> list[str]:
    """Say what each budget has spent, and what is left of its caps."""
    lines = []
    for account in accounts:
        spent = account.spent
        lines.append(
            f"{account.name}: {counted(spent.fits, 'fit')}, epsilon {spent.epsilon_sum:g} and "
            f"delta {spent.delta_sum:g} in all"
        )
        if account.composed is not None:
            lines.append(
                f"  composed: epsilon {account.composed:.4g} at delta {account.delta:g} (for "
                "information; caps count by a filter)"
            )
        lines += [f"  {meter_line(meter)}" for meter in account.meters]
    return lines


def meter_line(meter: Meter) -> str:
    """Say how much of a cap is used."""
    from dpsynth.policy_rules import SINGLE

    if meter.name.endswith(SINGLE):
        return f"{meter.name}: at most {meter.limit:g}"
    return f"{meter.name}: {meter.used:.4g} of {meter.limit:g} used, as the filter counts"


def when(at: str) -> str:
    """Show a time to the minute."""
    return at[:16].replace("T", " ")
