"""Release: from a run to a bundle that may leave the office.

Nothing but the run is read, and tables drawn from it if they are named. The bundle is built under
a temporary name, verified there, and only then gets its own: a bundle on disk is a verified one.

The tables of a release: drawn from the run now, or drawn earlier and recorded in the run.

Whether a run is of one table or of linked ones, each table is put into the bundle as Parquet, and
as text where it is not too large for that.

Permission to release a run: from the ledger that charged it, and entered there.

A release reads no row; it asks the office's ledger, which holds none.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth._util.seeds import check_seed, fresh_seed
from dpsynth._util.strict_json import file_digest, written
from dpsynth.bundle.dpia import dpia_of_verified, dpia_text
from dpsynth.bundle.evidence import Permission
from dpsynth.bundle.files import DerivedFiles, documents_of, files_of, profiles_of
from dpsynth.bundle.format import (
    About,
    Audits,
    Contents,
    ManifestHeader,
    Provenance,
    Quality,
    quality_digest,
    read_audits,
    read_quality,
    table_path,
)
from dpsynth.bundle.format.layout import (
    AUDIT,
    MANIFEST,
    MAX_CSV_ROWS,
    PARQUET,
    QUALITY,
    TEXT,
    TYPED,
)
from dpsynth.bundle.format.manifest import manifest
from dpsynth.bundle.gates import decide, judge
from dpsynth.bundle.meds import check_linked_tables, write_events
from dpsynth.bundle.run_precision import precision_of
from dpsynth.bundle.verifier import verify
from dpsynth.certificate import Certificate, Override, with_rules
from dpsynth.encoding import typed_frames
from dpsynth.errors import ArtifactError, GateError, InputError
from dpsynth.files import atomic_file, atomic_folder, check_no_bundle, check_vacant, claimed
from dpsynth.ledger import LedgerFile
from dpsynth.privacy.plan import STAMP
from dpsynth.schema import (
    SINGLE,
    AnySchema,
    LinkedSchema,
    Schema,
    SyntheticTable,
    synthetic_tables,
)
from dpsynth.synthesis import Run, Sample, Sampler, default_size, recorded_as, run_digest
from dpsynth.tables import check_file, linked_files, table_kind, write_synthetic, write_table


def release(
    run_folder: str | Path,
    bundle: str | Path,
    *,
    table: str | Path | None = None,
    size: int | None = None,
    seed: int | None = None,
    about: About | None = None,
    override: Override | None = None,
    ledger: LedgerFile | None = None,
    meds: str | Path | None = None,
    dpia: str | Path | None = None,
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
        size: rows to draw, or patients of linked tables; default: the schema's public number.
        seed: seed of the sampling; default: a fresh one. Either way it is public, and recorded.
        about: what the office says in public of the release; default: nothing.
        override: who answers for public gates that stop it, and why; goes into the certificate.
        ledger: the ledger that charged the run; default: the default ledger.
        meds: a new folder for the same patients as events, see `export_meds`; it appears with the
            bundle or not at all.
        dpia: a new text file for a data protection impact assessment, see `dpia_of`; likewise.

    Returns:
        The bundle's folder. The same run, seed, words and versions give the same bytes.

    Raises:
        ArtifactError: the run is damaged.
        GateError: the run is stamped as one that may not be released, the table is not one that
            was drawn from it, the quality figures are about another table or were not paid for, the
            audits are not this run's, internal or inconsistent, or a public gate failed.
        BudgetError: the ledger's policy does not allow it, or requires a gate that is unknown.
        InputError: the bundle exists or cannot be written, size or seed are out of range or a
            table is given too, there is nothing to override, or events are wanted of a single
            table.

    >>> import dpsynth
    >>> from dpsynth.bundle import verify
    >>> from dpsynth.ledger import Ledger
    >>> from dpsynth.tables import simulate
    >>> ledger = Ledger.create("ledger.sqlite")
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "ledger": ledger}
    >>> cohort = simulate(200, seed=1)
    >>> run = dpsynth.fit(cohort, "demo", model="independent", output="run", **budget)
    >>> bundle = release("run", "bundle", size=500, seed=1, ledger=ledger)
    >>> len(verify(bundle)) > 5
    True
    """
    check_vacant(bundle)
    run_folder = path_of(run_folder, "the folder of a run")
    run = Run.load(run_folder)
    if meds is not None:
        check_linked_tables(run.schema, run_folder)
    _check_beside(Path(bundle), *[Path(one) for one in (meds, dpia) if one is not None])
    certificate = _releasable(run)
    permission = Permission.of(run, ledger)
    if table is not None and (size is not None or seed is not None):
        raise InputError(
            "a given table is released unchanged: give either a table, or a size and a seed"
        )
    with claimed(bundle), atomic_folder(bundle) as temporary:
        if table is None:
            sample = _drawn(run, temporary, size, seed)
        else:
            sample = _taken(run, run_folder, Path(table), temporary)
        drawing = Provenance(
            run.generator,
            run_digest(run_folder),
            sample.size,
            sample.seed,
            sample.condition,
            sample.plain,
            sample.rules,
        )
        permission.rules(sample.rules)
        contents = Contents(
            ManifestHeader(run.schema, drawing, about or About()),
            certificate,
            _paid_quality(run_folder, run.schema, certificate, sample, permission),
            _own_audits(run_folder, certificate, drawing),
            precision_of(run, certificate) if isinstance(run.schema, Schema) else None,
        )
        _write(temporary, contents, permission.gates, override)
        verify(temporary)
        with (
            nullcontext() if meds is None else atomic_folder(meds) as events,
            nullcontext() if dpia is None else atomic_file(dpia, new=True) as text,
        ):
            if events is not None:
                write_events(temporary, events)
            if text is not None:
                text.write_bytes(dpia_text(dpia_of_verified(temporary)))
            permission.enter(file_digest(temporary / MANIFEST))
    return Path(bundle)


