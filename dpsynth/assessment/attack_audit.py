"""The verb audit: attack a synthetic table, and the training it came from, before others do.

Attacks on a table are computed from real rows and stay in the office, in a folder that only its
owner can read. An audit of the training on rows drawn from the run reads no private row: it is kept
beside the run as well, and a bundle takes it along.

Of linked tables, attacks link a patient's rows over tables and time: each patient is summed up in
one row (`dpsynth.encoding.summaries`), so the attacks on tables see whole histories: who is
remembered, who was a member, whose attributes can be told. The unit of the claim is the patient,
and so is a row of the summary; it stands beside the attacks without group privacy. The training is
audited with canary patients.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsynth._util.notebook import shown_in_notebooks
from dpsynth._version import __version__
from dpsynth.assessment.attack_plugins import Plugin
from dpsynth.assessment.evaluation import (
    WORTH_SHARING,
    AnySource,
    Candidate,
    RealHistories,
    facts_of,
    name_of,
)
from dpsynth.assessment.fitted_controls import fitted_controls
from dpsynth.assessment.repeated_audits import Trained, audited_run
from dpsynth.assessment.results_folder import (
    AUDIT,
    EVALUATION,
    HISTORIES,
    PAGE,
    alone_at,
    beside,
    check_place,
    reason,
    write_results,
)
from dpsynth.encoding import HistoryCodec, summaries, summary_schema, usual_workers
from dpsynth.encoding.any_table import ISO
from dpsynth.errors import InputError
from dpsynth.eval import Progress, silent
from dpsynth.eval.attack_stats import Attack
from dpsynth.eval.attacks import Control, attacked
from dpsynth.eval.attacks.audit import audit as audit_document
from dpsynth.eval.core import Tables
from dpsynth.eval.report import internal_page
from dpsynth.schema import AnySchema, Schema, load_any
from dpsynth.synthesis import Run
from dpsynth.tables import Reference, Source, as_source, check_file

Deep = Callable[[Tables, Progress], Attack]
Paid = Callable[[Progress], Attack]


@dataclass(frozen=True, repr=False)
class Real:
    """The tables of an audit, or the linked tables of each.

    Attributes:
        source: rows that the generator learned from.
        candidate: the synthetic table that is attacked.
        holdout: rows of people who are not in the source.

    >>> from dpsynth.tables import simulate
    >>> rows = simulate(30, seed=1)
    >>> Real(rows[:20], Candidate("drawn", simulate(20, seed=2)), rows[20:]).candidate.name
    'drawn'
    """

    source: AnySource
    candidate: Candidate
    holdout: AnySource


@dataclass(frozen=True, repr=False)
class Attackable:
    """Tables with a row for each row, or for the whole history of each patient.

    Attributes:
        source: rows that the generator learned from.
        candidate: the synthetic table that is attacked.
        holdout: rows of people who are not in the source.
        names: what pages call source and holdout.
        histories: whether a row sums up the history of a patient, over linked tables.
    """

    source: Source
    candidate: Candidate
    holdout: Source
    names: tuple[str, str]
    histories: bool = False


@shown_in_notebooks
def audit(
    schema: AnySchema | str | Path,
    *,
    real: Real | None = None,
    trained: Trained | None = None,
    paid: Paid | None = None,
    deep: Deep | None = None,
    plugins: Sequence[Plugin] = (),
    seed: int = 0,
    workers: int | None = 1,
    output: str | Path | None = None,
    overwrite: bool = False,
    tolerant: bool = False,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Attack synthetic tables, a training, or both; play the controls; write what was found.

    Of linked tables, each patient is attacked by one row that sums up the whole history.

    Args:
        schema: the public facts of all tables.
        real: the tables to attack; None to audit the training alone, which reads no private row.
        trained: the run whose training is audited; None to leave that out.
        paid: makes an audit of the training of one table that is charged; called last, when nothing
            but writing can fail any more.
        deep: makes shadow models of one table; None to leave them out.
        plugins: attacks of other packages that take part, see `load_plugins`; they need tables.
        seed: of all draws but the noise of fits.
        workers: processes that share the attacks on a table and their controls; None for one for
            each core, if the source is a large file. The figures are the same with any number.
        output: folder to write ``audit.json`` and ``internal.html`` into, for its owner only; an
            evaluation of the same table that is there stays, and shares the page.
        overwrite: put it in the place of an earlier audit there, when all is done.
        tolerant: where real rows cannot be attacked, for whatever reason that lies in them, say so
            in the document (``not_done``), and go on with the training. Whether the training is
            audited, which is public, then does not depend on real rows.
        progress: called with a stage and its fraction done.

    Returns:
        The document of the audit; internal.

    Raises:
        InputError: a table or the output is wrong, source and holdout share people, or there are
            too few of them; or nothing was asked for.

    >>> from dpsynth.tables import simulate
    >>> rows = simulate(300, seed=1)
    >>> drawn = Candidate("another tool's", simulate(200, seed=2))
    >>> found = audit("demo", real=Real(rows[:200], drawn, rows[200:]))  # doctest: +SKIP
    >>> [one["key"] for one in found["findings"] if one["found"]]  # doctest: +SKIP
    []
    """
    schema = load_any(schema) if isinstance(schema, str | Path) else schema
    if real is None and trained is None and paid is None:
        raise InputError("nothing to audit: name a run, or tables")
    if plugins and real is None:
        raise InputError("attacks of other packages need tables; name them, or leave these out")
    if isinstance(seed, bool) or not 0 <= seed < 2**63:
        raise InputError("the seed of an audit is a whole number from 0, below 2^63")
    if trained is not None:
        trained.check()
    is_single, sha256 = isinstance(schema, Schema), None
    if real is not None:
        if is_single:
            for table in map(as_source, (real.source, real.holdout)):
                if not isinstance(table, pd.DataFrame):
                    Reference.of(table).check()
            if not isinstance(synthetic := as_source(real.candidate.one_table), pd.DataFrame):
                check_file(Path(synthetic))
        sha256 = real.candidate.sha256
    if not is_single and (deep is not None or paid is not None):
        raise InputError(
            "shadow models, and canaries among real rows, are built for one table only; audit the "
            "training of linked tables on rows drawn from the run"
        )
    check_place(output, overwrite, AUDIT)
    if output is not None:
        beside(output, EVALUATION if is_single else HISTORIES, sha256)
    if isinstance(schema, Schema):
        schema.require_complete()
    attacks, played, tables = dict[str, Attack](), list[Control](), None
    seconds, broken = dict[str, float](), list[dict[str, str]]()
    not_done, subject = None, None
    rows = schema if isinstance(schema, Schema) else summary_schema(HistoryCodec(schema))
    rng = np.random.default_rng(seed)
    if real is not None:
        try:
            subject = _attackable(schema, real, seed, progress)
            tables, attacks, played = _attacked(
                rows, subject, deep, plugins, seed, workers, seconds, broken, progress
            )
        except Exception as error:
            if not tolerant:
                raise
            not_done = reason(error)
    progress("controls", 0.0)
    fitted = fitted_controls(rng, progress, None if real is None else broken)
    if trained is not None:
        started = time.monotonic()
        attacks["training"] = audited_run(trained, fitted, seed, progress)
        seconds["training"] = time.monotonic() - started
    if paid is not None:
        started = time.monotonic()
        attacks["training"] = paid(progress)
        seconds["training"] = time.monotonic() - started
    canaries = attacks["training"].part.details["canaries"] if "training" in attacks else None
    settings, controls = {"canaries": canaries}, [*played, *fitted]
    document = audit_document(
        rows, attacks, controls, tables=tables, seed=seed, settings=settings, broken=broken
    )
    document |= {"run": _facts(real, trained), "dpsynth": __version__}
    document["seconds"] = {name: round(value, 1) for name, value in seconds.items()}
    if not_done is not None:
        document["not_done"] = {"reason": not_done, "sha256": sha256}
        document["notes"].append(f"The table was not attacked: {not_done}")
    elif real is not None and subject is not None:
        if plugins:
            document["plugins"] = [plugin.to_dict() for plugin in plugins]
        described = document["tables"]
        described["source"]["name"], described["holdout"]["name"] = subject.names
        described["synthetic"] |= {"name": real.candidate.name, "sha256": sha256}
        if subject.histories:
            document["histories"] = True
    if output is not None:
        progress("page", 0.0)
        with alone_at(output):
            evaluation = beside(output, EVALUATION, sha256)
            documents = {AUDIT: document} | ({} if evaluation is None else {EVALUATION: evaluation})
            histories = beside(output, HISTORIES, sha256)
            page = internal_page(evaluation, document, histories=histories)
            write_results(Path(output), documents, {PAGE: page})
    return document


