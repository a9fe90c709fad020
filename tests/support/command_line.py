"""The commands of dpsynth, for tests that go through all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from dpsynth.cli.group import commands

from .command_outcome import Outcome

BUDGET = ["--dataset", "cohort", "--epsilon", "3", "--delta", "1e-6"]


def every_command(
    group: click.Group, *path: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, *path, name)


COMMANDS = dict(every_command(commands))

PATHS = [" ".join(path) for path in COMMANDS]
Cli = Callable[..., Outcome]
