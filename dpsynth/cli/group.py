"""The command line. Commands import what they need when they run, so that ``--help`` is quick.

Exit codes: 0 done, 1 unexpected, 2 usage, bad input, or an output that cannot be written, 3 a gate
failed, 4 the budget or policy refuses, 5 verification failed, 130 interrupted, 128 and a signal's
number ended by it (143 SIGTERM, 129 SIGHUP, 131 SIGQUIT; 141 where the reader of a pipe ended).

Groups of commands: help with whole summaries, and what was meant by an unknown command.

click cuts a summary that does not fit beside the longest name, and ends it with ``...``. Here it
goes on in the next line instead, however narrow the terminal is. click also looks for a mistyped
command among its neighbours alone; here it is looked for among the commands of all groups.
"""

from __future__ import annotations

import atexit
import difflib
import errno
import gc
import io
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import click
from click.shell_completion import get_completion_class

from dpsynth._util.dependencies import remedy, short_of_memory
from dpsynth._util.environment import require_none_blank
from dpsynth._util.messages import is_text
from dpsynth._util.output import write_line, write_text
from dpsynth._util.torchrun import place_of
from dpsynth._version import __version__
from dpsynth.cli.process import (
    exit_code,
    make_lenient,
    require_running,
    stdout_problem,
    unwind_on_signals,
)
from dpsynth.errors import SPACES, DpsynthError, DpsynthWarning, InputError, Note, printable
from dpsynth.files import described, reason

_WHOLE = 10_000  # characters: more than any summary has
_NEAR = 0.7  # of difflib: how alike a mistyped command is


class HelpfulGroup(click.Group):
    """A group that lists its commands with whole summaries, and knows those of other groups."""

    def sections(self, ctx: click.Context) -> dict[str, list[str]]:
        """Return the names of the commands by the heading under which help lists them."""
        return {"Commands": self.list_commands(ctx)}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of the commands that are not hidden, in columns of one width."""
        width = max(map(len, self.list_commands(ctx)), default=0)
        for heading, names in self.sections(ctx).items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(heading):
                formatter.write_dl(
                    [
                        (name.ljust(width), command.get_short_help_str(_WHOLE))
                        for name, command in commands
                        if command is not None and not command.hidden
                    ]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; of an unknown one, say which command was perhaps meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + _meant(args, ctx), ctx) from None


def _meant(words: list[str], ctx: click.Context) -> str:
    """Say which command was perhaps meant; nothing if none is near.

    A word that is the last one of a command is that command, such as ``check`` of ``schema check``.
    Otherwise it may be misspelt, or joined with the next one, as in ``schema-check``.
    """
    root, word = ctx.find_root(), words[0].lower()
    here = tuple(ctx.command_path.removeprefix(root.command_path).split())
    paths = sorted(_paths(root.command, root), key=lambda path: path[: len(here)] != here)
    meant = [path for path in paths if path[-1] == word]
    spellings: tuple[Callable[[tuple[str, ...]], str], ...] = (lambda path: path[-1], " ".join)
    for spelling in spellings:
        if not meant:
            spelt = {spelling(path): path for path in reversed(paths)}  # those of this group win
            near = difflib.get_close_matches(word, list(spelt), n=1, cutoff=_NEAR)
            meant = [spelt[name] for name in near]
    shown = " or ".join(repr(_called(path, here, root)) for path in meant)
    return f" (did you mean {shown}?)" if meant else ""


def _called(path: tuple[str, ...], here: tuple[str, ...], root: click.Context) -> str:
    """Write a command as it continues a group, or else from the start."""
    if path[: len(here)] == here:
        return " ".join(path[len(here) :])
    return " ".join([root.command_path, *path])


def _paths(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, ...]]:
    """Yield the words of all commands below one."""
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            below = command.get_command(ctx, name)
            if below is not None and not below.hidden:
                yield (name,)
                yield from ((name, *rest) for rest in _paths(below, ctx))


_SECTIONS = {
    "For a first release, in this order": {
        "schema": ("dpsynth.cli.commands.schema", "schema"),
        "run": ("dpsynth.cli.commands.run", "run"),
        "evaluate": ("dpsynth.cli.commands.evaluate", "evaluate"),
        "release": ("dpsynth.cli.commands.release", "release"),
        "verify": ("dpsynth.cli.commands.verify", "verify"),
        "ledger": ("dpsynth.cli.commands.ledger", "ledger"),
    },
    "More steps of a release, one at a time": {
        "plan": ("dpsynth.cli.commands.plan", "plan"),
        "split": ("dpsynth.cli.commands.split", "split"),
        "fit": ("dpsynth.cli.commands.fit", "fit"),
        "rules": ("dpsynth.cli.commands.rules", "rules"),
        "sample": ("dpsynth.cli.commands.sample", "sample"),
        "compare": ("dpsynth.cli.commands.evaluate", "compare"),
        "audit": ("dpsynth.cli.commands.audit", "audit"),
        "keygen": ("dpsynth.cli.commands.signing", "keygen"),
        "sign": ("dpsynth.cli.commands.signing", "sign"),
    },
    "For people who do not program": {
        "office": ("dpsynth.cli.commands.office", "office"),
    },
    "Other results from private data": {
        "stats": ("dpsynth.cli.commands.answers", "stats"),
        "labels": ("dpsynth.cli.commands.answers", "labels"),
        "linkage": ("dpsynth.cli.commands.answers", "linkage"),
        "local": ("dpsynth.cli.commands.answers", "local"),
    },
    "Demo and shell completion": {
        "demo": ("dpsynth.cli.commands.demo", "demo"),
        "completion": ("dpsynth.cli.group", "completion"),
    },
}
_COMMANDS = {name: place for places in _SECTIONS.values() for name, place in places.items()}

_EPILOG = """\
\b
The whole release in one command, which you can interrupt and resume:
  dpsynth run     diabetes130 extract.csv --dataset diabetes --epsilon 3 --delta 1e-6 -o bundle/

