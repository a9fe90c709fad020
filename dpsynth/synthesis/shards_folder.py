"""Whether the coded rows of a fit are kept on a disk, and where: by public facts alone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pandas as pd

from dpsynth.encoding import is_large
from dpsynth.errors import InputError
from dpsynth.files import scratch_folder
from dpsynth.privacy.pair_statistics.products import PRODUCTS
from dpsynth.synthesis.preparation import Prepared

COUNTING = (
    "independent",
    "mixture",
    "distilled",
)  # generators that ask for no row, only for counts
BATCHED = ("autoregressive", "tvae")  # those that count, and then train on batches of units


def shards_folder(
    data: str | Path | pd.DataFrame,
    prepared: Prepared,
    place: str | Path | None,
    *,
    ranks: bool = False,
    distant: bool = False,
) -> AbstractContextManager[Path | None]:
    """Give a private folder for shards of coded rows, or None if they are read into memory.

    It is made before anything is charged, so that a folder that cannot be written costs nothing.

    Args:
        data: the source; the size of a file is public.
        prepared: the fit, from public facts.
        place: where the folder is made, if somebody asks for one.
        ranks: whether several processes train the network; each has its units in memory.
        distant: whether other machines read the table: they only see a place that is asked for.

    Raises:
        InputError: the generator needs rows in memory, and a place was asked for; or nothing can be
            written there.
    """
    able = COUNTING if ranks else (*COUNTING, *BATCHED)
    counted = prepared.model in able and not prepared.plan.has(PRODUCTS)
    if place is None:
        return scratch_folder() if counted and not distant and is_large(data) else nullcontext()
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
    return scratch_folder(place)
