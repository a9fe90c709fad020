"""The line on a terminal: it moves while nothing is reported, and gives way to other lines."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable

import pytest

from dpsynth.cli import console as progress_line
from dpsynth.cli.console import Console, ProgressLine


class Terminal(io.StringIO):
    """A text stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal of 80 columns in the place of standard error; the line is drawn often.

    No fixture: pytest sets standard error anew before each test.
    """
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(progress_line, "TICK", 0.01)
    return screen


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until the thread that draws has come so far."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_a_stage_that_reports_nothing_still_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with Console(as_json=False, quiet=False) as console:
        console.progress("fit: mixture", 0.0)
        wait_for(lambda: len(set(re.findall(r"\d s [-|/\\]", terminal.getvalue()))) > 2)
        console.progress("fit: mixture", 0.4)
        wait_for(lambda: re.search(r"40%  .*\d s", terminal.getvalue()))
        console.progress("fit: mixture", 1.0)
        wait_for(lambda: re.search(r"100%  +\d+ s [-|/\\]", terminal.getvalue()))
    assert "fit: mixture" in terminal.getvalue()


@pytest.mark.long
def test_the_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is wrapped would be drawn anew below itself, and flood the terminal."""
    terminal = terminal_of(monkeypatch)
    line = ProgressLine(terminal)
    line.show("evaluate: " + "autoregressive " * 10, 3)
    wait_for(lambda: re.search(r"\d s", terminal.getvalue()))
    line.close()
    drawn = re.split(r"[\r\n]", re.sub(r"\x1b\[\S*?[a-zA-Z]", "", terminal.getvalue()))
    assert max(map(len, drawn)) <= 80


def test_results_come_on_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = terminal_of(monkeypatch)
    with Console(as_json=False, quiet=False) as console:
        console.starting()
        console.advice("settings    saved")
        wait_for(lambda: progress_line.UNNAMED in terminal.getvalue())
        console.result("run", {}, ["bundle"])
        text = terminal.getvalue()
        time.sleep(0.05)
        assert terminal.getvalue() == text  # nothing is drawn after the result
    assert text.index("starting") < text.index("settings    saved\n")
    assert "\x1b[2Ksettings" in re.sub(r"\x1b\[\?25[hl]", "", text)  # the line was erased before
    assert capsys.readouterr().out == "bundle\n"


def test_nothing_is_drawn_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    with pytest.raises(KeyboardInterrupt), Console(as_json=False, quiet=False) as console:
        console.progress("reading", 0.1)
        raise KeyboardInterrupt
    text = terminal.getvalue()
    time.sleep(0.05)
    assert terminal.getvalue() == text and text.endswith("\n")


@pytest.mark.parametrize(("as_json", "quiet"), [(True, False), (False, True)])
def test_scripts_see_no_line(monkeypatch: pytest.MonkeyPatch, as_json: bool, quiet: bool) -> None:
    terminal = terminal_of(monkeypatch)
    with Console(as_json=as_json, quiet=quiet) as console:
        console.starting()
        console.progress("reading", 0.5)
        time.sleep(0.05)
    assert terminal.getvalue() == ""


def test_a_log_gets_one_line_a_stage(capsys: pytest.CaptureFixture[str]) -> None:
    with Console(as_json=False, quiet=False) as console:
        console.starting()
        for step in range(100):
            console.progress("reading", step / 100)
        console.progress("fitting", 0.0)
    assert capsys.readouterr().err == "reading ...\nfitting ...\n"
