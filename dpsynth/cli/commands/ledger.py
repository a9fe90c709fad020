"""``dpsynth ledger``: what each dataset has spent, and what the policy leaves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dpsynth._util.formatting import counted
from dpsynth.cli.console import Console, output_options, table
from dpsynth.cli.group import HelpfulGroup

if TYPE_CHECKING:
    from dpsynth.ledger import Account
    from dpsynth.ledger.entry import Entry
    from dpsynth.policy import CapUsage


@click.group(cls=HelpfulGroup, epilog="Example:  dpsynth ledger show --dataset diabetes")
def ledger() -> None:
    """Show and govern the privacy budget that was spent.

    A ledger counts what the patients (or rows) of each dataset have spent. Set DPSYNTH_LEDGER to a
    path or a URL such as postgresql://user@host/database. Without it, the ledger is a file in your
    state folder. Your name is DPSYNTH_USER, or your login name.
    """


@ledger.command(epilog="Example:  dpsynth ledger create /srv/dpsynth/ledger.sqlite")
@click.argument("place", required=False)
@output_options
def create(place: str | None, as_json: bool, quiet: bool) -> None:
    """Create a new ledger at PLACE (a path or a URL). The default is DPSYNTH_LEDGER.

    A new ledger knows nothing about budget spent before. This is the only command that creates a
    ledger at a place that you name. It never changes an existing ledger. If a ledger is missing,
    restore it from a backup.
    """
    from dpsynth.ledger import Ledger

    with Console(as_json=as_json, quiet=quiet) as console:
        book = Ledger.create(place)
        values = {"internal": True, "ledger": book.id, "place": book.place}
        console.result(
            "ledger-create",
            values,
            [f"new ledger: {book.place}", f"id: {book.id}"],
        )


@ledger.command(epilog="Example:  dpsynth ledger show --dataset diabetes --json")
@click.option("--dataset", help="Only this dataset, and those that share its budget.")
@click.option("--composed", is_flag=True, help="Also compose all events (takes seconds).")
@output_options
def show(dataset: str | None, composed: bool, as_json: bool, quiet: bool) -> None:
    """List every fit and the budget that is left.

    For each fit you see when, who, dataset, epsilon, delta and status. Every fit counts unless it
    was voided. A fit whose process died counts too, because it may have read rows.
    """
    from datetime import UTC, datetime

    from dpsynth.ledger import Ledger, accounts

    with Console(as_json=as_json, quiet=quiet) as console:
        book = Ledger.present()
        state = book.state()
        datasets = accounts(state, datetime.now(UTC), dataset=dataset, compose=composed)
        entries = [entry for account in datasets for entry in account.entries]
        entries.sort(key=lambda entry: entry.head.number)
        values = {
            "internal": True,
            "ledger": book.id,
            "head": vars(state.head),
            "policy": None if state.policy is None else state.policy.name,
            "entries": [entry.to_dict() for entry in entries],
            "same_file": {key: list(names) for key, names in book.twins(state).items()},
            "datasets": {account.name: account.to_dict() for account in datasets},
        }
        if not entries:
            lines = [f"no fit has been charged {f'on dataset {dataset} ' if dataset else ''}yet"]
        else:
            lines = [*entry_lines(entries, book.twins(state)), "", *account_lines(datasets)]
        console.result("ledger", values, lines)


@ledger.command(epilog="Example:  dpsynth ledger policy office.policy.yaml")
@click.argument("file", required=False, type=click.Path())
@output_options
def policy(file: str | None, as_json: bool, quiet: bool) -> None:
    """Adopt the policy in FILE for all later fits and releases. Without FILE, show the current one.

    To try a policy without adopting it, use `dpsynth plan --policy FILE`.
    """
    from datetime import UTC, datetime

    from dpsynth.ledger import Ledger, accounts, adopt
    from dpsynth.policy import Policy, allocation, policy_lines

    with Console(as_json=as_json, quiet=quiet) as console:
        new = None if file is None else Policy.load(file)
        book = Ledger.present() if new is None else Ledger.default()
        if new is not None:
            adopt(book, new)
        if book.made:
            console.advice(f"A new ledger was created: {book.place}")
        adopted = book.state().adopted
        if not adopted:
            console.result(
                "ledger-policy",
                {"internal": True, "ledger": book.id, "policy": None},
                ["there is no policy, so no cap applies; see docs/governance.md"],
            )
            return
        latest = adopted[-1]
        lines = [
            f"policy      {latest.policy.name}",
            f"adopted     by {latest.who}, {when(latest.at)} UTC",
            f"digest      {latest.policy.digest}",
            *policy_lines(latest.policy),
        ]
        if any(tier.releases_a_year for tier in latest.policy.tiers):
            lines += ["", *allocation(latest.policy).lines()]
        over = [
            f"already over the cap: {account.name}: {meter(one)}"
            for account in accounts(book.state(), datetime.now(UTC), compose=False)
            for one in account.meters
            if one.used > one.limit
        ]
        lines += ["", *over] if over else []
        values = {
            "internal": True,
            "ledger": book.id,
            "policy": latest.policy.to_dict(),
            "digest": latest.policy.digest,
            "adopted": {"at": latest.at, "who": latest.who},
            "earlier": [
                {"at": one.at, "who": one.who, "name": one.policy.name} for one in adopted[:-1]
            ],
        }
        console.result("ledger-policy", values, lines)


@ledger.command(epilog="Example:  dpsynth ledger sign 3f9a1c0b22d4 --note 'board 2026-11'")
@click.argument("entry")
@click.option("--note", default="", help="A few words to record with the signature.")
@output_options
def sign(entry: str, note: str, as_json: bool, quiet: bool) -> None:
    """Sign ENTRY, a fit by somebody else, for release. The policy says how many people must sign.

    ENTRY is an id from `dpsynth ledger show --json`, or at least its first six characters.
    """
    from dpsynth.ledger import Ledger
    from dpsynth.ledger import sign as add_signature

    with Console(as_json=as_json, quiet=quiet) as console:
        book = Ledger.present()
        signed = add_signature(book, entry, note)
        names = ", ".join(signature.who for signature in signed.signatures)
        lines = [
            *entry_lines([signed], book.twins(book.state())),
            "",
            f"entry {signed.id} of dataset {signed.dataset} is signed by {names}",
        ]
        console.result("ledger-sign", {"internal": True, "entry": signed.to_dict()}, lines)


@ledger.command(
    epilog="Example:  dpsynth ledger void 3f9a1c0b22d4 --reason 'killed while starting'"
)
@click.argument("entry")
@click.option("--reason", required=True, help="Reason; the ledger keeps it permanently.")
@output_options
def void(entry: str, reason: str, as_json: bool, quiet: bool) -> None:
    """Take ENTRY out of the sums. This needs a record that proves that no private read began."""
    from dpsynth.ledger import Ledger
    from dpsynth.ledger import void as take_out

    with Console(as_json=as_json, quiet=quiet) as console:
        voided = take_out(Ledger.present(), entry, reason)
        lines = [f"entry {voided.id} of dataset {voided.dataset} is voided and no longer counts"]
        console.result("ledger-void", {"internal": True, "entry": voided.to_dict()}, lines)


@ledger.command(
    epilog="Example:  dpsynth ledger forfeit 3f9a1c0b22d4 --reason 'no figures will be published'"
)
@click.argument("entry")
@click.option("--reason", required=True, help="Reason; the ledger keeps it permanently.")
@output_options
def forfeit(entry: str, reason: str, as_json: bool, quiet: bool) -> None:
    """Give up what ENTRY can still spend.

    The entry then leaves the 365-day window a year from now. A share for quality figures that has
    not been measured can then never be measured. A fit that is still open because its process died
    is closed as failed: if the process still runs on another machine, it discards its result.
    Budget that was spent stays spent.
    """
    from dpsynth.ledger import Ledger
    from dpsynth.ledger import forfeit as give_up

    with Console(as_json=as_json, quiet=quiet) as console:
        ended = give_up(Ledger.present(), entry, reason)
        lines = [f"entry {ended.id} of dataset {ended.dataset} can spend no more budget"]
        console.result("ledger-forfeit", {"internal": True, "entry": ended.to_dict()}, lines)


@ledger.command(epilog="Example:  dpsynth ledger close run/")
@click.argument("run", type=click.Path())
@output_options
def close(run: str, as_json: bool, quiet: bool) -> None:
    """Close the entry of RUN after the ledger was unreachable.

    Use this if the fit completed but could not reach the ledger at the end. RUN may also be a
    folder of statistics.
    """
    from dpsynth.bundle import close_entry
    from dpsynth.ledger import Ledger
    from dpsynth.stats import close_answers, is_answers

    with Console(as_json=as_json, quiet=quiet) as console:
        end = close_answers if is_answers(run) else close_entry
        closed = end(Ledger.present(), run)
        lines = [f"entry {closed.id} of dataset {closed.dataset} is charged"]
        console.result("ledger-close", {"internal": True, "entry": closed.to_dict()}, lines)


@ledger.command(epilog="Example:  dpsynth ledger verify --against bundle/")
@click.option(
    "--against", multiple=True, type=click.Path(), help="A bundle, run or statistics; repeatable."
)
@click.option("--accept", is_flag=True, help="Accept the current ledger, whatever you saw before.")
@output_options
def verify(against: tuple[str, ...], accept: bool, as_json: bool, quiet: bool) -> None:
    """Check that no entry was edited, removed or reordered.

    With --against bundles, runs or statistics, also check that no entry was cut off the end. All
    problems are listed; if there are any, the exit code is 5. dpsynth remembers how much of a
    ledger you have seen, and refuses a shorter or different ledger. Use --accept to continue
    anyway, for example after you restored a backup.
    """
    from dpsynth.ledger import Ledger, note, verify_ledger
    from dpsynth.stats import evidence_by_folder

    with Console(as_json=as_json, quiet=quiet) as console:
        book = Ledger()
        checks = verify_ledger(book, evidence_by_folder(against), as_seen=not accept)
        with book.looking() as view:
            note(view)
        values = {"internal": True, "ledger": book.id, "verified": True, "checks": checks}
        console.result("ledger-verify", values, [f"ok  {line}" for line in checks])


@ledger.command(epilog="Example:  dpsynth ledger backup ledger-2026-11.sqlite")
@click.argument("file", type=click.Path())
@output_options
def backup(file: str, as_json: bool, quiet: bool) -> None:
    """Copy the whole ledger into FILE, even while fits write to it.

    Keep FILE as safe as the ledger. To restore it, copy FILE to the ledger's place while no fit is
    running. Then check it against the newest bundle (`dpsynth ledger verify --against`).
    """
    from dpsynth.ledger import Ledger, back_up

    with Console(as_json=as_json, quiet=quiet) as console:
        copy = back_up(Ledger.present(), file)
        values = {"internal": True, "backup": str(copy)}
        console.result("ledger-backup", values, [f"the ledger is copied to {copy}"])


@ledger.command(epilog="Example:  dpsynth ledger export --html -o ledger.html")
@click.option("--output", "-o", required=True, type=click.Path(), help="The file to write.")
@click.option("--html", is_flag=True, help="Write a page for a board instead of JSON.")
@output_options
def export(output: str, html: bool, as_json: bool, quiet: bool) -> None:
    """Write the ledger as JSON, or as a page for a board.

    It shows the budget left, every fit and who signed. The file is internal because it names people
    and times. It does not contain the ledger's key.
    """
    from dpsynth.ledger import Ledger, exported

    with Console(as_json=as_json, quiet=quiet) as console:
        exported(Ledger.present(), output, html=html)
        console.result("ledger-export", {"internal": True, "file": output}, [f"wrote {output}"])


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
