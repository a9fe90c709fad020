"""The verb `statistics`: plan, charge, read, answer, write; in this order, as for a fit."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dpsynth.certificate import Certificate, certify
from dpsynth.encoding import read_coded_cells, read_cohort
from dpsynth.files import check_vacant, claimed
from dpsynth.ledger import Ledger, Use, charged, compare_source, default_ledger
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy, OsEntropy
from dpsynth.stats.document import MODEL, NO_LEDGER, SEEDED, Statistics
from dpsynth.stats.planning import plan_request
from dpsynth.stats.request import Request
from dpsynth.stats.rows import Rows
from dpsynth.stats.statistic import Ints
from dpsynth.synthesis import require_small_delta
from dpsynth.synthesis.charged_fit import require_saved
from dpsynth.tables import open_table

_ROOM = 2**20  # bytes that the documents take, and more for each cell
_CELL = 200


def statistics(
    data: str | Path | pd.DataFrame,
    request: Request | str | Path,
    *,
    epsilon: float,
    delta: float,
    dataset: str,
    purpose: str = "",
    tier: str | None = None,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    without_ledger: bool = False,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
) -> Statistics:
    """Answer a request about private rows, under differential privacy for the schema's unit.

    Args:
        data: a CSV or Parquet file, or a DataFrame as `dpsynth.read_table` returns it.
        request: a `Request`, or the path of one.
        epsilon: privacy budget of all statistics together; there is no default.
        delta: the probability that the guarantee of epsilon may miss; there is no default.
        dataset: the name under which the ledger counts what these patients have spent.
        purpose: a few words for the ledger.
        tier: the kind of purpose, where the policy names some.
        policy: one to keep, where the ledger has adopted none.
        ledger: where to charge; the default ledger if None.
        without_ledger: charge nowhere; the statistics are stamped, and may not be released.
        output: folder to write them in; claimed before any charge. If they cannot be written
            there all the same, they are saved elsewhere, and the error says where.
        entropy: source of noise; the operating system's if None. Another source stamps them.

    Returns:
        The answers with their certificate; `Statistics.table` gives a table of each.

    Raises:
        InputError: request, table, budget or output are wrong. If rows had been read by then, the
            ledger counts them as spent.
        BudgetError: the ledger or its policy refuses.

    Example:
        >>> from dpsynth.ledger import Ledger
        >>> from dpsynth.tables import simulate
        >>> request = Request.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> found = statistics(simulate(500, seed=1), request, epsilon=1, delta=1e-6,
        ...     dataset="example", ledger=Ledger.create("ledger.sqlite"))
        >>> list(found.table("by sex").columns)
        ['sex', 'count', 'lower', 'upper']
    """
    # a request that was put together in memory is read anew: what is asked is what is written
    if isinstance(request, Request):
        request = Request.from_dict(request.document)
    else:
        request = Request.load(request)
    schema = request.schema
    plan = plan_request(request, epsilon=epsilon, delta=delta)
    require_small_delta(schema, epsilon, delta)
    table = open_table(data, schema)
    source = entropy or OsEntropy()
    stamps = [] if type(source) is OsEntropy else [SEEDED]
    if without_ledger:
        stamps.append(NO_LEDGER)
    numbers = sum(one.numbers for one in request.statistics)
    if output is not None:
        check_vacant(output)
    with nullcontext() if output is None else claimed(output, _ROOM + _CELL * numbers) as claim:
        book = None if without_ledger else ledger or default_ledger(stacklevel=3)
        use = Use(dataset, purpose, tier, policy)
        with charged(book, plan, schema, MODEL, use, networks=False) as opened:
            if book is not None and opened is not None:
                compare_source(book, opened.entry, data)
            rows = Rows.of(read_cohort(table, request.codec, schema, source))
            if undeclared := sorted(
                {name for one in request.statistics for name in one.undeclared}
            ):
                cells = read_coded_cells(table, request.codec, undeclared, source)
                rows = replace(rows, undeclared=cells)
            events = {event.name: event for event in plan.events}
            answers: dict[str, list[Ints]] = {}
            for one in request.statistics:
                answers |= one.answer(rows, events, source)
            certificate = certify(
                schema,
                plan,
                model=MODEL,
                charge=None if opened is None else opened.charge,
                seeded=type(source) is not OsEntropy,
            )
            found = Statistics(request, Certificate.from_dict(certificate), answers, tuple(stamps))
            saved = None if claim is None else claim.save(found.save)
            if opened is not None:
                opened.run = found.digest
    charged_as = None if opened is None else opened.entry.id
    require_saved(saved, charged_as=charged_as, noun="the statistics")
    return found
