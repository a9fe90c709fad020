"""What a section of a report is made of, in reading order, and how pages are rendered.

One environment of templates serves all pages. It collects the pictures that a page places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from markupsafe import Markup

from dpsynth._util.strict_json import json_text
from dpsynth.eval.report.formatting import shown


@dataclass
class _Drawings:
    """The pictures of a page, in the order in which the templates place them."""

    specs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, spec: dict[str, Any]) -> int:
        self.specs.append(spec)
        return len(self.specs) - 1

    def json(self) -> Markup:
        """Return the specs as JSON that no text can end early."""
        text = json_text(self.specs, indent=None, separators=(",", ":"))
        for mark in "<>&":
            text = text.replace(mark, f"\\u{ord(mark):04x}")
        return Markup(text)


def render(template: str, **values: Any) -> str:
    """Fill a template of this folder; it also gets ``drawings``, which collects its pictures."""
    return str(_environment().get_template(template).render(drawings=_Drawings(), **values))


@cache
def _environment() -> Any:
    from dpsynth._util.html import environment, said

    env = environment(__package__)
    env.filters |= {
        "said_plain": shown,
        "shown": shown,
        "cell": lambda cell: cell if isinstance(cell, Markup) else said(cell),
        "kind": lambda block: type(block).__name__,
        "anchor": _anchor,
    }
    env.globals |= {"plotly": _plotly}
    return env


def _anchor(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"-{ord(match[0]):x}-", key)


@cache
def _plotly() -> Markup:
    """Return the text of plotly's script; it holds nothing that ends a script early."""
    from plotly.offline import get_plotlyjs

    text = get_plotlyjs()
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        raise ValueError("this version of plotly cannot be put into a page; install another")
    return Markup(text)


Cell = str | Markup  # a text is escaped, whatever is in it; markup is the package's own


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    Attributes:
        text: what it says.
        tone: "plain", "quiet" or "warning".
    """

    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Row:
    """A line of a table; its first cell is its header.

    Attributes:
        cells: as many as the table has columns.
        marked: whether it stands out, in print and by a border too; a cell says why in words.
    """

    cells: tuple[Cell, ...]
    marked: bool = False


@dataclass(frozen=True)
class ReportTable:
    """A table.

    Attributes:
        caption: what it shows.
        head: names of its columns.
        rows: its lines.
        numbers: places of the columns that hold figures, to be set flush.
        key: which explanation of marks stands before it; see `Pictures`.
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    numbers: frozenset[int] = frozenset()
    key: str = ""

    @classmethod
    def of(
        cls, caption: str, head: Sequence[str], rows: Sequence[Row], key: str = ""
    ) -> ReportTable:
        """Make a table all of whose columns but the first hold figures."""
        return cls(caption, tuple(head), tuple(rows), frozenset(range(1, len(head))), key)


@dataclass(frozen=True)
class Chart:
    """A picture that the page draws when it comes into view.

    Attributes:
        title: over the picture.
        label: what it shows, in one sentence: its alternative.
        spec: traces and layout of plotly; see `dpsynth.eval.report.charts`.
        height: in pixels.
        least: width in pixels below which it scrolls in a box of its own.
        most: width in pixels above which it does not grow; 0 for any.
        figures: the title's figures, in words.
        table: the same as a table, to be opened; None where the text beside it has them.
    """

    title: str
    label: str
    spec: dict[str, Any]
    height: int
    least: int = 0
    most: int = 0
    figures: str = ""
    table: ReportTable | None = None


@dataclass(frozen=True)
class Pictures:
    """Pictures side by side.

    Attributes:
        figures: in reading order.
        size: width of each: "small" (three or more in a line), "half" or "wide".
        key: which explanation of marks stands before them: "columns", "errors", "models",
            "pairs", "curves" or none.
    """

    figures: tuple[Chart, ...]
    size: str = "small"
    key: str = ""


@dataclass(frozen=True)
class Expandable:
    """Blocks that open by themselves only in print."""

    title: str
    blocks: tuple[Block, ...]


Block = Paragraph | Heading | ReportTable | Pictures | Expandable


@dataclass(frozen=True)
class Section:
    """A part of a report under one heading.

    Attributes:
        id: its anchor.
        title: its heading.
        finding: the one line that is read while it is closed.
        blocks: its content.
    """

    id: str
    title: str
    finding: str
    blocks: tuple[Block, ...]


def present(sections: Iterable[Section | None]) -> list[Section]:
    """Leave out the sections that have nothing to show."""
    return [section for section in sections if section is not None]
