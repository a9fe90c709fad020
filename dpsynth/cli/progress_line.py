"""The line on a terminal that shows what a command does: never still for long.

A thread draws it again twice a second, so that a person sees the seconds pass where the work
itself has nothing to report. A turning sign stands there before the first fraction of a stage and
after its last one; between them, an estimate of the time left. It never shows numbers of rows.
"""

from __future__ import annotations

import shutil
import threading
import time
from typing import Any

import click

from dpsynth._util.output import Drawing
from dpsynth.errors import printable

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
