"""Which attacks of other packages an audit runs, as its options choose them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dpsynth.cli.console import Console

if TYPE_CHECKING:
    from dpsynth.assessment.attack_plugins import Plugin


def plugins_for(names: tuple[str, ...], none: bool, tables: bool, console: Console) -> list[Plugin]:
    """Load the attacks of other packages before anything private is read, and name them.

    Raises:
        UsageError: the options contradict each other, or no table is attacked.
    """
    from dpsynth.assessment import load_plugins

    if names and none:
        raise click.UsageError("--plugin and --no-plugins contradict each other: give one")
    if names and not tables:
        raise click.UsageError("--plugin attacks tables: give DATA, --synthetic and --holdout")
    if none or not tables:
        return []
    loaded = load_plugins(names or None)
    for one in loaded:
        console.advice(
            f"Attack of another package: {one.attack.key}, of {one.package} {one.version}; leave "
            "it out by --no-plugins."
        )
    return loaded
