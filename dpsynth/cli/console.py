"""What commands show: results on stdout, progress on stderr, JSON when asked.

The line on a terminal that shows what a command does: never still for long.

A thread draws it again twice a second, so that a person sees the seconds pass where the work
itself has nothing to report. A turning sign stands there before the first fraction of a stage and
after its last one; between them, an estimate of the time left. It never shows numbers of rows.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from dpsynth._util.output import Drawing, write_json, write_line
from dpsynth.errors import printable

Command = TypeVar("Command", bound=Callable[..., Any])


def output_options(command: Command) -> Command:
    """Add ``--json`` and ``--quiet`` to a command."""
    command = click.option("--json", "as_json", is_flag=True, help="Write one JSON object.")(
        command
    )
    return click.option("--quiet", "-q", is_flag=True, help="Show no progress or advice.")(command)


class Console:
    """Writes results for people or, with ``as_json``, for scripts.

    Progress goes to stderr: where it is a terminal, a line that is never still for
    long, and one line a stage where it is not. It shows shares of bytes or steps and
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


TICK = 0.5  # seconds between two drawings of the line
STARTING, UNNAMED = "starting", "working"  # before the first stage, and between two stages
_ERASED = "\r\x1b[2K\x1b[?25h"  # to the line's start, erase the line, show the cursor
_SIGNS = "|/-\\"
_BAR = (8, 30)  # fewest and most characters of the bar
_REST = 36  # characters beside the label and the bar: brackets, per cent, time left, seconds


class ProgressLine:
    """A line that is drawn on a terminal again and again, until `close`.

    Everything that is written meanwhile goes between `pause` and the next `show`.

    Attributes:
        idle: whether the line is shown, as "working", where no stage is: after `pause`, too.
    """

    def __init__(self, file: Any) -> None:
        """Start the thread; nothing is shown yet."""
        self.idle = False
        self._file: Any = Drawing(file)
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._bar: Any = None
        self._since = time.monotonic()
        self._ticks = 0
        self._thread = threading.Thread(target=self._draw, name="dpsynth-progress", daemon=True)
        self._thread.start()

    def show(self, stage: str, percent: int) -> None:
        """Show a stage and how far it is, 0 to 100; another stage than before gets a new line."""
        with self._lock:
            if self._bar is None or self._bar.stage != stage:
                self.pause()
                self._open(stage)
            if percent > self._bar.pos:
                self._bar.update(percent - self._bar.pos)

    def pause(self) -> None:
        """End the line, if one is shown, so that something else can be written."""
        with self._lock:
            if self._bar is not None and self._bar.stage in (STARTING, UNNAMED):
                self._file.write(_ERASED)
                self._file.flush()
            elif self._bar is not None:
                self._bar.render_finish()
            self._bar = None

    def close(self) -> None:
        """End the line and draw no more."""
        self._closed.set()
        self.pause()

    def _open(self, stage: str) -> None:
        columns = shutil.get_terminal_size().columns - _REST
        label = printable(stage)[: max(_BAR[0], columns - _BAR[0])]
        unmeasured = stage in (STARTING, UNNAMED)
        bar: Any = click.progressbar(
            length=100,
            label=f"{label:<12}",
            file=self._file,
            bar_template="%(label)s  %(info)s" if unmeasured else "%(label)s  [%(bar)s]  %(info)s",
            show_percent=not unmeasured,
            width=max(_BAR[0], min(_BAR[1], columns - len(label))),
            item_show_func=lambda _: self._seconds(),
        )
        self._bar = bar
        bar.stage = stage
        self._since, self._ticks = time.monotonic(), 0
        bar.__enter__()

    def _seconds(self) -> str | None:
        """Say how long the stage has taken so far; with a sign where the bar cannot move."""
        seconds = int(time.monotonic() - self._since)
        if seconds == 0 or self._bar is None:
            return None
        moving = 0 < self._bar.pos < self._bar.length
        return f"{seconds} s" if moving else f"{seconds} s {_SIGNS[self._ticks % len(_SIGNS)]}"

    def _draw(self) -> None:
        """Draw the line again, until it is closed."""
        while not self._closed.wait(TICK):
            with self._lock:
                if self._closed.is_set():
                    return
                if self._bar is None:
                    if self.idle:
                        self._open(UNNAMED)
                    continue
                self._ticks += 1
                if self._bar.pos and not self._bar.finished:
                    self._bar.make_step(0)  # the time left grows while nothing is reported
                self._bar.render_progress()
