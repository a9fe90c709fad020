"""What commands show: results on stdout, progress on stderr, JSON when asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def output_options(command: Command) -> Command:
    """Add ``--json`` and ``--quiet`` to a command."""
    command = click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")(
        command
    )
    return click.option("--quiet", "-q", is_flag=True, help="Show no progress or advice.")(command)


class Console:
    """Writes results for people or, with ``as_json``, for scripts.

    Progress goes to stderr: a bar with the time left where it is a terminal, one line a stage
    where it is not. It shows shares of bytes or steps, never numbers of rows.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        """Keep how to write."""
        self.as_json = as_json
        self.quiet = quiet or as_json
        self._stage = ""
        self._bar: Any = None
        self._shown = 0

    def __enter__(self) -> Console:
        """Open; progress may follow."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no half-drawn bar behind."""
        self._close()

    def progress(self, stage: str, fraction: float) -> None:
        """Show how far a stage is, 0 to 1."""
        if self.quiet:
            return
        if stage != self._stage:
            self._close()
            self._stage, self._shown = stage, 0
            if sys.stderr.isatty():
                self._bar = click.progressbar(
                    length=100, label=f"{stage:<12}", file=sys.stderr, show_pos=False
                )
                self._bar.__enter__()
            else:
                click.echo(f"{stage} ...", err=True)
        percent = int(100 * min(1.0, fraction))
        if self._bar is not None and percent > self._shown:
            self._bar.update(percent - self._shown)
        self._shown = max(self._shown, percent)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
        self._stage = ""

    def result(self, kind: str, values: dict[str, Any], lines: Sequence[str]) -> None:
        """Write the result: a versioned JSON object, or lines for a person."""
        self._close()
        if self.as_json:
            click.echo(json.dumps({"kind": f"dpsynth.{kind}", "version": 1, **values}, indent=2))
        else:
            for line in lines:
                click.echo(line)

    def advice(self, line: str) -> None:
        """Write a hint for a person, unless ``--quiet``."""
        self._close()
        if not self.quiet:
            click.echo(line, err=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay out text cells in columns, header first; numbers (by look) to the right."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    right = [
        bool(rows) and all(_is_number(row[i]) for row in rows if row[i]) for i in range(len(header))
    ]
    lines = []
    for number, row in enumerate(cells):
        parts = [
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    return lines


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("-", "").replace("%", "").replace("e", "").isdigit()
