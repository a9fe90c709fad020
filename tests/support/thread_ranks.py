"""Ranks of one fit as threads of this process: what is wrong ends in an error, not in waiting."""

from __future__ import annotations

import json
import queue
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from torch import Tensor

from dpsynth._util.torchrun import Place

T = TypeVar("T")
PATIENCE = 20  # seconds until a rank that is out of step is found out


class ThreadRanks:
    """One rank's end; all of a fit share the same boxes."""

    def __init__(self, place: Place, boxes: Mapping[tuple[int, int], queue.Queue[Any]]) -> None:
        self.place, self._boxes = place, boxes

    def _put(self, kind: str, what: Any, rank: int) -> None:
        self._boxes[self.place.rank, rank].put((kind, what))

    def _get(self, kind: str, rank: int) -> Any:
        came, what = self._boxes[rank, self.place.rank].get(timeout=PATIENCE)
        assert came == kind, f"rank {rank} is out of step: {came}, not {kind}"
        return what

    def tell(self, words: Mapping[str, Any]) -> None:
        for rank in range(1, self.place.size):
            self._put("words", json.loads(json.dumps(words)), rank)

    def hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = self._get("words", 0)
        return heard

    def send(self, array: Any, rank: int) -> None:
        self._put("array", array.copy(), rank)

    def receive(self, rank: int) -> Any:
        return self._get("array", rank)

    def add(self, part: Tensor) -> Tensor:
        if self.place.rank:
            self._put("part", part.clone(), 0)
            return part.fill_(float("nan"))  # nothing to use
        for rank in range(1, self.place.size):
            part = part + self._get("part", rank)
        return part

    def copy(self, values: Tensor) -> None:
        if self.place.rank:
            values.copy_(self._get("values", 0))
            return
        for rank in range(1, self.place.size):
            self._put("values", values.clone(), rank)


def together(size: int, do: Callable[[ThreadRanks], T]) -> list[T]:
    """Let each rank do its part; return what each returned, or raise what was wrong.

    Where one rank fails, the others wait for it: its error is raised, not theirs.
    """
    boxes: Mapping[tuple[int, int], queue.Queue[Any]] = defaultdict(queue.Queue)
    ends = [ThreadRanks(Place(rank, size), boxes) for rank in range(size)]
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(do, end) for end in ends]
    errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, queue.Empty)), errors[0])
    return [future.result() for future in futures]
