"""Answers: what a request got, with the certificate of what it cost; on disk, and outside.

A folder of answers has one document, under its own SHA-256, which holds what was paid for. All
other files follow from it: the certificate, the tables, the page, and the Data Package that lists
them. Whoever reads the folder derives them anew, and finds one that differs in a byte.

Answers leave the office by leave of the ledger that charged them. They are signed as a bundle is,
and anyone can verify them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsynth._util.arguments import path_of, require_list
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import (
    bytes_digest,
    check_format,
    check_keys,
    digest,
    read_document,
    read_plain_bytes,
    texts,
    written,
)
from dpsynth._version import __version__
from dpsynth.bundle.checks import foreign
from dpsynth.bundle.evidence import Permission, evidence_of
from dpsynth.bundle.format import Passphrase, load_private, load_public, signed
from dpsynth.bundle.format.signature import SIGNATURE, problem
from dpsynth.bundle.gates import judge_statistics
from dpsynth.bundle.gates.public_gates import OF_TABLES
from dpsynth.certificate import (
    Certificate,
    OtherRegister,
    attack_rates_of,
    bounds_of,
    exact_claims,
    floating_point_limits,
    not_covered,
)
from dpsynth.errors import (
    ArtifactError,
    BudgetError,
    DpsynthError,
    GateError,
    InputError,
    Problem,
    VerificationError,
)
from dpsynth.files import (
    atomic_folder,
    check_vacant,
    claimed,
    remove_leftovers,
    write_atomically,
    write_new,
)
from dpsynth.ledger import Evidence
from dpsynth.ledger.actions import close
from dpsynth.privacy import Event, Unit, epsilon
from dpsynth.stats.answer_request import (
    NO_LEDGER,
    SEEDED,
    AnswerRequest,
    ChargedRequest,
    Numbers,
    Result,
    file_stem,
)
from dpsynth.stats.labels import LabelsRequest
from dpsynth.stats.linkage import LinkageRequest
from dpsynth.stats.local import LocalRequest
from dpsynth.stats.page import rendered
from dpsynth.stats.statistics_request import StatisticsRequest

if TYPE_CHECKING:
    from dpsynth.ledger import LedgerFile
    from dpsynth.ledger.entry import Entry

KINDS: dict[str, type[AnswerRequest]] = {
    one.kind.document: one
    for one in (LabelsRequest, LinkageRequest, LocalRequest, StatisticsRequest)
}
"""The kinds of answers, by the document of their folders; a further kind is a line here."""

VERSION = 1
MANIFEST = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_MEDIA = {"csv": "text/csv", "json": "application/json", "html": "text/html"}
_LARGEST = 2**30  # bytes of a file


@dataclass(frozen=True)
class ChargedAnswers:
    """What a ledger knows answers by: their certificate and their digest."""

    certificate: dict[str, Any] | None
    stamps: tuple[str, ...]
    digest: str


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Answers to a request.

    Attributes:
        request: what was asked for.
        numbers: noisy whole numbers that were paid for.
        certificate: of what they cost; None of answers that were perturbed at their source.
        stamps: reasons why they may not be released, such as ``no-ledger``.
    """

    request: AnswerRequest
    numbers: Numbers
    certificate: Certificate | None
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the request and the cost."""
        cost = [] if self.certificate is None else [repr(self.certificate)]
        return short_repr(self, repr(self.request), *cost)

    @property
    def events(self) -> dict[str, Event]:
        """The events of the certificate, by name."""
        events = () if self.certificate is None else self.certificate.events
        return {event.name: event for event in events}

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """The tables, with what is known of each."""
        return self.request.results(self.numbers, self.events)

    def table(self, name: str) -> pd.DataFrame:
        """Return one table.

        Raises:
            KeyError: there is none of this name.
        """
        return {result.name: result.table for result in self.results}[name]

    @property
    def document(self) -> dict[str, Any]:
        """What was paid for, under its own SHA-256; all else follows from it."""
        certificate = None if self.certificate is None else self.certificate.to_dict()
        document = {
            "format": self.request.kind.form,
            "version": VERSION,
            **self.request.asked(),
            **({} if certificate is None else {"certificate": certificate}),
            **self.request.paid(self.numbers),
            "stamps": list(self.stamps),
        }
        return document | {"sha256": digest(document)}

    @property
    def digest(self) -> str:
        """SHA-256 by which the ledger knows them."""
        return str(self.document["sha256"])

    @property
    def charged(self) -> ChargedAnswers:
        """What a ledger asks of something that it charged.

        Raises:
            InputError: no ledger charges such answers.
        """
        if self.certificate is None:
            raise InputError(
                f"no ledger charges {self.request.kind.noun}: answers were perturbed at their "
                "source, and each person spent epsilon there; publish the folder as it is"
            )
        return ChargedAnswers(self.certificate.to_dict(), self.stamps, self.digest)

    def page(self) -> str:
        """Return the page as HTML; it holds what the other files hold, and nothing else."""
        values = self.request.page(self.numbers, self.certificate, self.results)
        return rendered(self.request, self.certificate, self.stamps, values)

    def files(self) -> dict[str, bytes]:
        """Return every file, by name."""
        kind, schemas = self.request.kind, self.request.schemas
        found = {kind.document: written(self.document)}
        if self.certificate is not None:
            found["privacy.json"] = written(self.certificate.to_dict())
        for letter, schema in zip("ab", schemas, strict=False):
            name = "schema.json" if len(schemas) == 1 else f"schema-{letter}.json"
            found[name] = written(schema.to_dict())
        found["report.html"] = self.page().encode()
        tables = {}
        for one in self.results:
            tables[f"{one.stem}.csv"] = one.table
            content: Any = one.table.to_csv(index=False, lineterminator="\n")
            found[f"{one.stem}.csv"] = content.encode()
            if (described := self.request.described(one, self.events)) is not None:
                found[f"{one.stem}.json"] = written(described | _cells(one.table))
        title = f"{kind.title}: {self.request.title}"
        package = data_package(self.request.title, title, found, tables)
        return found | {MANIFEST: written(package)}

    def save(self, folder: str | Path) -> Path:
        """Write all files into a new folder, whole or not at all.

        Raises:
            InputError: the folder exists or cannot be written.
        """
        with atomic_folder(folder) as temporary:
            for name, content in self.files().items():
                (temporary / name).write_bytes(content)
        return Path(folder)

    @classmethod
    def load(cls, folder: str | Path) -> Answers:
        """Read answers from their folder, and check all that can be checked without a ledger.

        Raises:
            ArtifactError: a file is missing, damaged or changed, a number was not paid for, or the
                certificate claims less than its events cost.
        """
        name = document_of(folder) or StatisticsRequest.kind.document
        path, kind = path_of(folder) / name, KINDS[name]
        charges = issubclass(kind, ChargedRequest)
        document = read_document(path)
        check_format(document, str(path), kind.kind.form, VERSION)
        of_all = ("format", "version", "stamps", "sha256", *["certificate"] * charges)
        check_keys(document, str(path), (*of_all, *kind.kind.keys))
        stated = document.pop("sha256")
        if stated != digest(document):
            raise ArtifactError(f"{path} is damaged: its content does not fit its SHA-256")
        try:
            request = kind.read(document, path)
        except ArtifactError:
            raise
        except DpsynthError as error:
            raise ArtifactError(f"{path}: {error}") from error
        certificate = None
        if charges:
            certificate = Certificate.from_dict(document["certificate"], f"{path}: certificate")
        stamps = texts(document["stamps"], f"{path}: stamps")
        if problems := claim_problems(request, certificate, stamps):
            raise ArtifactError(f"{path}: {problems[0]}")
        events = {} if certificate is None else {one.name: one for one in certificate.events}
        try:
            found = cls(request, request.numbers(document, events, path), certificate, stamps)
            expected = found.files()
        except (ValueError, IndexError, KeyError, TypeError, AssertionError) as error:
            raise ArtifactError(f"{path} has answers that are not those of its request") from error
        for file, content in expected.items():
            if read_plain_bytes(path.parent / file, largest=_LARGEST) != content:
                raise ArtifactError(
                    f"{path.parent / file} is not what {path.name} gives: it was changed"
                )
        return found


def _cells(table: pd.DataFrame) -> dict[str, Any]:
    """Return the cells of a table in JSON types."""
    rows = table.astype(object).where(table.notna(), None).to_numpy().tolist()
    return {"columns": list(table.columns), "rows": [[_plain(one) for one in row] for row in rows]}


def _plain(cell: Any) -> Any:
    if isinstance(cell, str | bool | int | float) or cell is None:
        return cell
    return str(cell)


def claim_problems(
    request: AnswerRequest, certificate: Certificate | None, stamps: Sequence[str]
) -> list[str]:
    """Say what is wrong with a certificate of answers; empty if nothing is.

    Args:
        request: whose events are needed, all of them.
        certificate: of the answers.
        stamps: reasons why they may not be released.
    """
    problems = request.problems(certificate, stamps)
    if not isinstance(request, ChargedRequest):
        return problems
    assert certificate is not None
    schema, *others = request.schemas
    model = request.kind.name
    planned = {share.event.name: share.event for share in request.shares(certificate)}
    events = {event.name: event for event in certificate.events}
    if certificate.model != model:
        problems.append(f"the certificate is not about {model}")
    if set(planned) != set(events):
        problems.append("the certificate does not list exactly the events of the request")
    elif any(events[name].undecided() != planned[name] for name in planned):
        problems.append("an event of the certificate is not the one that the request needs")
    elif epsilon(certificate.events, certificate.delta) > certificate.composed_epsilon * (1 + 1e-9):
        problems.append("the certificate claims less than its events cost")
    elif not certificate.attack_rates.agrees(
        attack_rates_of(certificate.events, certificate.unit, certificate.second)
    ):
        problems.append("the certificate states other attack rates than its events allow")
    if certificate.composed_epsilon > certificate.epsilon:
        problems.append("the certificate states a cost above its budget")
    if SEEDED not in stamps and any(noise.fault for noise in certificate.noise):
        problems.append("the noise is not from where dpsynth draws it, and no stamp says so")
    if any((one.ledger is None) != (NO_LEDGER in stamps) for one in certificate.registers):
        problems.append("the stamps are not those that the certificate requires")
    stated = (certificate.schema_sha256, certificate.unit, certificate.population)
    stated_of_tables = certificate.tables == tuple(bounds_of(schema))
    if stated != (schema.hash(), Unit.of(schema), schema.population.value) or not stated_of_tables:
        problems.append("the certificate is about another schema")
    other = certificate.second
    paid = None if other is None else other.ledger
    if other != (OtherRegister.of(others[0], paid, request.own_records or "") if others else None):
        problems.append("the certificate does not name both registers as the request does")
    words = (certificate.exact, certificate.floating_point, certificate.not_covered)
    if words != (
        exact_claims(certificate.events),
        floating_point_limits(certificate.events),
        not_covered(schema, certificate.ledger, model, other),
    ):
        problems.append("the certificate is not worded as its events and its ledger require")
    return problems


def data_package(
    name: str, title: str, files: Mapping[str, bytes], tables: Mapping[str, pd.DataFrame]
) -> dict[str, Any]:
    """Describe files as a Data Package; the same files give the same document.

    Args:
        name: of the package, as a slug is made of it.
        title: of the answers.
        files: content by name.
        tables: those of the CSV files, by name.
    """
    resources = []
    for file, content in files.items():
        stem, _, ending = file.rpartition(".")
        resource = {
            "name": file_stem(file if ending != "csv" else stem),
            "path": file,
            "format": ending,
            "mediatype": _MEDIA[ending],
            "bytes": len(content),
            "hash": f"sha256:{bytes_digest(content)}",
        }
        if file in tables:
            resource |= {"type": "table", "encoding": "utf-8"}
            resource["schema"] = {"fields": [_field(column) for _, column in tables[file].items()]}
        resources.append(resource)
    return {
        "$schema": PROFILE,
        "name": file_stem(name),
        "title": title,
        "dpsynth": {"format": "dpsynth-statistics-package", "version": 1, "writer": __version__},
        "resources": resources,
    }


def _field(column: pd.Series[Any]) -> dict[str, str]:
    if pd.api.types.is_integer_dtype(column.dtype):
        kind = "integer"
    else:
        kind = "number" if pd.api.types.is_float_dtype(column.dtype) else "string"
    return {"name": str(column.name), "type": kind}


def document_of(folder: str | Path) -> str | None:
    """Name the document of a folder of answers; None where there is none."""
    return next((name for name in KINDS if (path_of(folder) / name).is_file()), None)


def is_answers(folder: str | Path) -> bool:
    """Whether a folder holds answers of any kind, and no run or bundle of rows."""
    return document_of(folder) is not None


def release_answers(
    folder: str | Path, bundle: str | Path, *, ledger: LedgerFile | None = None
) -> Path:
    """Copy answers into a new folder that may leave the office, and enter it in the ledger.

    Args:
        folder: of the answers.
        bundle: the folder to make.
        ledger: the ledger that charged them; default: the one at hand.

    Returns:
        The new folder.

    Raises:
        ArtifactError: they are damaged or were changed.
        GateError: they are stamped as such that may not be released, or a gate that the policy
            requires did not pass. Gates about synthetic tables have nothing to judge here.
        BudgetError: the ledger's policy does not allow it, or requires a gate that is unknown.
        InputError: the new folder exists or cannot be written.
    """
    check_vacant(bundle)
    found = Answers.load(folder)
    if found.stamps:
        raise GateError(
            f"{found.request.kind.noun} are stamped {', '.join(found.stamps)} and must not be "
            "released; ask again with a ledger and the operating system's randomness"
        )
    permission = Permission.of(found.charged, ledger)
    _keep_gates(found, permission)
    files = found.files()
    with claimed(bundle), atomic_folder(bundle) as temporary:
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        Answers.load(temporary)
        permission.enter(bytes_digest(files[MANIFEST]))
    return Path(bundle)


def _keep_gates(found: Answers, permission: Permission) -> None:
    """Refuse what a gate stops, whether by itself or because the office's policy requires it."""
    assert found.certificate is not None  # whoever has a permission was charged
    verdicts = judge_statistics(found.certificate, found.stamps)
    unknown = set(permission.gates) - {verdict.key for verdict in verdicts} - {*OF_TABLES}
    if unknown:
        raise BudgetError(
            "the policy requires gates that dpsynth does not have: " + ", ".join(sorted(unknown))
        )
    for verdict in verdicts:
        if not verdict.passed and (verdict.stops or verdict.key in permission.gates):
            raise GateError(
                f"the release is stopped by a check that did not pass: '{verdict.title}'; for "
                "statistics it cannot be overridden"
            )


