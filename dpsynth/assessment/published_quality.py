"""Publish quality: the one way from real rows to public figures, and the plan has paid for it.

The share that a fit set aside is spent once. Figures go into ``quality.json`` of the run, and from
there into its bundle.

Whether there are figures must not depend on what a patient's cells hold: the absence of the file
would tell it, and no budget pays for that. So the whole table is read through before the share is
spent: a table that cannot be read costs nothing, and can be mended. After that, nothing that rows
hold stops the figures. A row with a cell that its column refuses counts as absent, and a table
without any row that counts is measured like any other. A bundle without the figures that its plan
paid for is not released, unless a person answers for that in public (the gate ``quality``).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsynth._util.dependencies import load_fitting
from dpsynth._util.notebook import shown_in_notebooks
from dpsynth.bundle import ledger_of
from dpsynth.bundle.format import Quality, quality_digest, read_quality, write_quality
from dpsynth.bundle.format.quality import DOCUMENT as QUALITY_FILE
from dpsynth.certificate import Certificate
from dpsynth.encoding import Codec, read_cohort
from dpsynth.errors import BudgetError, GateError, InputError, NoRowsError, Note
from dpsynth.eval import Progress, Questionnaire, figures, silent
from dpsynth.files import claimed
from dpsynth.ledger import LedgerFile, enter_figures, require_open, spend_quality
from dpsynth.privacy import Entropy, OsEntropy, PaidEntropy, ask, reserved
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, drawn_from
from dpsynth.tables import (
    Keys,
    Source,
    Table,
    as_source,
    as_written,
    open_synthetic,
    open_table,
)

_ROOM = 2**20  # bytes that the figures take at most, by far


@shown_in_notebooks
def publish_quality(
    run_folder: str | Path,
    table: str | Path,
    data: Source,
    *,
    ledger: LedgerFile | None = None,
    entropy: Entropy | None = None,
    progress: Progress = silent,
) -> Quality:
    """Spend the share that a fit set aside, once, on public figures about one table.

    The figures go into ``quality.json`` of the run. The ledger records that the share is spent
    before anything is counted; whatever happens then, there is no second time. It records the
    figures too, and a release takes no others. Rows with a refused cell count as absent.

    Args:
        run_folder: a run that was fitted with ``publish_quality``.
        table: a synthetic table drawn from it, unconditioned: the one that will be released.
        data: the real rows to measure it on: a holdout of people who are in no fit, or the source.
            Either way they have to be of the dataset that the ledger charged.
        ledger: the one that charged the run; default: the default ledger.
        entropy: source of the noise; OS entropy if None. No other can be published.
        progress: called with a stage and its fraction done.

    Raises:
        ClosedEntryError: somebody gave the share up meanwhile; there are no figures.
        InputError: the run set nothing aside, or a table cannot be read; nothing was spent.
        GateError: the table was not drawn from the run, or only a part of it was.
        BudgetError: the share was spent before, or the ledger is not at hand.

    If ``quality.json`` cannot be written into the run, it is saved elsewhere, and the error says
    where.
    """
    load_fitting(networks=False)  # no network: what is spent and not measured is lost
    data, folder = as_source(data), Path(run_folder)
    run = Run.load(folder)
    certificate = None if run.certificate is None else Certificate.from_dict(run.certificate)
    event = None if certificate is None else reserved(certificate.events)
    if event is None:
        raise InputError(
            f"the fit of {folder} set nothing aside for public figures; fit with --publish-quality"
        )
    entropy = entropy or OsEntropy()
    if run.stamps or not entropy.releasable:
        raise BudgetError(
            "a run that is stamped, or noise that is not the operating system's, can be part of no "
            "release; nothing was spent"
        )
    sample = drawn_from(folder, table)
    if sample.condition is not None:
        raise GateError("the table was drawn under a condition; figures are about whole tables")
    if read_quality(folder) is not None:
        raise BudgetError(f"{folder} has its {QUALITY_FILE} already: the share is spent")
    schema, codec = run.schema, Codec(run.schema)
    progress("questions", 0.0)
    synthetic = pd.concat(open_synthetic(table, schema).chunks(), ignore_index=True)
    form = Questionnaire.of(codec, Codec(as_written(schema)).encode(synthetic))
    real = open_table(data, schema)
    _read_through(real, codec, schema)
    if drawn_from(folder, table) != sample:
        raise GateError(f"{table} changed while it was read; nothing was spent, measure it again")
    book = ledger_of(run, ledger)
    with claimed(folder / QUALITY_FILE, _ROOM) as claim:
        entry = spend_quality(book, run, sample.sha256)
        try:
            cohort = read_cohort(
                real, codec, schema, entropy, lambda part: progress("asking", part), "drop"
            )
            require_open(book, entry)
            paid = PaidEntropy([event], entropy)
            answers = ask(cohort, codec.sizes, form.questions, form.parts, event, paid)
            quality = Quality.from_dict(figures(form, answers, sample.sha256, sample.size))
            enter_figures(book, entry.id, quality_digest(quality))
        except BaseException as error:
            error.add_note(
                Note(
                    f"rows may have been read: the share for quality of entry {entry.id} is spent, "
                    "and there are no figures to publish"
                )
            )
            raise
        saved = claim.save(lambda place: write_quality(place, quality))
    saved.require_target(
        "the file of figures", f"Their share of the budget, of entry {entry.id[:12]}, is spent"
    )
    return quality


def _read_through(table: Table, codec: Codec, schema: Schema) -> None:
    """Read every row once and keep nothing, so that what cannot be read is found before the charge.

    Raises:
        TableError: the table is damaged.
    """
    keys = Keys(schema)
    try:
        for chunk in table.chunks():
            codec.accepted(chunk)
            keys.units(chunk)
    except NoRowsError:  # which is no damage: figures about no rows are figures too
        return
