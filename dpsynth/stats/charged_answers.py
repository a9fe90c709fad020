"""The order of every answer, which is the privacy argument: charge, read, answer, save.

The plan is calibrated from public facts and headers are checked before; here the ledger is charged,
and only then is the first row read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol, TypeVar

from dpsynth.certificate import Certificate, Charge, OtherRegister, certify
from dpsynth.errors import BudgetError
from dpsynth.files import check_vacant, claimed
from dpsynth.ledger import Use, charged_all, compare_source, default_ledger
from dpsynth.privacy import Entropy, OsEntropy, PrivacyPlan
from dpsynth.schema import AnySchema
from dpsynth.stats.claim import NO_LEDGER, SEEDED
from dpsynth.synthesis import Reader
from dpsynth.synthesis.charged_fit import Terms, require_saved


class Saveable(Protocol):
    """What is made of noisy answers."""

    @property
    def digest(self) -> str:
        """SHA-256 of its document."""
        ...

    def save(self, folder: str | Path) -> Path:
        """Write it as a new folder."""
        ...


RowsRead = TypeVar("RowsRead")
Answers = TypeVar("Answers")
Found = TypeVar("Found", bound=Saveable)


def charged_answers(
    plan: PrivacyPlan,
    schema: AnySchema,
    reader: Reader[RowsRead],
    ask: Callable[[RowsRead, Entropy], Answers],
    made: Callable[[Answers, Certificate, tuple[str, ...]], Found],
    terms: Terms,
    *,
    model: str,
    room: int,
    noun: str,
    second: tuple[AnySchema, Use] | None = None,
    declared: str = "",
) -> Found:
    """Charge the ledger, then read, answer and save; the budget stays charged if that fails.

    Args:
        plan: of all answers.
        schema: of the source.
        reader: of the private rows.
        ask: answers from what was read, with the same randomness; what it returns carries noise.
        made: makes the result of the answers, the certificate and the stamps.
        terms: who pays, and where the result goes.
        model: what certificate and ledger call the result.
        room: bytes that it takes on disk.
        noun: what messages call it.
        second: of an answer about two registers, the other one's schema and dataset: it is charged
            the same, together with the first or not at all.
        declared: why its rows follow from their own two records alone.
    """
    source = terms.entropy or OsEntropy()
    seeded = type(source) is not OsEntropy
    stamps = (SEEDED,) * seeded + (NO_LEDGER,) * terms.without_ledger
    if terms.output is not None:
        check_vacant(terms.output)
    with nullcontext() if terms.output is None else claimed(terms.output, room) as claim:
        book = None
        if not terms.without_ledger:
            book = terms.ledger or default_ledger(stacklevel=terms.depth + 1)
        payers = [(schema, terms.use), *([] if second is None else [second])]
        with charged_all(book, plan, payers, model, networks=False) as charges:
            opened = charges.opened
            if book is not None:
                for each in reader.sources:
                    compare_source(book, opened[0].entry, each)
            paid = plan.opened(source)
            rows = reader.read(paid)
            charges.require_open()
            answers = ask(rows, paid)
            if paid.unused:
                raise BudgetError(f"event '{paid.unused[0]}' was paid for, and not answered")
            stated_charges: list[Charge | None] = [one.charge for one in opened]
            stated_charges = stated_charges or [None]
            other = None
            if second is not None:  # one charge where both registers share a budget
                other = OtherRegister.of(second[0], stated_charges[-1], declared)
            stated = certify(
                schema, plan, model=model, charge=stated_charges[0], seeded=seeded, second=other
            )
            found = made(answers, Certificate.from_dict(stated), stamps)
            saved = charges.save(claim, found.digest, found.save)
    charged_as = opened[0].entry.id if opened else None
    require_saved(saved, charged_as=charged_as, noun=noun)
    return found
