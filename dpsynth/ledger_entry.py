"""What a ledger holds: a fit's entry with its history, and the sum of entries."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Status:
    """What an entry became, and when (UTC): ``reserved``, ``charged`` or ``failed``."""

    at: str
    status: str
    note: str


@dataclass(frozen=True)
class Entry:
    """One fit on a dataset, as the ledger knows it."""

    id: str
    dataset: str
    at: str
    who: str
    purpose: str
    model: str
    schema_hash: str
    epsilon: float
    delta: float
    plan: dict[str, Any]
    allow_refuse: bool
    history: tuple[Status, ...]

    @property
    def status(self) -> str:
        """The latest status."""
        return self.history[-1].status

    @property
    def note(self) -> str:
        """The note of the latest status."""
        return self.history[-1].note

    def to_dict(self) -> dict[str, Any]:
        """Give the entry in plain JSON values."""
        document = asdict(self) | {"status": self.status, "note": self.note}
        document["history"] = [asdict(status) for status in self.history]
        return document


@dataclass(frozen=True)
class Spent:
    """What all entries of a dataset have spent together, by basic composition."""

    fits: int
    epsilon_sum: float
    delta_sum: float
