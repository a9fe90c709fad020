"""``dpsynth keygen`` and ``dpsynth sign``: the office's key, and its signature of a bundle.

What is open before a bundle is signed: in the bundle itself, and in the internal results.

Nothing here decides. The internal points were computed from real rows, and stay on the terminal of
the person who signs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsynth._util.environment import variable
from dpsynth._util.formatting import shown
from dpsynth.cli.console import Console, output_options
from dpsynth.errors import DpsynthError, InputError

if TYPE_CHECKING:
    from dpsynth.bundle.format import Audits
    from dpsynth.bundle.format.audits import PublicAudit


VARIABLE = "DPSYNTH_KEY_PASSPHRASE"
SHORT = 12  # characters of a passphrase


@click.command(epilog="Example:  dpsynth keygen office.key")
@click.argument("output", type=click.Path())
@click.option(
    "--no-passphrase", is_flag=True, help="Do not encrypt the key; protect it in another way."
)
@output_options
def keygen(output: str, no_passphrase: bool, as_json: bool, quiet: bool) -> None:
    """Make a key pair to sign bundles with.

    OUTPUT is the private key and OUTPUT.pub the public key. The private key is encrypted with a
    passphrase from DPSYNTH_KEY_PASSPHRASE or a hidden prompt. Both files are PEM, which openssl can
    read. Existing files are never overwritten.
    """
    from dpsynth.bundle.format import check_key_place, create_key, fingerprint, load_public

    with Console(as_json=as_json, quiet=quiet) as console:
        check_key_place(output)
        phrase = None if no_passphrase else ask_passphrase(new=True)
        private, public = create_key(output, phrase)
        digest = fingerprint(load_public(public))
        values = {
            "private": str(private),
            "public": str(public),
            "fingerprint": digest,
            "encrypted": not no_passphrase,
        }
        protection = "unencrypted" if no_passphrase else "encrypted"
        lines = [
            f"private     {private}: {protection}; share it with nobody, and keep a safe copy",
            f"public      {public}: publish it where your readers trust its origin",
            f"SHA-256     {digest}",
        ]
        console.result("keygen", values, lines)
        if phrase is not None and len(phrase) < SHORT:
            console.advice(
                f"The passphrase has fewer than {SHORT} characters, so anyone who copies the file "
                "can guess it. Make a new key with a longer passphrase."
            )
        console.advice(f"Next: dpsynth sign bundle/ --key {private}")


@click.command(epilog="Example:  dpsynth sign bundle/ --key office.key")
@click.argument("bundle", type=click.Path())
@click.option("--key", required=True, type=click.Path(), help="The office's private key.")
@click.option("--force", is_flag=True, help="Replace an existing signature.")
@click.option("--internal", type=click.Path(), help="Internal results; default: BUNDLE.internal.")
@output_options
def sign(
    bundle: str, key: str, force: bool, internal: str | None, as_json: bool, quiet: bool
) -> None:
    """Name what is open, verify BUNDLE, then sign it.

    Before it signs, the command names what is open: gates that were overridden, attacks that could
    have seen no leak, and the reasons that the INTERNAL results give against a release. It decides
    nothing.

    The signature covers the manifest, and through it all files. The signature is
    datapackage.json.sig. Anyone with the public key can check it with dpsynth verify or with
    openssl. If the bundle fails verification, it is not signed and the exit code is 5.
    """
    from dpsynth.bundle import sign as sign_bundle
    from dpsynth.stats import is_answers, sign_answers

    with Console(as_json=as_json, quiet=quiet) as console:
        if is_answers(bundle):
            if internal is not None:
                raise click.UsageError("statistics have no internal results; leave out --internal")
            written = sign_answers(bundle, key, lambda: ask_passphrase(new=False), overwrite=force)
            console.result("sign", {"bundle": bundle, "signature": str(written)}, [f"{written}"])
            return
        points = OpenPoints.of(bundle, internal)

        def tell() -> None:
            for line in points.lines():
                console.advice(line)

        signature = sign_bundle(
            bundle, key, lambda: ask_passphrase(new=False), overwrite=force, before=tell
        )
        values = {"bundle": bundle, "signature": str(signature), "open": points.to_dict()}
        console.result("sign", values, [f"{signature}"])
        console.advice(f"Check it anywhere: dpsynth verify {bundle} --key {key}.pub")


def ask_passphrase(*, new: bool) -> str:
    """Take a passphrase from the environment, or ask for it where somebody can answer."""
    if (passphrase := variable(VARIABLE)) is not None:
        return passphrase
    if not sys.stdin.isatty():
        remedy = f"set {VARIABLE}, or run this command in a terminal"
        if new:
            remedy += "; use --no-passphrase for a key without one"
        raise InputError(f"the key needs a passphrase: {remedy}")
    answer: str = click.prompt(
        "Passphrase of the key",
        hide_input=True,
        confirmation_prompt="Repeat the passphrase" if new else False,
        err=True,
    )
    return answer


@dataclass(frozen=True)
class OpenPoints:
    """What a person should have read before signing.

    Attributes:
        public: what the bundle itself shows, a sentence each.
        internal: what the internal results say, a sentence each.
    """

    public: tuple[str, ...]
    internal: tuple[str, ...]

    @classmethod
    def of(cls, bundle: str | Path, internal: str | Path | None) -> OpenPoints:
        """Read a bundle and its internal results; what cannot be read is left to verification.

        Args:
            bundle: its folder.
            internal: the folder of its internal results; default: beside it, ``BUNDLE.internal``.
        """
        folder = Path(bundle)
        if not folder.is_dir():
            return cls((), ())
        named = Path(os.path.abspath(folder)) if folder.name in ("", "..") else folder
        beside = named.with_name(f"{folder.resolve().name}.internal")
        place = beside if internal is None else Path(internal)
        try:
            return cls(tuple(_public(folder)), tuple(_internal(folder, place)))
        except (DpsynthError, OSError, KeyError, TypeError, AttributeError, ValueError):
            return cls((), (f"{place} or the bundle could not be read",))

    def lines(self) -> list[str]:
        """Lay them out for a terminal."""
        if not self.public and not self.internal:
            return []
        points = [f"in the bundle: {one}" for one in self.public]
        points += [f"internal: {one}" for one in self.internal]
        return ["Open before signing:", *(f"  - {shown(point)}" for point in points)]

    def to_dict(self) -> dict[str, Any]:
        """Give them in JSON types."""
        return {"public": list(self.public), "internal": list(self.internal)}


def _public(folder: Path) -> list[str]:
    from dpsynth._util.strict_json import read_document
    from dpsynth.bundle.format import read_audits
    from dpsynth.bundle.format.layout import PRIVACY

    certificate = read_document(folder / PRIVACY)
    points = [
        f"the gate '{override['gate']}' was overridden by {override['by']}: {override['reason']}"
        for override in certificate.get("overrides") or []
    ]
    return points + _audits(read_audits(folder))


def _audits(audits: Audits | None) -> list[str]:
    if audits is None:
        return ["the training was not audited"]
    return [point for audit in audits.audits for point in _audits_of(audit)]


def _audits_of(audit: PublicAudit) -> list[str]:
    from dpsynth.bundle.pages.audit_cards import attackers

    blind = [f"{one.sees}: {one.blind}" for one in attackers(audit) if one.blind]
    return [*audit.failures, *blind]


def _internal(folder: Path, place: Path) -> list[str]:
    from dpsynth._util.strict_json import read_document
    from dpsynth.assessment.results_folder import AUDIT, EVALUATION, HISTORIES, PAGE
    from dpsynth.eval.report import answer

    paths = [place / name for name in (EVALUATION, HISTORIES, AUDIT)]
    flat, histories, audit = (dict(read_document(p)) if p.is_file() else None for p in paths)
    evaluation = flat if histories is None else histories
    if evaluation is None and audit is None:
        return [f"no results at {place}; name their folder (--internal), or evaluate and audit"]
    known = [sha for one in (evaluation, audit) if one and (sha := _table(one)) is not None]
    if not set(known) <= _digests(folder):
        return [f"{place} is about another table than the bundle's"]
    verdict = answer(evaluation, audit)
    if verdict.decision == "release":
        return []
    return [f"{verdict.headline} ({place / PAGE})", *verdict.reasons]


def _digests(folder: Path) -> set[str]:
    """Return the digests by which results may name the tables of a bundle.

    One table is its Parquet file; a cohort is all of its files of one kind, by table.
    """
    from dpsynth._util.strict_json import digest, file_digest
    from dpsynth.bundle.format.layout import PARQUET

    if (folder / PARQUET).is_file():
        return {file_digest(folder / PARQUET)}
    kinds = [sorted((folder / PARQUET).parent.glob(f"*{kind}")) for kind in (".csv", ".parquet")]
    return {digest({path.stem: file_digest(path) for path in paths}) for paths in kinds}


def _table(document: Mapping[str, Any]) -> str | None:
    """Return the SHA-256 of the table that a document is about, if it names one."""
    about = (document.get("tables") or {}).get("synthetic") or document.get("not_done") or {}
    return about.get("sha256")
