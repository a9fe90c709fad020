"""How far a ledger was seen: its id, and the end of its chain, written down outside of it.

A chain that was cut off, written anew from some record on, or put back from an old backup is sound
in itself. It shows against a mark. Each certificate holds one; so does the work folder of a run,
and, for each place, a note in the state folder of whoever used it last.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.strict_json import check_keys, read_document, text, whole, written
from dpsynth.errors import ArtifactError, BudgetError, InputError
from dpsynth.ledger import default_path

if TYPE_CHECKING:
    from dpsynth.ledger.state import View


@dataclass(frozen=True)
class Mark:
    """A ledger's id, and the number and hash of its last record when it was seen."""

    ledger: str
    number: int
    hash: str

    @classmethod
    def of(cls, view: View) -> Self:
        """Mark how far a ledger has come."""
        return cls(view.id, view.head.number, view.head.hash)

    def difference(self, view: View) -> str | None:
        """Say in which way a ledger is not the one that was seen; None if it is, or has gone on."""
        if view.id != self.ledger:
            return f"it is another ledger: {view.id} instead of {self.ledger}"
        if view.head.number < self.number:
            return (
                f"it ends at record {view.head.number}, but had {self.number}: its end was cut "
                "off, or it was replaced with an old backup"
            )
        record = view.record(self.number)
        if self.number and (record is None or record.hash != self.hash):
            return f"record {self.number} has changed: it or an earlier record was rewritten"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Give the mark in JSON types."""
        return vars(self)

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read what ``to_dict`` gave.

        Raises:
            ArtifactError: it is something else.
        """
        check_keys(document, place, ("ledger", "number", "hash"))
        number = whole(document["number"], f"{place}.number", minimum=0)
        return cls(text(document["ledger"], place), number, text(document["hash"], place))


def require_as_seen(view: View) -> None:
    """Refuse a ledger that is not the one that this user saw at its place; then note how far it is.

    Raises:
        BudgetError: it is another, or shorter, or was written anew.
    """
    difference = other_than_seen(view)
    if difference:
        raise BudgetError(
            f"ledger {view.place} is not as you last saw it: {difference}. What was spent since is "
            "forgotten there: restore the newest ledger. If this one is right: dpsynth ledger "
            "verify --accept"
        )
    note(view)


def other_than_seen(view: View) -> str | None:
    """Say in which way a ledger is not the one that this user saw at its place; None if it is."""
    known = seen_at(view.place)
    return None if known is None else known.difference(view)


def require_never_seen(place: str) -> None:
    """Refuse to make a ledger where this user has seen one, which is gone now.

    Raises:
        InputError: with what to do.
    """
    if (known := seen_at(place)) is not None:
        raise InputError(
            f"ledger {known.ledger} is missing from {place}. Budget spent in it still counts. Put "
            f"it back, or restore it from a backup. To start a new one: dpsynth ledger create "
            f"{place}"
        )


def note(view: View) -> None:
    """Note how far a ledger has come; where nothing can be written, nothing is remembered."""
    path = _path(view.place)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}-{os.getpid()}")  # not worth a flush to the disk
        place = _full(view.place).encode(errors="backslashreplace").decode()  # for people alone
        temporary.write_bytes(written({"place": place} | Mark.of(view).to_dict()))
        os.replace(temporary, path)


def seen_at(place: str) -> Mark | None:
    """Return how far this user last saw a ledger at a place; None if they saw none."""
    path = _path(place)
    with suppress(OSError, ArtifactError):
        document = read_document(path)
        document.pop("place", None)
        return Mark.from_dict(document, str(path))
    return None


def _path(place: str) -> Path:
    name = hashlib.sha256(_full(place).encode(errors="surrogateescape")).hexdigest()[:32]
    return default_path().parent / "seen" / f"{name}.json"


def _full(place: str) -> str:
    """Return a place as it is called from everywhere."""
    return place if "://" in place else os.path.realpath(place)
