"""The verb `labels`: plan, charge, read, vote, write; in this order, as for a fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dpsynth.certificate import Certificate
from dpsynth.encoding import Cohort
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger, Use
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy, TeacherVotes, dealt, noisy_votes
from dpsynth.privacy.answers import NOWHERE
from dpsynth.schema import Schema
from dpsynth.stats.charged_answers import charged_answers
from dpsynth.stats.labels.document import MODEL, Labels, taught
from dpsynth.stats.labels.queries import Queries
from dpsynth.stats.labels.task import MAX_COUNTS, MAX_VOTES, USUAL_ASKED, Task
from dpsynth.stats.labels.teachers import BEST, Features, Ints, votes_of_teachers
from dpsynth.synthesis import TableReader, require_small_delta
from dpsynth.synthesis.charged_fit import Terms
from dpsynth.tables import Source, as_source, open_table

_ROOM = 2**21  # bytes that the documents take, and more for each public row
_ROW = 600


def prepared(
    queries: Source,
    schema: Schema | str,
    label: str,
    *,
    teachers: int | None = None,
    asked: int | None = None,
    vote: str = BEST,
) -> tuple[Task, Queries]:
    """Read public rows and set a task; no private row is read.

    Args:
        queries: public rows: a CSV or Parquet file, or a DataFrame.
        schema: of the private table.
        label: the column to tell.
        teachers: how many there are; see `Task.of`.
        asked: on how many rows they vote, the first ones; the first 5,000 if None, or fewer.
        vote: ``best`` or ``drawn``.

    Raises:
        InputError: one of them is wrong.
    """
    task = Task.of(schema, label, asked=1, teachers=teachers, vote=vote)
    rows = Queries.read(queries, task.schema, label)
    usual = min(USUAL_ASKED, rows.count, MAX_COUNTS // task.axis.size, MAX_VOTES // task.teachers)
    if asked is not None and asked > rows.count:
        raise InputError(f"the queries have {rows.count:,} rows; no more can be asked")
    number = usual if asked is None else asked
    return Task.of(schema, label, asked=number, teachers=task.teachers, vote=vote), rows


def labels(
    data: Source,
    queries: Source,
    schema: Schema | str,
    label: str,
    *,
    epsilon: float,
    delta: float,
    dataset: str,
    teachers: int | None = None,
    asked: int | None = None,
    vote: str = BEST,
    purpose: str = "",
    tier: str | None = None,
    policy: Policy | None = None,
    ledger: Ledger | None = None,
    without_ledger: bool = False,
    output: str | Path | None = None,
    entropy: Entropy | None = None,
) -> Labels:
    """Label public rows by the votes of teachers on disjoint patients, under differential privacy.

    Args:
        data: private rows: the path of a table, or a DataFrame of pandas, polars or Arrow.
        queries: the rows to label, public or synthetic: they are published. Labels that they have
            are not read.
        schema: of both tables.
        label: the column to tell.
        epsilon: privacy budget of all labels together; there is no default.
        delta: the probability that the guarantee of epsilon may miss; there is no default.
        dataset: the name under which the ledger counts what these patients have spent.
        teachers: among whom the patients are dealt; one for about 70 if None.
        asked: on how many queries they vote, the first ones; the student labels all.
        vote: ``best``, each names the likeliest class; or ``drawn``, each draws one by how likely
            it is, which tells more of rare classes.
        purpose: a few words for the ledger.
        tier: the kind of purpose, where the policy names some.
        policy: one to keep, where the ledger has adopted none.
        ledger: where to charge; the default ledger if None.
        without_ledger: charge nowhere; the labels are stamped, and may not be released.
        output: folder to write them in; claimed before any charge. If they cannot be written
            there all the same, they are saved elsewhere, and the error says where.
        entropy: source of noise; the operating system's if None. Another source stamps them.

    Returns:
        The labels with their certificate; `Labels.table` gives the public rows with labels.

    Raises:
        InputError: a table, the label, budget or output are wrong. If private rows had been read
            by then, the ledger counts them as spent.
        BudgetError: the ledger or its policy refuses.

    Example:
        >>> from dpsynth.tables import simulate
        >>> found = labels(simulate(600, seed=1), simulate(50, seed=2), "demo", "diabetes",
        ...     epsilon=1, delta=1e-6, dataset="example", without_ledger=True)
        >>> found.table().shape, found.task.asked == found.queries.count
        ((100, 15), True)
    """
    data = as_source(data)
    task, rows = prepared(queries, schema, label, teachers=teachers, asked=asked, vote=vote)
    schema = task.schema
    codes = rows.codes(task)
    features = Features.cut(task.codec, codes, task.axis.place)
    public = features.of(codes[: task.asked])
    plan = task.plan(epsilon, delta)
    require_small_delta(schema, epsilon, delta)
    table = open_table(data, schema)
    (event,) = plan.events
    assert isinstance(event, TeacherVotes)

    def ask(cohort: Cohort, source: Entropy) -> Ints:
        return asked_of_teachers(task, cohort, features, public, event, source)

    def made(votes: Ints, stated: Certificate, stamps: tuple[str, ...]) -> Labels:
        student = taught(task, rows, votes, event)[1]
        return Labels(task, rows, stated, votes, student, stamps)

    return charged_answers(
        plan,
        schema,
        TableReader((data,), task.codec, table),
        ask,
        made,
        Terms(Use(dataset, purpose, tier, policy), ledger, without_ledger, output, entropy),
        model=MODEL,
        room=_ROOM + _ROW * rows.count + 3 * len(rows.csv()),
        noun="the labels",
    )


def asked_of_teachers(
    task: Task,
    cohort: Cohort,
    features: Features,
    public: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    event: TeacherVotes,
    source: Entropy,
) -> Ints:
    """Deal units to teachers, let these vote, and count with noise; what is returned is noisy.

    Args:
        task: what is asked.
        cohort: private rows, at most as many of each unit as the schema says.
        features: cut by public rows.
        public: the features of those that are asked, ``[asked, features]``.
        event: what the plan paid for.
        source: of the deal, of votes that are drawn, and of the noise.
    """
    teacher_of_unit = dealt(len(cohort.mask), event, source)
    units, places = np.nonzero(cohort.mask)
    codes = cohort.codes[units, places]
    classes = task.axis.cells(codes)
    known = classes != NOWHERE
    votes = votes_of_teachers(
        features.of(codes[known]),
        classes[known],
        teacher_of_unit[units[known]],
        public,
        number=task.teachers,
        labels=task.axis.size,
        way=task.vote,
        entropy=source,
    )
    return noisy_votes(votes, event, source)
