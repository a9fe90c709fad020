"""From what a user asks for to an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpsynth._util.engines.dask_engine import DaskEngine
from dpsynth._util.engines.engine import Engine
from dpsynth._util.engines.local import local_engine


def open_engine(
    name: str | None,
    workers: int = 1,
    *,
    paths: Sequence[str | Path] = (),
    folder: Path | None = None,
) -> Engine:
    """Return an engine that is ready.

    Args:
        name: where a cluster listens, ``dask://HOST:PORT``; None for this machine.
        workers: processes of this machine, if there is no cluster.
        paths: files that a cluster has to see.
        folder: into which a cluster writes; None if it writes nothing.

    Raises:
        InputError: the cluster is not there, or cannot do the work; see `DaskEngine.check`.

    >>> open_engine(None, 2)
    <LocalEngine 2 processes>
    """
    if name is None:
        return local_engine(workers)
    engine = DaskEngine(name)
    engine.check(paths, folder)
    return engine
