"""Release: from a run to a bundle that may leave the office.

Nothing but the run is read, and tables drawn from it if they are named. The bundle is built under
a temporary name, verified there, and only then gets its own: a bundle on disk is a verified one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import file_digest, written
from dpsynth.bundle.derived import Derived, profiles_of
from dpsynth.bundle.files import documents_of, files_of
from dpsynth.bundle.format import (
    About,
    Audits,
    Contents,
    Drawing,
    ManifestHeader,
    Quality,
    quality_digest,
    read_audits,
    read_quality,
)
from dpsynth.bundle.format.layout import AUDIT, MANIFEST, QUALITY
from dpsynth.bundle.format.manifest import manifest
from dpsynth.bundle.gates import decide, judge
from dpsynth.bundle.meds_events import check_linked_tables, write_events
from dpsynth.bundle.release_permission import Permission
from dpsynth.bundle.released_tables import Asked, put_tables
from dpsynth.bundle.run_precision import precision_of
from dpsynth.bundle.verifier import verify
from dpsynth.certificate import Certificate, Override
from dpsynth.errors import ArtifactError, GateError, InputError
from dpsynth.files import atomic_folder, check_vacant, claimed
from dpsynth.privacy.plan import STAMP
from dpsynth.schema import AnySchema, Schema
from dpsynth.synthesis import AnyRun, CohortSample, Run, Sample, load_run

if TYPE_CHECKING:
    from dpsynth.ledger import LedgerFile


def release(
    run_folder: str | Path,
    bundle: str | Path,
    *,
    table: str | Path | None = None,
    rows: int | None = None,
    patients: int | None = None,
    seed: int | None = None,
    about: About | None = None,
    override: Override | None = None,
    ledger: LedgerFile | None = None,
    meds: str | Path | None = None,
) -> Path:
    """Write a bundle: the synthetic tables, schema, certificate, precision, a page, the manifest.

    The ledger that charged the run has to be at hand: it says whether this is the run that was paid
    for, its policy decides, and the release is entered there. Quality figures that the plan paid
    for go along, if ``quality.json`` beside the run holds them, and so do the audits on synthetic
    rows of ``audit.json``; of an internal audit nothing does.

    Args:
        run_folder: the run, of one table or of linked ones.
        bundle: the folder to make; it must not exist.
        table: release this table, drawn from the run and recorded there; else one is drawn. Of
            linked tables it is the folder of a cohort.
        rows: rows to draw; default: the schema's public number.
        patients: patients to draw from a run of linked tables; default: likewise.
        seed: seed of the sampling; default: a fresh one. Either way it is public, and recorded.
        about: what the office says in public of the release; default: nothing.
        override: who answers for public gates that stop it, and why; goes into the certificate.
        ledger: the ledger that charged the run; default: the default ledger.
        meds: a new folder for the same patients as events, see `export_meds`; it appears with the
            bundle or not at all.

    Returns:
        The bundle's folder. The same run, seed, words and versions give the same bytes.

    Raises:
        ArtifactError: the run is damaged.
        GateError: the run is stamped as one that may not be released, the table is not one that
            was drawn from it, the quality figures are about another table or were not paid for, the
            audits are not this run's, internal or inconsistent, or a public gate failed.
        BudgetError: the ledger's policy does not allow it, or requires a gate that is unknown.
        InputError: the bundle exists or cannot be written, rows, patients or seed are out of range
            or not for such a run, there is nothing to override, or events are wanted of a single
            table.

    >>> import dpsynth
    >>> from dpsynth.bundle import verify
    >>> from dpsynth.ledger import Ledger
    >>> from dpsynth.tables import simulate
    >>> ledger = Ledger.create("ledger.sqlite")
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "ledger": ledger}
    >>> cohort = simulate(200, seed=1)
    >>> run = dpsynth.fit(cohort, "demo", model="independent", output="run", **budget)
    >>> bundle = release("run", "bundle", rows=500, seed=1, ledger=ledger)
    >>> len(verify(bundle)) > 5
    True
    """
    check_vacant(bundle)
    run_folder = path_of(run_folder, "the folder of a run")
    run = load_run(run_folder)
    if meds is not None:
        check_linked_tables(run.schema, run_folder)
        _check_beside(Path(bundle), Path(meds))
    certificate = _releasable(run)
    permission = Permission.of(run, ledger)
    asked = Asked(None if table is None else Path(table), rows, patients, seed)
    asked.check(run)
    with claimed(bundle), atomic_folder(bundle) as temporary:
        drawing, sample = put_tables(run, run_folder, temporary, asked)
        contents = Contents(
            ManifestHeader(run.schema, drawing, about or About()),
            certificate,
            _paid_quality(run_folder, run.schema, certificate, sample, permission),
            _own_audits(run_folder, certificate, drawing),
            precision_of(run, certificate) if isinstance(run, Run) else None,
        )
        _write(temporary, contents, permission.gates, override)
        verify(temporary)
        with nullcontext() if meds is None else atomic_folder(meds) as events:
            if events is not None:
                write_events(temporary, events)
            permission.enter(file_digest(temporary / MANIFEST))
    return Path(bundle)


def _check_beside(bundle: Path, meds: Path) -> None:
    """Refuse a folder of events that exists, or of which the bundle is a part, or the reverse.

    Raises:
        InputError: with the remedy.
    """
    check_vacant(meds)
    places = [Path(os.path.abspath(one)) for one in (bundle, meds)]
    if places[0].is_relative_to(places[1]) or places[1].is_relative_to(places[0]):
        raise InputError(f"{meds}: the events cannot stand in the bundle; name a folder beside it")


def _write(
    folder: Path, contents: Contents, gates: Sequence[str], override: Override | None
) -> None:
    """Let the gates decide, then write every document beside the tables in ``folder``.

    Raises:
        GateError: one stops the release.
    """
    schema = contents.heading.schema
    profiles = profiles_of(folder, schema)
    verdicts = judge(
        contents.certificate,
        profiles,
        contents.audits,
        measured=contents.quality is not None,
        condition=getattr(contents.heading.drawing, "condition", None),
    )
    overrides = decide(verdicts, gates, override)
    contents = replace(contents, certificate=replace(contents.certificate, overrides=overrides))
    files = documents_of(contents) | Derived.of(folder, contents, profiles).files
    for path, content in files.items():
        (folder / path).write_bytes(content)
    (folder / MANIFEST).write_bytes(written(manifest(folder, contents.heading, files_of(schema))))


def _releasable(run: AnyRun) -> Certificate:
    """Return the certificate of a run; refuse one whose guarantee does not hold for the outside."""
    if run.certificate is None or STAMP in run.stamps:
        raise GateError(
            f"the run is stamped {STAMP}: it was fitted without privacy and can never be released; "
            "fit again with a budget"
        )
    stamps = list(run.stamps)
    if run.certificate["ledger"] is None and "no-ledger" not in stamps:
        stamps.append("no-ledger")
    if stamps:
        raise GateError(
            f"the run is stamped {', '.join(stamps)} and must not be released; fit again with a "
            "ledger and the operating system's randomness"
        )
    return Certificate.from_dict(run.certificate)


def _paid_quality(
    run_folder: Path,
    schema: AnySchema,
    certificate: Certificate,
    sample: Sample | CohortSample,
    permission: Permission,
) -> Quality | None:
    """Read the quality figures beside the run, if any; refuse them if they are not this table's."""
    quality = read_quality(run_folder)
    if quality is None:
        return None
    place = f"{run_folder}/{QUALITY}"
    if not isinstance(schema, Schema) or not isinstance(sample, Sample):
        raise GateError(f"{place} has figures of a single table; remove the file")
    if quality.table_sha256 != sample.sha256:
        raise GateError(
            f"{place} has the figures of another table; release the table that was measured "
            "(--table), or remove the file"
        )
    if problems := quality.problems(schema, certificate, sample.rows):
        raise GateError(f"{place}: {problems[0]}; it cannot be published")
    permission.figures(place, sample.sha256, quality_digest(quality))
    return quality


def _own_audits(run_folder: Path, certificate: Certificate, drawing: Drawing) -> Audits | None:
    """Read the public audits beside the run, if any; refuse what is not about this run."""
    remedy = "take the file away, and audit the run again (dpsynth audit)"
    try:
        audits = read_audits(run_folder)
    except ArtifactError as error:
        raise GateError(f"{error}; it cannot be published: {remedy}") from error
    if audits is None:
        return None
    problems = audits.problems(certificate, certificate.model)
    if audits.run_sha256 != drawing.run_sha256:
        problems = ["it has the audits of another run"]
    if problems:
        raise GateError(f"{run_folder}/{AUDIT}: {problems[0]}; {remedy}")
    return audits
