"""The verb `labels`: plan, charge, read, vote, write; in this order, as for a fit.

Teachers: each is trained on the rows of their own units, and votes on public rows. Whatever is
computed here of one teacher depends on their own rows, on public rows and on fresh coins alone;
`privacy.answers.votes_event` has why that is needed. So teachers are trained one by one: not in
batches whose size or end depends on the others, and with a penalty that is a constant.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.ledger import Ledger, Use
from dpsynth.policy import Policy
from dpsynth.privacy import Entropy, TeacherVotes, dealt, noisy_votes
from dpsynth.privacy.answers import ABSTAINS, NOWHERE
from dpsynth.schema import Schema
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.answers import Answers
from dpsynth.stats.charged_answers import charged_answers
from dpsynth.stats.labels import BEST, DRAWN, Bits, Features, Floats, Ints, LabelsRequest
from dpsynth.synthesis import TableReader, require_small_delta
from dpsynth.synthesis.charged_fit import Terms
from dpsynth.tables import Source, as_source, open_table

Votes = npt.NDArray[np.int16]
_ROOM = 2**21  # bytes that the documents take, and more for each public row
_ROW = 600


PENALTY = 1.0
"""On the squares of a teacher's weights, per row of squared error: fits a few hundred rows."""


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
) -> Answers:
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
        The labels with their certificate; table ``labelled`` has the public rows with labels.

    Raises:
        InputError: a table, the label, budget or output are wrong. If private rows had been read
            by then, the ledger counts them as spent.
        BudgetError: the ledger or its policy refuses.

    Example:
        >>> from dpsynth.tables import simulate
        >>> found = labels(simulate(600, seed=1), simulate(50, seed=2), "demo", "diabetes",
        ...     epsilon=1, delta=1e-6, dataset="example", without_ledger=True)
        >>> found.table("labelled").shape, len(found.table("votes"))
        ((100, 15), 100)
    """
    data = as_source(data)
    request = LabelsRequest.of(queries, schema, label, teachers=teachers, asked=asked, vote=vote)
    plan = request.plan(epsilon, delta)
    require_small_delta(request.schema, epsilon, delta)
    table = open_table(data, request.schema)
    (event,) = plan.events
    assert isinstance(event, TeacherVotes)

    features = request.features
    public = features.of(request.codes[: request.voted])

    def ask(cohort: Cohort, source: Entropy) -> Numbers:
        votes = asked_of_teachers(request, cohort, features, public, event, source)
        return {"votes": votes, "student": request.learned(votes, event.sigma).weights}

    return charged_answers(
        request,
        plan,
        TableReader((data,), request.codec, table),
        ask,
        Terms(Use(dataset, purpose, tier, policy), ledger, without_ledger, output, entropy),
        room=_ROOM + _ROW * request.queries.count + 3 * len(request.queries.csv()),
    )


def asked_of_teachers(
    request: LabelsRequest,
    cohort: Cohort,
    features: Features,
    public: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    event: TeacherVotes,
    source: Entropy,
) -> Ints:
    """Deal units to teachers, let these vote, and count with noise; what is returned is noisy.

    Args:
        request: what is asked.
        cohort: private rows, at most as many of each unit as the schema says.
        features: cut by public rows.
        public: the features of those that are asked, ``[asked, features]``.
        event: what the plan paid for.
        source: of the deal, of votes that are drawn, and of the noise.
    """
    teacher_of_unit = dealt(len(cohort.mask), event, source)
    units, places = np.nonzero(cohort.mask)
    codes = cohort.codes[units, places]
    classes = request.axis.cells(codes)
    known = classes != NOWHERE
    votes = votes_of_teachers(
        features.of(codes[known]),
        classes[known],
        teacher_of_unit[units[known]],
        public,
        number=request.teachers,
        labels=request.axis.size,
        way=request.vote,
        entropy=source,
    )
    return noisy_votes(votes, event, source)


def votes_of_teachers(
    rows: Bits,
    classes: Ints,
    teachers: Ints,
    queries: Bits,
    *,
    number: int,
    labels: int,
    way: str,
    entropy: Entropy,
) -> Votes:
    """Train every teacher on the rows of their units and let them vote.

    Args:
        rows: features of private rows whose label is known, ``[rows, features]``.
        classes: the label of each, from 0.
        teachers: whose row it is, ``[rows]``, from 0.
        queries: features of the public rows, ``[queries, features]``.
        number: of teachers.
        labels: how many classes there are.
        way: one of `WAYS`.
        entropy: where the coins of a drawn vote come from.

    Returns:
        The class that each names, ``[teachers, queries]``; `ABSTAINS` of one without rows.
    """
    asked = queries.astype(np.float64)
    order = np.argsort(teachers, kind="stable")
    ends = np.cumsum(np.bincount(teachers, minlength=number))
    votes = np.full((number, len(queries)), ABSTAINS, dtype=np.int16)
    for teacher in range(number):
        own = order[ends[teacher - 1] if teacher else 0 : ends[teacher]]
        coins = entropy.uniform(len(queries)) if way == DRAWN else None  # of hers, used or not
        if not len(own):
            continue
        scores = scored(rows[own].astype(np.float64), classes[own], asked, labels)
        votes[teacher] = scores.argmax(axis=1) if coins is None else _drawn(scores, coins)
    return votes


def scored(rows: Floats, classes: Ints, asked: Floats, labels: int) -> Floats:
    """Return how likely each class is of each public row, by ridge regression on indicators.

    Args:
        rows: a teacher's own, ``[rows, features]``.
        classes: their labels.
        asked: public rows, ``[queries, features]``.
        labels: how many classes there are.

    Returns:
        Scores that add up to 1 in each row, ``[queries, labels]``; some may lie outside [0, 1].
    """
    targets = np.eye(labels)[classes]
    share, middle = targets.mean(axis=0), rows.mean(axis=0)
    centred, wanted = rows - middle, targets - share
    many, features = centred.shape
    if many > features:
        gram = centred.T @ centred
        gram[np.diag_indices(features)] += PENALTY
        weights = np.linalg.solve(gram, centred.T @ wanted)
    else:  # the same weights, by a smaller system
        kernel = centred @ centred.T
        kernel[np.diag_indices(many)] += PENALTY
        weights = centred.T @ np.linalg.solve(kernel, wanted)
    found: Floats = share + (asked - middle) @ weights
    return found


def _drawn(scores: Floats, coins: Floats) -> Ints:
    """Draw a class for each row, each with a chance of its score cut to [0, 1]."""
    chances = np.clip(scores, 0, 1) + 1e-12
    sums = np.cumsum(chances, axis=1)
    passed = (sums <= (coins * sums[:, -1])[:, None]).sum(axis=1)
    found: Ints = np.minimum(passed, scores.shape[1] - 1)
    return found
