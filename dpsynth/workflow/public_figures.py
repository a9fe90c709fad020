"""The share of the budget for public quality figures, spent once."""

from __future__ import annotations

from dpsynth.assessment import publish_quality
from dpsynth.bundle import ledger_of
from dpsynth.bundle.format import read_quality
from dpsynth.certificate import Certificate
from dpsynth.synthesis import Run
from dpsynth.workflow.stage import Job


def spend_on_figures(job: Job) -> None:
    """Spend the share for public figures once, before anything else is known of the table."""
    order = job.order
    if read_quality(order.run) is not None:
        return
    run = Run.load(order.run)
    book = ledger_of(run, job.ledger)
    charge = Certificate.from_dict(run.certificate).ledger
    assert charge is not None  # or ledger_of would have refused
    if book.state().entry(charge.entry, book.place).measured is not None:
        job.notes.append(
            "the share for public quality figures was spent by an attempt that was interrupted; "
            "there are none, and only a person can release the bundle without them"
        )
        return
    publish_quality(
        order.run,
        order.table,
        order.holdout or order.train,
        ledger=book,
        progress=job.told("evaluate"),
    )
