"""The order of every answer, which is the privacy argument: charge, read, answer, save.

The plan is calibrated from public facts and headers are checked before; here the ledger is charged,
and only then is the first row read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from dpsynth.certificate import Certificate, Charge, OtherRegister, certify
from dpsynth.errors import BudgetError
from dpsynth.files import check_vacant, claimed
from dpsynth.ledger import Use, charged_all, compare_source, default_ledger
from dpsynth.privacy import Entropy, OsEntropy, PrivacyPlan
from dpsynth.stats.answer_request import NO_LEDGER, SEEDED, ChargedRequest, Numbers
from dpsynth.stats.answers import Answers
from dpsynth.synthesis import Reader
from dpsynth.synthesis.charged_fit import Terms, require_saved

RowsRead = TypeVar("RowsRead")


def charged_answers(
    request: ChargedRequest,
    plan: PrivacyPlan,
    reader: Reader[RowsRead],
    ask: Callable[[RowsRead, Entropy], Numbers],
    terms: Terms,
    *,
    room: int,
    second: Use | None = None,
) -> Answers:
    """Charge the ledger, then read, answer and save; the budget stays charged if that fails.

    Args:
        request: what is asked.
        plan: of all answers.
        reader: of the private rows.
        ask: answers from what was read, with the same randomness; what it returns carries noise.
        terms: who pays, and where the result goes.
        room: bytes that it takes on disk.
        second: of an answer about two registers, the other one's dataset: it is charged the same,
            together with the first or not at all.
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
        uses = [terms.use] if second is None else [terms.use, second]
        payers = list(zip(request.schemas, uses, strict=True))
        with charged_all(book, plan, payers, request.kind.name, networks=False) as charges:
            opened = charges.opened
            if book is not None:
                for each in reader.sources:
                    compare_source(book, opened[0].entry, each)
            paid = plan.opened(source)
            rows = reader.read(paid)
            charges.require_open()
            numbers = ask(rows, paid)
            if paid.unused:
                raise BudgetError(f"event '{paid.unused[0]}' was paid for, and not answered")
            stated_charges: list[Charge | None] = [one.charge for one in opened]
            stated_charges = stated_charges or [None]
            other = None
            if second is not None:  # one charge where both registers share a budget
                why = request.own_records or ""
                other = OtherRegister.of(request.schemas[1], stated_charges[-1], why)
            stated = certify(
                request.schemas[0],
                plan,
                model=request.kind.name,
                charge=stated_charges[0],
                seeded=seeded,
                second=other,
            )
            found = Answers(request, numbers, Certificate.from_dict(stated), stamps)
            saved = charges.save(claim, found.digest, found.save)
    charged_as = opened[0].entry.id if opened else None
    require_saved(saved, charged_as=charged_as, noun=request.kind.noun)
    return found
