"""Groups of commands whose help shows the summary of each command whole.

click cuts a summary that does not fit beside the longest name, and ends it with ``...``. Here it
goes on in the next line instead, however narrow the terminal is.
"""

from __future__ import annotations

import click

_WHOLE = 10_000  # characters: more than any summary has


class HelpfulGroup(click.Group):
    """A group that lists its commands with whole summaries."""

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