def _attacked(
    schema: Schema,
    real: Attackable,
    deep: Deep | None,
    plugins: Sequence[Plugin],
    seed: int,
    workers: int | None,
    seconds: dict[str, float],
    broken: list[dict[str, str]],
    progress: Progress,
) -> tuple[Tables, dict[str, Attack], list[Control]]:
    """Attack a table that real people are behind; note how long it took, and what broke."""
    progress("reading", 0.0)
    candidate = real.candidate
    tables = Tables.read(
        schema, real.source, candidate.one_table, real.holdout, form=candidate.written
    )
    shadows = dict[str, Attack]()
    if deep is not None:  # first: it is what a budget of minutes may be too small for
        started = time.monotonic()
        shadows["shadows"] = deep(tables, progress)
        seconds["shadows"] = time.monotonic() - started
    started = time.monotonic()
    claim = _claim(real.candidate.run)
    attacks, played = attacked(
        tables,
        claim=claim,
        seed=seed,
        progress=progress,
        plugins=[plugin.attack for plugin in plugins],
        broken=broken,
        workers=usual_workers(real.source, WORTH_SHARING) if workers is None else workers,
    )
    seconds["table"] = time.monotonic() - started
    return tables, attacks | shadows, list(played)


def _claim(run: dict[str, Any] | None) -> tuple[float, float] | None:
    """Return (epsilon, delta) of a run that has them."""
    if run is None or run["epsilon"] is None:
        return None
    return float(run["epsilon"]), float(run["delta"])


def _facts(real: Real | None, trained: Trained | None) -> dict[str, Any] | None:
    """Return what the page says of the run, if there is one."""
    if real is not None and real.candidate.run is not None:
        return real.candidate.run
    return None if trained is None else facts_of(Run.load(trained.folder))


def _attackable(schema: AnySchema, real: Real, seed: int, progress: Progress) -> Attackable:
    """Return what is attacked: the rows of one table, or a row for each patient of linked ones."""
    candidate = real.candidate
    if isinstance(schema, Schema):
        source, holdout = as_source(real.source), as_source(real.holdout)
        return Attackable(source, candidate, holdout, (name_of(source), name_of(holdout)))
    found = RealHistories.read(schema, real.source, real.holdout, seed=seed, progress=progress)
    assert found.holdout is not None  # it was given
    synthetic, _ = found.beside(candidate, seed=seed, progress=progress)
    source, drawn, others = (
        summaries(one, found.codec) for one in (found.source, synthetic, found.holdout)
    )
    return Attackable(
        source,
        Candidate(candidate.name, drawn, candidate.run, candidate.sha256, ISO),
        others,
        names=("the source", "the holdout"),
        histories=True,
    )