def _check_beside(bundle: Path, *others: Path) -> None:
    """Refuse files and folders of a release that exist, or of which one is a part of another.

    Raises:
        InputError: with the remedy.
    """
    for path in others:
        check_vacant(path)
        check_no_bundle(path)
    for one, other in combinations((bundle, *others), 2):
        one_place, other_place = os.path.abspath(one), os.path.abspath(other)
        if os.path.commonpath([one_place, other_place]) in (one_place, other_place):
            raise InputError(f"{other} and {one}: neither can lie in the other; choose another")


def _write(
    folder: Path, contents: Contents, gates: Sequence[str], override: Override | None
) -> None:
    """Let the gates decide, then write every document beside the tables in ``folder``.

    Raises:
        GateError: one stops the release.
    """
    schema = contents.heading.schema
    drawing = contents.heading.drawing
    profiles = profiles_of(folder, with_rules(schema, drawing.rules))
    verdicts = judge(
        contents.certificate,
        profiles,
        contents.audits,
        measured=contents.quality is not None,
        condition=drawing.condition,
    )
    overrides = decide(verdicts, gates, override)
    contents = replace(
        contents,
        certificate=replace(contents.certificate, overrides=overrides, added_rules=drawing.rules),
    )
    files = documents_of(contents) | DerivedFiles.of(folder, contents, profiles).files
    for path, content in files.items():
        (folder / path).write_bytes(content)
    (folder / MANIFEST).write_bytes(written(manifest(folder, contents.heading, files_of(schema))))


def _releasable(run: Run) -> Certificate:
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
    sample: Sample,
    permission: Permission,
) -> Quality | None:
    """Read the quality figures beside the run, if any; refuse them if they are not this table's."""
    quality = read_quality(run_folder)
    if quality is None:
        return None
    place = f"{run_folder}/{QUALITY}"
    if not isinstance(schema, Schema):
        raise GateError(f"{place} has figures of a single table; remove the file")
    if quality.table_sha256 != sample.sha256:
        raise GateError(
            f"{place} has the figures of another table; release the table that was measured "
            "(--table), or remove the file"
        )
    if problems := quality.problems(schema, certificate, sample.size):
        raise GateError(f"{place}: {problems[0]}; it cannot be published")
    permission.figures(place, sample.sha256, quality_digest(quality))
    return quality


def _own_audits(run_folder: Path, certificate: Certificate, drawing: Provenance) -> Audits | None:
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


def _drawn(run: Run, folder: Path, size: int | None, seed: int | None) -> Sample:
    """Draw the tables of a release into the new bundle in ``folder``."""
    size = default_size(run) if size is None else size
    seed = fresh_seed() if seed is None else seed
    check_seed(seed)
    sampler: Sampler = Sampler.of(run)
    output, is_single = folder / "data", isinstance(run.schema, Schema)
    if is_single:
        output.mkdir()
    digests = write_synthetic(
        sampler.frames(size, seed=seed),
        folder / PARQUET if is_single else output,
        run.schema,
        suffix=TYPED,
        note=False,
    )
    _put_texts(run, folder)
    return Sample(output.name, digests, TYPED, size, seed)


def _taken(run: Run, run_folder: Path, source: Path, folder: Path) -> Sample:
    """Copy tables that were drawn earlier; write them as Parquet too if they are text.

    Raises:
        GateError: they are not such as were drawn from the run.
        InputError: there is no such file.
    """
    files = {SINGLE: source}
    if isinstance(run.schema, LinkedSchema):
        found = linked_files(source, run.schema, synthetic=True)
        files = {name: Path(str(file)) for name, file in found.items()}
    (folder / "data").mkdir()
    copies = {}
    for name, file in files.items():
        kind = table_kind(file)
        check_file(file)
        copies[name] = folder / table_path(name, kind)
        shutil.copyfile(file, copies[name])
    digests = {name: file_digest(copy) for name, copy in copies.items()}
    sample = recorded_as(run_folder, digests, source)  # the originals may change meanwhile
    for name, table in synthetic_tables(run.schema).items():
        _put_typed(copies[name], folder / table_path(name, TYPED), table)
    _put_texts(run, folder)
    return sample


def _put_texts(run: Run, folder: Path) -> None:
    for name, table in synthetic_tables(run.schema).items():
        _put_text(folder / table_path(name, TYPED), folder / table_path(name, TEXT), table)


def _put_text(typed: Path, text: Path, table: SyntheticTable) -> None:
    """Write a table as text, if it is not too large for that; else leave none."""
    import pyarrow.parquet as pq

    if pq.read_metadata(typed).num_rows > MAX_CSV_ROWS:
        text.unlink(missing_ok=True)
    elif not text.exists():
        write_table(typed_frames(typed, table), text, table.schema)


def _put_typed(copy: Path, typed: Path, table: SyntheticTable) -> None:
    """Write a copied text as Parquet too; a packed one does not stay in the bundle."""
    if copy.suffix == TYPED:
        return
    write_table(typed_frames(copy, table), typed, table.schema)
    if copy.suffix != TEXT:
        copy.unlink()
