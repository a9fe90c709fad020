"""Where and how the work of a fit is done: processes, machines, disks, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.models.registry import DEVICES

if TYPE_CHECKING:
    from dpsynth.models.dpsgd import Ranks


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Where and how the work of a fit is done. What is learned and charged does not depend on it.

    Most of it is for a single table. A table in docs/runbook.md says what each generator can do.

    Attributes:
        workers: processes that read a large file at once; None for one for each core where there
            is a large file. They are spawned, so a script that asks for several needs its
            ``if __name__ == "__main__":``.
        engine: a cluster of Dask that reads the file instead, ``dask://HOST:PORT``, and with
            ``shards`` caps and counts rows too; docs/cluster.md says what it has to see. Noise is
            added in this process.
        shards: folder in which coded rows are kept on the disk, in a private folder that is removed
            at the end, and not in memory. Needs a generator that does not ask for all rows at once,
            and no ``ranks``. With ``engine``, all its machines have to see it under the same path.
            If None, this is done for files of 256 MB or more, in the system's folder of temporary
            files, without ``engine``.
        in_warehouse: let the rows stay in their database, DuckDB or PostgreSQL, which codes and
            counts them by SQL. Needs a generator that only counts.
        checkpoints: folder where the fit of a network keeps its state, for its owner alone. After
            a kill, the same call goes on from there, within the same entry of the ledger. It is
            removed at the end. Needs ``output`` and a ledger. Also for linked tables.
        device: where a network trains: ``cpu``, ``cuda``, or ``auto`` for CUDA where there is one.
            The noise is drawn on the processor either way.
        ranks: other processes that take the private steps of a network as well;
            `dpsynth.synthesis.first_of_ranks` gives those that ``torchrun`` started.
        any_memory: try a fit also where it needs more memory than this process can have, about.
            Also for linked tables.

    >>> from dpsynth.tables import simulate
    >>> from dpsynth.synthesis import fit
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
    >>> run = fit(
    ...     simulate(200, seed=1),
    ...     "demo",
    ...     model="mixture",
    ...     execution=Execution(shards="coded", any_memory=True),
    ...     **budget,
    ... )
    >>> run.model
    'mixture'
    """

    workers: int | None = 1
    engine: str | None = None
    shards: str | Path | None = None
    in_warehouse: bool = False
    checkpoints: str | Path | None = None
    device: str = "cpu"
    ranks: Ranks | None = None
    any_memory: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be done anywhere.

        Raises:
            InputError: there is no such device, or rows are to be in two places.
        """
        if self.device not in DEVICES:
            raise InputError(f"device must be one of {', '.join(DEVICES)}, not {self.device!r}")
        if self.workers is not None and self.workers < 1:
            raise InputError(
                f"workers is {self.workers}; give at least 1, or None for one for each core"
            )
        if self.in_warehouse and (self.shards is not None or self.engine is not None):
            raise InputError(
                "rows that stay in a warehouse need neither engine nor shards; leave them out"
            )

    def __repr__(self) -> str:
        """Name the device: a folder may name a person."""
        return short_repr(self, f"device {self.device}")
