"""Whether the coded rows of a fit are kept on a disk, and where: by public facts alone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from dpsynth.encoding import is_large
from dpsynth.errors import InputError
from dpsynth.files import scratch_folder
from dpsynth.privacy.pair_statistics import PRODUCTS
from dpsynth.synthesis.preparation import Prepared
from dpsynth.tables import NamedSource

COUNTING = (
    "independent",
    "mixture",
    "distilled",
)  # generators that ask for no row, only for counts
CODE_BYTES = 2
BATCHED = ("autoregressive", "tvae")  # those that count, and then train on batches of units


def shards_folder(
    data: NamedSource,
    prepared: Prepared,
    place: str | Path | None,
    *,
    rows: int,
    ranks: bool = False,
    distant: bool = False,
) -> AbstractContextManager[Path | None]:
    """Give a private folder for shards of coded rows, or None if they are read into memory.

    It is made before anything is charged, so that a folder that cannot be written costs nothing.

    Args:
        data: the source; the size of a file is public.
        prepared: the fit, from public facts.
        place: where the folder is made, if somebody asks for one.
        rows: as many as the schema declares; their shards have to have room on the disk.
        ranks: whether several processes train the network; each has its units in memory.
        distant: whether other machines read the table: they only see a place that is asked for.

    Raises:
        InputError: the generator needs rows in memory, and a place was asked for; or nothing can be
            written there.
    """
    able = COUNTING if ranks else (*COUNTING, *BATCHED)
    counted = prepared.model in able and not prepared.plan.has(PRODUCTS)
    if place is None:
        if counted and not distant and is_large(data):
            return scratch_folder(room=_room(prepared, rows))
        return nullcontext()
    if prepared.model not in (*COUNTING, *BATCHED):
        raise InputError(
            f"model '{prepared.model}' needs its rows in memory: for shards, choose one of "
            f"{', '.join((*COUNTING, *BATCHED))}"
        )
    if prepared.model not in able:
        raise InputError(
            "processes of torchrun keep their units in memory; leave out the folder for shards"
        )
    if not counted:
        raise InputError(
            "so few units are fitted by numbers about all pairs at once, which need the rows in "
            "memory; leave out the folder for shards"
        )
    return scratch_folder(place, _room(prepared, rows))


def _room(prepared: Prepared, rows: int) -> int:
    """Return the bytes that the shards may take: a public fact.

    A row is written once as it is dealt, with its unit and its order (24 bytes), once in a place
    among its unit's rows, which may be half empty, and once for batches; a code takes two bytes.
    """
    return rows * (24 + 4 * CODE_BYTES * len(prepared.domain.features))
