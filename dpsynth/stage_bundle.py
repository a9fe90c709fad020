"""The stages that make what leaves the office: the bundle, and the signature of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dpsynth.about import About
from dpsynth.bundle import MANIFEST, PARQUET
from dpsynth.documents import as_object, file_digest, read_document, read_plain_bytes
from dpsynth.drawing import Drawing
from dpsynth.errors import GateError, InputError, Note
from dpsynth.order import Order
from dpsynth.release import release
from dpsynth.run import run_digest
from dpsynth.signature import SIGNATURE, fingerprint, load_private, problem
from dpsynth.signing import sign
from dpsynth.stage import Job
from dpsynth.verify import verify
from dpsynth.work_folder import Record


class Release:
    """The bundle is written, if the public gates let it."""

    name = "release"
    purpose = "write the bundle, if the public gates let it"

    def needed(self, order: Order) -> bool:
        """Always."""
        return True

    def facts(self, order: Order) -> dict[str, Any]:
        """Return the public words."""
        return {"about": _words(order)}

    def result(self, order: Order) -> Path:
        """Return the bundle."""
        return order.bundle

    def complete(self, job: Job, record: Record) -> bool:
        """Whether the bundle is there, holds this run's table, and verifies.

        Raises:
            InputError: it is another bundle.
            VerificationError: it was changed.
        """
        order = job.order
        if not os.path.lexists(order.bundle):
            return False
        job.progress(f"{self.name}: verifying", 0.0)
        verify(order.bundle)
        own = as_object(read_document(order.bundle / MANIFEST).get("dpsynth"), MANIFEST)
        drawing = Drawing.from_dict(own.get("drawing"), f"{MANIFEST}: drawing")
        table = file_digest(order.bundle / PARQUET)
        if (drawing.run_sha256, table) != (run_digest(order.run), file_digest(order.table)):
            raise InputError(f"{order.bundle} is the bundle of another run; choose another output")
        if own.get("about") != _words(order):
            raise InputError(
                f"{order.bundle} says something else about the release than the settings do; "
                "choose another output, with the same work folder"
            )
        return True

    def carry_out(self, job: Job) -> list[Path]:
        """Release the table that was judged."""
        order = job.order
        job.progress(f"{self.name}: bundle", 0.0)
        try:
            release(
                order.run,
                order.bundle,
                table=order.table,
                about=order.settings.about,
                override=job.override,
                ledger=job.ledger,
            )
        except GateError as error:
            error.add_note(
                Note(
                    f"no bundle was written; what was made before is kept in {job.work.path} and "
                    f"{order.internal}, and the same command again goes on from here"
                )
            )
            raise
        return []


class Sign:
    """The office signs the bundle with its own key."""

    name = "sign"
    purpose = "sign the bundle with the office's key"

    def needed(self, order: Order) -> bool:
        """Whether a key is named."""
        return order.settings.key is not None

    def facts(self, order: Order) -> dict[str, Any]:
        """Return nothing: the signature itself tells which key made it."""
        return {}

    def result(self, order: Order) -> Path:
        """Return the signature."""
        return order.bundle / SIGNATURE

    def complete(self, job: Job, record: Record) -> bool:
        """Whether the bundle bears this key's signature.

        Raises:
            InputError: it bears another one.
        """
        order = job.order
        path, key = self.result(order), order.settings.key
        if not path.is_file() or key is None:
            return False
        public = load_private(key, job.passphrase).public_key()
        content = read_plain_bytes(order.bundle / MANIFEST)
        if wrong := problem(content, read_plain_bytes(path), public):
            raise InputError(
                f"{path} {wrong} (SHA-256 of the key: {fingerprint(public)}); replace it with "
                f"dpsynth sign {order.bundle} --key {key} --force, or leave the key out"
            )
        return True

    def carry_out(self, job: Job) -> list[Path]:
        """Verify the bundle once more, and sign its manifest."""
        key = job.order.settings.key
        assert key is not None  # or else the stage is not needed
        job.progress(f"{self.name}: verifying", 0.0)
        sign(job.order.bundle, key, job.passphrase)
        return []


def _words(order: Order) -> dict[str, Any]:
    return (order.settings.about or About()).to_dict()