\b
The same steps one by one, without evaluation and audit:
  dpsynth plan    diabetes130 --epsilon 3 --delta 1e-6
  dpsynth fit     diabetes130 extract.csv --dataset diabetes --epsilon 3 --delta 1e-6 -o run/
  dpsynth sample  run/ --rows 100000 -o synthetic.parquet
  dpsynth release run/ -o bundle/

Exit codes: 0 success, 1 unexpected error, 2 bad input or output, 3 a gate failed, 4 the budget or
policy refused, 5 verification failed, 130 interrupted, 128 + N ended by signal N.
"""


_NO_MEMORY = (
    "out of memory: raise the limit (ulimit -v), use a machine with more memory, or a schema with "
    "fewer columns"
)


def _end_quickly() -> None:
    """Let Python leave objects alone as it exits: it looks for cycles for seconds, for nothing.

    DuckDB counts its own objects at the end, and writes a page about those that were left.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


atexit.register(_end_quickly)


class _Commands(HelpfulGroup):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def sections(self, ctx: click.Context) -> dict[str, list[str]]:
        return {heading: list(places) for heading, places in _SECTIONS.items()}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        found = super().resolve_command(ctx, args)
        if found[0] != "fit" and place_of().size > 1:
            raise click.UsageError(
                "torchrun starts several processes, and each would do this; only fit shares its "
                "work among them, so leave out torchrun",
                ctx,
            )
        return found


@click.group(
    cls=_Commands, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="dpsynth")
