"""The generators by name, a line for each. Looking one up imports its libraries, and only its own.

The generators of dpsynth are in `SPECS`. Another installed package offers one by an entry point of
the group ``dpsynth.generators`` (see `dpsynth.models.outside`). Its full name states the package
and its version, as in ``dpsynth-toy==0.1:toy``: runs, ledgers and certificates hold the full name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from dpsynth._util.outside_names import OutsideName, outside_name
from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dpsynth.models.base import Generator

GROUP = "dpsynth.generators"
_ADAPTER = "dpsynth.models.outside.desk:adapted"


@dataclass(frozen=True)
class GeneratorSpec:
    """All that the rest of dpsynth knows of a generator: what it takes, and what it can do.

    Attributes:
        name: under which it is fitted; the full name where it is of another package.
        description: a line for pages and cards.
        path: of the class that learns one table, ``module:attribute``; empty if none.
        histories: path of the class that learns linked tables; empty if none.
        neural: whether it trains a network by DP-SGD, and can be fitted without privacy.
        measures_pairs: whether it measures pairs of columns, so that their bins must fit in memory.
        preset: path of the function of (level of epsilon, units) that gives the settings of its
            network and its training; empty if it has none.
        resumable: whether a fit keeps checkpoints, and goes on from them.
        in_shards: whether it can be fitted to rows of one table in shards on a disk: it counts
            them, or takes them in batches of units.
        in_warehouse: the same of rows that stay in their database: it only counts them.
        on_device: whether its network of one table trains on a GPU.
        on_ranks: whether several processes train its network of one table together.
        conditional: whether it draws rows of one table under a condition, and completes rows.
        outside: package, version and short name, where it is of another package.
    """

    name: str
    description: str
    path: str = ""
    histories: str = ""
    neural: bool = False
    measures_pairs: bool = True
    preset: str = ""
    resumable: bool = False
    in_shards: bool = False
    in_warehouse: bool = False
    on_device: bool = False
    on_ranks: bool = False
    conditional: bool = False
    outside: OutsideName | None = None

    def training(self, level: int, units: int) -> dict[str, Any]:
        """Return its settings of training, by level of epsilon and public number of units."""
        if not self.preset:
            return {}
        settings: Callable[[int, int], dict[str, Any]] = _attribute(self.preset)
        return settings(level, units)


_HOME = "dpsynth.models.generators"
_HISTORIES = "dpsynth.models.histories"
_PRESETS = "dpsynth.models.presets"
_NETWORK = "noisy counts, then a network trained with noise"
SPECS = (
    GeneratorSpec(
        "independent",
        "noisy counts of each column on its own",
        path=f"{_HOME}.independent:Independent",
        measures_pairs=False,
        in_shards=True,
        in_warehouse=True,
        conditional=True,
    ),
    GeneratorSpec(
        "mixture",
        "a mixture fitted to noisy counts of columns and pairs of columns",
        path=f"{_HOME}.mixture:Mixture",
        in_shards=True,
        in_warehouse=True,
        conditional=True,
    ),
    GeneratorSpec(
        "distilled",
        "noisy counts, then a network that learns from a mixture fitted to them (distilled)",
        path=f"{_HOME}.distilled:Distilled",
        histories=f"{_HISTORIES}:DistilledHistories",
        preset=f"{_PRESETS}:distilled_training",
        in_shards=True,
        in_warehouse=True,
        on_device=True,
        conditional=True,
    ),
    GeneratorSpec(
        "autoregressive",
        f"{_NETWORK} (autoregressive)",
        path=f"{_HOME}.autoregressive:Autoregressive",
        histories=f"{_HISTORIES}.networks:AutoregressiveHistories",
        neural=True,
        preset=f"{_PRESETS}:autoregressive_training",
        resumable=True,
        in_shards=True,
        on_device=True,
        on_ranks=True,
        conditional=True,
    ),
    GeneratorSpec(
        "tvae",
        f"{_NETWORK} (variational autoencoder)",
        path=f"{_HOME}.tvae:Tvae",
        neural=True,
        preset=f"{_PRESETS}:variational_training",
        resumable=True,
        in_shards=True,
        on_device=True,
        on_ranks=True,
        conditional=True,
    ),
    GeneratorSpec(
        "ctgan",
        f"{_NETWORK} (adversarial)",
        path=f"{_HOME}.ctgan:Ctgan",
        neural=True,
        preset=f"{_PRESETS}:adversarial_training",
        resumable=True,
    ),
    GeneratorSpec(
        "cohort",
        "noisy counts of patients, and of the steps from row to row of their histories",
        histories=f"{_HISTORIES}:CohortGenerator",
    ),
    GeneratorSpec(
        "latent",
        "noisy facts that sum patients up, and how their rows follow from them",
        histories=f"{_HISTORIES}.latent.generator:LatentHistories",
        measures_pairs=False,
    ),
)


def names_of(able: Callable[[GeneratorSpec], object]) -> tuple[str, ...]:
    """Return the names of the generators of dpsynth of which something is true.

    >>> names_of(lambda spec: spec.in_warehouse)
    ('independent', 'mixture', 'distilled')
    """
    return tuple(spec.name for spec in SPECS if able(spec))


NAMES = names_of(lambda spec: spec.path)
"""The generators of one table."""
LINKED = names_of(lambda spec: spec.histories)
"""The generators of linked tables."""
KNOWN = names_of(lambda spec: spec.name)
"""All generators of dpsynth."""
COHORT = "cohort"
"""The generator of linked tables that trains no network."""
NETWORK = "autoregressive"
"""The network that is fitted where a network is wanted and none is named."""
AUTO = "auto"
"""Stands for the generator that `presets.choose` picks from public facts."""
DEFAULT = AUTO
DEVICES = ("auto", "cpu", "cuda")
"""Where a network can train."""


def spec_of(name: str) -> GeneratorSpec:
    """Return what is known of a generator.

    Args:
        name: of a generator of dpsynth, or the short or full name of another package's.

    Raises:
        InputError: there is none, or several packages offer one of this short name; or another
            version of its package is installed.
    """
    for spec in SPECS:
        if spec.name == name:
            return spec
    return _spec_of(_entry_point(name))


def check_model(name: str) -> str:
    """Return the full name of a generator; refuse the name of one that there is not.

    Raises:
        InputError: as `spec_of`; the message lists those there are.
    """
    return spec_of(name).name


def model_names() -> tuple[str, ...]:
    """Return the names of all generators, those of other packages by their short names."""
    return (*KNOWN, *sorted({entry.name for entry in _entry_points()}))


def description_of(name: str) -> str:
    """Return a line for pages and cards, also where the generator's package is not installed."""
    outside = outside_name(name)
    if outside is not None:
        return _described(outside)
    return next((spec.description for spec in SPECS if spec.name == name), "a generator")


