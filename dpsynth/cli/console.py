"""What commands show: results on stdout, progress on stderr, JSON when asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from dpsynth._util.output import write_json, write_line
from dpsynth.cli.progress_line import STARTING, ProgressLine

Command = TypeVar("Command", bound=Callable[..., Any])


def output_options(command: Command) -> Command:
    """Add ``--json`` and ``--quiet`` to a command."""
    command = click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")(
        command
    )
    return click.option("--quiet", "-q", is_flag=True, help="Show no progress or advice.")(command)


class Console:
    """Writes results for people or, with ``as_json``, for scripts.

    Progress goes to stderr: where it is a terminal, a line that is never still for long (see
    `progress_line`), and one line a stage where it is not. It shows shares of bytes or steps and
    seconds, never numbers of rows.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        """Keep how to write."""
        self.as_json = as_json
        self.quiet = quiet or as_json
        self._stage = ""
        self._line: ProgressLine | None = None

    def __enter__(self) -> Console:
        """Open; progress may follow."""
        if not self.quiet and sys.stderr.isatty():
            self._line = ProgressLine(sys.stderr)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no half-drawn line behind."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def starting(self) -> None:
        """Show at once on a terminal that a long command is at work; also between its stages.

        Not for commands that ask a question while they run: the line would hide it.
        """
        if self._line is not None:
            self._line.idle = True
            self._line.show(STARTING, 0)

    def progress(self, stage: str, fraction: float) -> None:
        """Show how far a stage is, 0 to 1."""
        if self.quiet:
            return
        if self._line is not None:
            self._line.show(stage, int(100 * min(1.0, fraction)))
        elif stage != self._stage:
            write_line(f"{stage} ...", err=True)
        self._stage = stage

    def _pause(self) -> None:
        """End the line, so that something else can be written."""
        if self._line is not None:
            self._line.pause()
        self._stage = ""

    def result(self, kind: str, values: dict[str, Any], lines: Sequence[str]) -> None:
        """Write the result: a versioned JSON object, or lines for a person."""
        if self._line is not None:
            self._line.idle = False
        self._pause()
        if self.as_json:
            write_json({"kind": f"dpsynth.{kind}", "version": 1, **values})
        else:
            for line in lines:
                write_line(line)

    def advice(self, line: str) -> None:
        """Write a hint for a person, unless ``--quiet``."""
        self._pause()
        if not self.quiet:
            write_line(line, err=True)


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