def close_answers(book: LedgerFile, folder: str | Path) -> Entry:
    """Close the entry of answers that were written, but could not reach the ledger at the end.

    Args:
        book: the ledger that charged them.
        folder: of the answers.

    Raises:
        ArtifactError: they are damaged or were changed.
        InputError: nobody is named.
        BudgetError: they are not what the ledger has an open entry for.
    """
    return close(book, Answers.load(folder).charged)


def evidence_by_folder(folders: Iterable[str | Path]) -> dict[str, Evidence]:
    """Read what answers, runs and bundles say of the ledger that charged them, by their folders.

    Raises:
        ArtifactError: answers are damaged or were changed.
        InputError: a folder is none of these, or no ledger charged it.
    """
    return {
        str(folder): _evidence(folder) if is_answers(folder) else evidence_of(Path(folder))
        for folder in require_list(folders, "a list of folders")
    }


def _evidence(folder: str | Path) -> Evidence:
    """Read answers; all of their files follow from what the digest covers."""
    found = Answers.load(folder)
    digest = found.charged.digest  # no ledger knows those that it did not charge
    assert found.certificate is not None
    return Evidence(found.certificate, digest)


def verify_answers(
    folder: str | Path, *, key: str | Path | None = None, ledger: LedgerFile | None = None
) -> list[str]:
    """Check all that answers say of themselves, with nothing but their folder.

    Args:
        folder: of the answers.
        key: file of the publisher's public key; the Data Package must be signed with it.
        ledger: the ledger that charged them; it must hold what the certificate says.

    Returns:
        The checks that passed, a sentence each.

    Raises:
        InputError: there is no such folder, or no such key.
        VerificationError: with what is wrong.
    """
    place = path_of(folder)
    if not place.is_dir():
        raise InputError(f"{place} is not a folder of answers: there is no such folder")
    public = None if key is None else load_public(key)
    try:
        found = Answers.load(place)
    except ArtifactError as error:
        raise VerificationError(
            [Problem(document_of(place) or StatisticsRequest.kind.document, str(error))]
        ) from error
    expected = found.files()
    more = {path.name for path in place.iterdir()} - {*expected, SIGNATURE}
    if more:
        raise VerificationError(
            [foreign(name, f"is not part of {found.request.kind.noun}") for name in sorted(more)]
        )
    certificate = found.certificate
    checks = found.request.checked(certificate, len(expected))
    if public is not None:
        signature = place / SIGNATURE
        if not signature.is_file():
            raise VerificationError([Problem(SIGNATURE, "is missing: nobody signed this")])
        if wrong := problem(expected[MANIFEST], read_plain_bytes(signature), public):
            raise VerificationError([Problem(SIGNATURE, wrong)])
        checks.append("the Data Package is signed with this key, and lists every other file")
    if ledger is not None:
        try:
            Permission.of(found.charged, ledger)
        except DpsynthError as error:
            raise VerificationError([Problem("ledger", str(error))]) from error
        assert certificate is not None  # else no ledger had charged them
        twice = " to the datasets of both registers" if certificate.second is not None else ""
        if certificate.is_joint:
            twice = " once, to the budget that both registers share"
        checks.append(f"the ledger charged {found.request.kind.noun}{twice}")
    return checks


def sign_answers(
    folder: str | Path, key: str | Path, passphrase: Passphrase = None, *, overwrite: bool = False
) -> Path:
    """Sign the Data Package of answers that verify.

    Returns:
        The path of the signature.

    Raises:
        InputError: they are signed already, or the key or its passphrase is wrong.
        VerificationError: they are not what their certificate says; nothing was written.
    """
    remove_leftovers(Path(folder))
    target = Path(folder) / SIGNATURE
    if os.path.lexists(target) and not overwrite:
        raise InputError(f"{folder} is already signed; --force replaces its signature")
    private = load_private(key, passphrase)
    verify_answers(folder)
    content = Answers.load(folder).files()[MANIFEST]
    write = write_atomically if overwrite else write_new
    write(target, signed(content, private))
    return target
