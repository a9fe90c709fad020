"""``dpsynth completion``: a script that completes commands and options in the shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from dpsynth._util.output import write_text


@click.command(epilog='Example:  eval "$(dpsynth completion bash)"   (in ~/.bashrc)')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL."""
    from dpsynth.cli.group import commands

    kind = get_completion_class(shell)
    assert kind is not None
    write_text(kind(commands, {}, "dpsynth", "_DPSYNTH_COMPLETE").source() + "\n")
