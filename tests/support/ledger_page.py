"""The page of a ledger, read as tags, text and pictures."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from dpsynth.ledger import Ledger, exported
from dpsynth.privacy import JointHistograms

SOURCE = "5eed" * 16


class Page(HTMLParser):
    """The tags of a page, its text, and the alternatives of its pictures."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.feed(html)
        self.text = " ".join("".join(self.pieces).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    @property
    def pictures(self) -> list[str]:
        return [attrs["aria-label"] or "" for tag, attrs in self.tags if tag == "svg"]


def events(mu: float = 0.1) -> dict[str, Any]:
    return {"events": [JointHistograms("one-way", 4, 1, 1.0).with_mu(mu).to_dict()]}


def now() -> datetime:
    return datetime.now(UTC)


def read(book: Ledger, folder: Path, **options: Any) -> Page:
    return Page(exported(book, folder / "page.html", html=True, **options).read_text())