def commands() -> None:
    """Make a synthetic table that you can release from a private table of patients.

    A schema describes the table with public facts. A fit learns from the table under differential
    privacy for patients. A sample or a release draws synthetic rows from the fit alone.
    """
    require_none_blank()


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code.

    An unexpected error shows where it happened, not what it says: a library's message may quote a
    cell. Set DPSYNTH_DEBUG=1 to see it whole.
    """
    make_lenient()
    unwind_on_signals()
    _show_warnings()
    try:
        _require_text(sys.argv[1:] if arguments is None else arguments)
        code = _run(arguments)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        _show(error)
        code = 2
    except DpsynthError as error:
        _say(str(error), error)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort) as stop:
        _say("interrupted", stop.__context__ if isinstance(stop, click.Abort) else stop)
        code = exit_code(stop)
    except Exception as error:
        message = remedy(error.name) if isinstance(error, ModuleNotFoundError) else None
        if short_of_memory(error):
            _say(_NO_MEMORY, error)
            sys.exit(1)
        if message is None and os.environ.get("DPSYNTH_DEBUG"):
            raise
        if message is None and isinstance(error, OSError) and error.errno is not None:
            message = _system_error(error)
        _say(message or _withheld(error), error)
        code = 2 if message else 1
    sys.exit(code or _unshown())


def _require_text(arguments: list[str]) -> None:
    """Refuse names that are not UTF-8, before anything is read or charged: no document holds them.

    Raises:
        InputError: for an argument, or the folder that the command runs in.
    """
    for number, argument in enumerate(arguments, start=1):
        if not is_text(argument):
            raise InputError(
                f"argument {number} ({argument}) is not UTF-8 text; rename the file or folder, or "
                "write the argument in UTF-8"
            )
    with suppress(OSError):
        if not is_text(folder := os.getcwd()):
            raise InputError(
                f"the name of this folder ({folder}) is not UTF-8 text; rename it, or run dpsynth "
                "in another folder"
            )


def _show(error: click.ClickException) -> None:
    """Write a usage error as click words it; no argument in it makes a line of its own."""
    words = io.StringIO()
    error.show(words)
    text = words.getvalue()
    if not isinstance(error, click.exceptions.NoArgsIsHelpError):  # whose message is the help
        text = text.replace(error.message, printable(error.message, "\t" + SPACES))
    write_text(text, err=True)


def _run(arguments: list[str] | None) -> int:
    """Carry out a command; return its exit code."""
    try:
        code = commands.main(arguments, prog_name="dpsynth", standalone_mode=False)
    except (click.Abort, click.ClickException, click.exceptions.Exit, DpsynthError):
        raise  # in words, or interrupted
    except Exception as error:
        require_running(error)
        raise
    return code if isinstance(code, int) else 0


def _show_warnings() -> None:
    """Show dpsynth's own warnings as plain lines; those of libraries as they come."""
    default = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, DpsynthWarning):
            write_line(f"dpsynth: warning: {message}", err=True)
        else:
            default(message, category, *rest, **more)

    warnings.simplefilter("always", DpsynthWarning)
    warnings.showwarning = show


def _unshown() -> int:
    """Say that a result could not be shown; return the exit code, 0 if it was."""
    problem = stdout_problem()
    if problem is None:
        return 0
    if problem.errno == errno.EPIPE:  # as of any program whose reader ended first
        return 141
    _say(
        f"the result could not be written to standard output: {described(problem)}; the command "
        "did everything else",
        None,
    )
    return 2


def _system_error(error: OSError) -> str:
    """Word an error of a file or drive that nothing closer to it has worded.

    The file is not named: a library's name for one may quote a cell. The disk is, if it is full.
    """
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        full = [place for place in (os.getcwd(), tempfile.gettempdir()) if _is_full(place)]
        return (
            f"{reason(error)}; look at the output's disk and at "
            f"{' and '.join(full) or f'{tempfile.gettempdir()} (TMPDIR)'}"
            + (", where none is left" if full else "")
        )
    return (
        f"a file could not be read or written: {described(error)}; check the files that this "
        "command uses and the disk they are on, then try again"
    )


def _is_full(folder: str) -> bool:
    """Whether less than a mebibyte is left on the disk of a folder."""
    return shutil.disk_usage(folder).free < 2**20


def _withheld(error: Exception) -> str:
    """Word an unexpected error by its kind and place alone."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}; "
        "its message is hidden because it may quote private data (DPSYNTH_DEBUG=1 shows it)"
    )


def _say(message: str, error: Any) -> None:
    """Write an error and its notes (such as what was charged) to stderr."""
    write_text(f"dpsynth: {message}\n", err=True)
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, Note):
            write_line(f"dpsynth: {note}", err=True)


@click.command(epilog='Example:  eval "$(dpsynth completion bash)"   (in ~/.bashrc)')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None
    write_text(kind(commands, {}, "dpsynth", "_DPSYNTH_COMPLETE").source() + "\n")
