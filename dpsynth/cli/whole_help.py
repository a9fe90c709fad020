"""Groups of commands: help with whole summaries, and what was meant by an unknown command.

click cuts a summary that does not fit beside the longest name, and ends it with ``...``. Here it
goes on in the next line instead, however narrow the terminal is. click also looks for a mistyped
command among its neighbours alone; here it is looked for among the commands of all groups.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator

import click

_WHOLE = 10_000  # characters: more than any summary has
_NEAR = 0.7  # of difflib: how alike a mistyped command is


class HelpfulGroup(click.Group):
    """A group that lists its commands with whole summaries, and knows those of other groups."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of the commands that are not hidden."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(_WHOLE)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

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
