"""The verb `linkage`: plan, charge both registers, read, count, write; in this order.

The table of candidate pairs, read: which records a row has, and which cells it is in.

Everything about a row follows from its own cells. A row without a record of either register, or
whose score is no number, is in no cell, and so is one whose review says nothing that is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import InputError
from dpsynth.ledger import Ledger, Use
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy, LinkCounts, Links, link_counts
from dpsynth.stats.answers import Answers
from dpsynth.stats.charged_answers import charged_answers
from dpsynth.stats.linkage import MATCHES, OTHERS, UNREVIEWED, LinkageRequest
from dpsynth.synthesis import Reader, require_small_delta
from dpsynth.synthesis.charged_fit import Terms
from dpsynth.tables import (
    Keys,
    Source,
    Table,
    as_source,
    distinct,
    open_columns,
    read_cells,
    texts_of,
)
from dpsynth.tables.table import require_records
from dpsynth.tables.unit_keys import NO_KEY

_ROOM = 2**21  # bytes that the documents take


def linkage(
    pairs: Source,
    request: LinkageRequest | str | Path,
    *,
    epsilon: float,
    delta: float,
    dataset_a: str,
    dataset_b: str,
    purpose: str = "",
    tier: str | None = None,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    without_ledger: bool = False,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
) -> Answers:
    """Count candidate pairs of two registers, under differential privacy for the people of both.

    Args:
        pairs: a row for each candidate pair: a file, or a DataFrame as `dpsynth.read_table`
            returns it, with the columns that the request names.
        request: a `LinkageRequest`, or the path of one.
        epsilon: privacy budget of all numbers together, charged to both datasets; once, to the
            budget that both share, if the request says that people may be in both.
        delta: the probability that the guarantee of epsilon may miss.
        dataset_a: the name under which the ledger counts what the people of register A have spent.
        dataset_b: likewise of register B.
        purpose: a few words for the ledger.
        tier: the kind of purpose, where the policy names some.
        policy: policy to apply if the ledger has not adopted one; it binds both datasets.
        ledger: where to charge both; the default ledger if None.
        without_ledger: charge nowhere; the result is stamped, and may not be released.
        output: folder to write it in; claimed before any charge.
        entropy: source of noise; the operating system's if None. Another source stamps it.

    Returns:
        The noisy numbers with their certificate; table ``thresholds`` has figures by threshold.

    Raises:
        InputError: request, pairs, budget or output are wrong, or the request does not declare that
            pairs follow from their own records alone. If pairs had been read by then, the ledger
            counts them as spent, on both datasets.
        BudgetError: the ledger or its policy refuses for either dataset, or people may be in both
            and the datasets share no budget; neither is charged then.

    Example:
        >>> count = {"value": 900, "basis": "yearly report"}
        >>> request = LinkageRequest.from_dict({
        ...     "linkage": "births and cancers",
        ...     "registers": [{"name": "births", "key": "birth_id", "population": count},
        ...                   {"name": "cancers", "key": "case_id", "population": count}],
        ...     "score": {"column": "score", "thresholds": [0.5, 0.8]},
        ...     "match": {"column": "match", "matches": ["1"], "others": ["0"]},
        ...     "cap": {"matches": 1, "others": 1, "basis": "protocol"}, "same_people": True,
        ...     "own_records": {"value": True, "basis": "weights fixed in the protocol"}})
        >>> import pandas as pd
        >>> ids = [str(n) for n in range(300)]
        >>> pairs = pd.DataFrame({"birth_id": ids, "case_id": ids, "score": "0.9", "match": "1"})
        >>> found = linkage(pairs, request, epsilon=1, delta=1e-6, dataset_a="births",
        ...     dataset_b="cancers", without_ledger=True)
        >>> found.table("thresholds").shape
        (2, 19)
    """
    pairs = as_source(pairs)
    # a request that was put together in memory is read anew: what is asked is what is written
    if isinstance(request, LinkageRequest):
        request = LinkageRequest.from_dict(request.document)
    else:
        request = LinkageRequest.load(request)
    asked = request
    asked.require_own_records()
    if dataset_a.lower() == dataset_b.lower():
        raise InputError("each register has a dataset of its own in the ledger; two are needed")
    plan = asked.plan(epsilon, delta)
    for schema in asked.registers:
        require_small_delta(schema, epsilon, delta)
    table = open_pairs(pairs, asked)

    def ask(links: Mapping[str, Links], source: Entropy) -> dict[str, npt.NDArray[np.int64]]:
        events = [event for event in plan.events if isinstance(event, LinkCounts)]
        return {event.name: link_counts(links[event.name], event, source) for event in events}

    both = (dataset_b,)  # people who may be in both spend once, from one budget
    apart, joined = ((), both) if asked.same_people else (both, ())
    payer = Use(dataset_a, purpose, tier, policy, apart, joined)
    terms = Terms(payer, ledger, without_ledger, output, entropy)
    return charged_answers(
        asked,
        plan,
        PairsReader((pairs,), table, asked),
        ask,
        terms,
        room=_ROOM,
        second=Use(dataset_b, purpose, tier, policy),
    )


_CLASSES = (MATCHES, OTHERS, UNREVIEWED)


@dataclass(frozen=True, eq=False, repr=False)
class PairsReader(Reader[Mapping[str, Links]]):
    """A table of candidate pairs."""

    table: Table
    request: LinkageRequest

    def read(self, entropy: Entropy) -> Mapping[str, Links]:
        """Read the pairs into memory; nothing of it is drawn."""
        return read_pairs(self.table, self.request)


def open_pairs(source: Source, request: LinkageRequest) -> Table:
    """Open a table of candidate pairs, and check its header and records; no row has been read then.

    Raises:
        TableError: there is none, it lacks a column, or a text file has an irregular record.
    """
    source = as_source(source)
    first, second = request.registers
    other = second.unit.column or ""
    open_columns(source, second, (other,), private=True)
    # beside a value that is a whole number, whole numbers are judged as those of a key are
    columns = [replace(c, categories=("0",)) if c.name == other else c for c in first.columns]
    both = replace(first, columns=tuple(columns))
    return require_records(open_columns(source, both, request.columns, private=True))


def read_pairs(table: Table, request: LinkageRequest) -> Mapping[str, Links]:
    """Read all pairs, by what clerical review found.

    Raises:
        TableError: the table is damaged, or has no rows.
    """
    keys = [Keys(schema) for schema in request.registers]
    first, second, scores, classes = [], [], [], []
    for chunk in table.chunks():
        first.append(keys[0].units(chunk))
        second.append(keys[1].units(chunk))
        scores.append(_scores(chunk[request.score], request))
        classes.append(_classes(chunk[request.match], request))
    a, b = np.concatenate(first), np.concatenate(second)
    score, of_row = np.concatenate(scores), np.concatenate(classes)
    counts = (a != NO_KEY) & (b != NO_KEY) & (score >= request.thresholds[0])
    found = {}
    for name in request.classes:
        here = counts & (of_row == _CLASSES.index(name))
        cells = score[here][:, None] >= np.array(request.thresholds)
        found[name] = Links(a[here], b[here], cells)
    return found


def _scores(
    cells: pd.Series, request: LinkageRequest
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    schema = request.registers[0]
    return read_cells(cells, schema.column(request.score), schema.dialect.decimal)[0]


def _classes(
    cells: pd.Series, request: LinkageRequest
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the place of each row's class."""
    of_row, texts = distinct(texts_of(cells))
    known = dict.fromkeys(request.yes, 0) | dict.fromkeys(request.no, 1)
    places = [known.get(text.strip(), 2) for text in texts]
    return np.array([*places, 2], dtype=np.int64)[of_row]