def generator_class(name: str) -> type[Generator]:
    """Return the generator of one table of that name; one of another package has its adapter.

    Raises:
        InputError: as `check_single`, or the package's module cannot be loaded.
    """
    spec = spec_of(check_single(name))
    if spec.outside is not None:
        return cast("type[Generator]", _attribute(_ADAPTER)(spec, plug_in_of(spec)))
    return cast("type[Generator]", _attribute(spec.path))


def check_single(name: str) -> str:
    """Return the full name of a generator of one table; refuse the name of another one.

    Raises:
        InputError: as `spec_of`, or it is of linked tables only; the message lists those there are.
    """
    spec = spec_of(name)
    if not spec.path:
        raise InputError(
            f"model '{name}' is for linked tables; a single table is learned by "
            f"{', '.join(NAMES)} (or '{AUTO}', which chooses one)"
        )
    return spec.name


def check_linked(name: str) -> str:
    """Return the name of a generator of linked tables; refuse the name of another one.

    Raises:
        InputError: as `spec_of`, or it is of single tables only; the message lists those there are.
    """
    if not spec_of(name).histories:
        raise InputError(
            f"model '{name}' is for a single table; linked tables are learned by "
            f"{', '.join(LINKED)} (or '{AUTO}', which chooses one)"
        )
    return name


def histories_class(name: str) -> Any:
    """Return the generator of linked tables of that name, one of `LINKED`: a `HistoryGenerator`.

    Raises:
        InputError: as `check_linked`.
    """
    return _attribute(spec_of(check_linked(name)).histories)


def plug_in_of(spec: GeneratorSpec) -> Any:
    """Load the class of another package's generator.

    Raises:
        InputError: it cannot be loaded; the message names the kind of error alone.
    """
    try:
        return _entry_point(spec.name).load()
    except InputError:
        raise
    except Exception as error:  # whatever a module does when it is loaded
        raise InputError(
            f"generator '{spec.name}' cannot be loaded ({type(error).__name__}); nothing was "
            "charged. Ask those who maintain its package"
        ) from None


def _attribute(path: str) -> Any:
    module, attribute = path.split(":")
    return getattr(import_module(module), attribute)


def _entry_points() -> tuple[EntryPoint, ...]:
    """List what other packages offer; a name of dpsynth's own is never theirs."""
    return _offered(tuple((place, _changed(place)) for place in sys.path))


@lru_cache(maxsize=1)
def _offered(_: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Look through all packages, once for each state of the places where they are."""
    return tuple(
        entry
        for entry in entry_points(group=GROUP)
        if entry.dist is not None and entry.name not in (*KNOWN, AUTO) and _full_name(entry)
    )


def _changed(place: str) -> int:
    """Return when a folder got or lost an entry, in nanoseconds; 0 if there is none."""
    try:
        return os.stat(place or os.curdir).st_mtime_ns
    except OSError:
        return 0


def _full_name(entry: EntryPoint) -> OutsideName | None:
    assert entry.dist is not None
    return outside_name(f"{entry.dist.name}=={entry.dist.version}:{entry.name}")


def _entry_point(name: str) -> EntryPoint:
    outside = outside_name(name)
    short = name if outside is None else outside.name
    entries = [entry for entry in _entry_points() if entry.name == short]
    full = {str(_full_name(entry)): entry for entry in entries}
    if outside is None and len(full) == 1:
        return entries[0]
    if name in full:
        return full[name]
    if outside is not None:
        versions = [text for text in full if text.startswith(f"{outside.package}==")]
        installed = f"; installed is {versions[0]}" if versions else ", which is not installed"
        raise InputError(f"model '{name}' is of {outside.package} {outside.version}{installed}")
    if full:
        raise InputError(
            f"several packages have a generator '{name}'; name one: {', '.join(sorted(full))}"
        )
    raise InputError(f"model '{name}' does not exist; choose one of {', '.join(model_names())}")


def _spec_of(entry: EntryPoint) -> GeneratorSpec:
    outside = _full_name(entry)
    assert outside is not None
    return GeneratorSpec(str(outside), _described(outside), path=entry.value, outside=outside)


def _described(outside: OutsideName) -> str:
    return (
        f"a generator of the package {outside.package} {outside.version}, which is not part of "
        "dpsynth"
    )
