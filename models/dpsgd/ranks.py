"""Processes that train one network together: what they tell each other, and nothing else.

``torchrun`` starts them, all on one machine. Rank 0 makes the fit: it alone has the plan, the
ledger and the noise. The other ranks get a part of the units and the public settings of the steps.
Messages are arrays and JSON, by gloo over the loopback device; tensors of CUDA devices go by NCCL.
No message is a pickle.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch import distributed as processes

from dpsynth._util.torchrun import Place
from dpsynth.errors import DpsynthError

READING = timedelta(days=7)  # how long other ranks wait until rank 0 has read the table
END = "end"

Array = npt.NDArray[Any]


class RankLost(DpsynthError):
    """Another process of the same fit has ended before its time."""


class Ranks(Protocol):
    """The processes of one fit, seen from one of them; every call is made by all, in one order.

    Attributes:
        place: of this process.
    """

    place: Place

    def tell(self, words: Mapping[str, Any]) -> None:
        """Send public settings from rank 0 to all others."""
        ...

    def hear(self) -> dict[str, Any]:
        """Return what rank 0 tells."""
        ...

    def send(self, array: Array, rank: int) -> None:
        """Send an array to one rank."""
        ...

    def receive(self, rank: int) -> Array:
        """Return an array that one rank sends."""
        ...

    def add(self, part: Tensor) -> Tensor:
        """Add the parts of all ranks; rank 0 gets the sum, the others nothing to use."""
        ...

    def copy(self, values: Tensor) -> None:
        """Overwrite values with those of rank 0."""
        ...


class TorchRanks:
    """Ranks of PyTorch's process group."""

    def __init__(self, place: Place) -> None:
        """Take the group that `joined` opened."""
        self.place = place
        self.begun = False  # whether the other ranks were told what to do, or that it has ended

    def tell(self, words: Mapping[str, Any]) -> None:
        """Send public settings from rank 0 to all others."""
        self.begun = True
        for rank in range(1, self.place.size):
            self.send(np.frombuffer(json.dumps(words).encode(), np.uint8), rank)

    def hear(self) -> dict[str, Any]:
        """Return what rank 0 tells."""
        heard: dict[str, Any] = json.loads(self.receive(0).tobytes())
        self.begun = True
        return heard

    def send(self, array: Array, rank: int) -> None:
        """Send an array to one rank: the length of its description, the description, its bytes."""
        shape = json.dumps([array.dtype.str, *array.shape]).encode()
        whole = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for part in (np.array([len(shape)]), np.frombuffer(shape, np.uint8), whole):
            if len(part):
                self._call(processes.send, torch.from_numpy(part.copy()), rank)

    def receive(self, rank: int) -> Array:
        """Return an array that one rank sends."""
        length = torch.zeros(1, dtype=torch.int64)
        self._call(processes.recv, length, rank)
        shape = torch.zeros(int(length), dtype=torch.uint8)
        self._call(processes.recv, shape, rank)
        kind, *sizes = json.loads(shape.numpy().tobytes())
        array = np.empty(sizes, np.dtype(kind))
        if array.size:
            whole = array.reshape(-1).view(np.uint8)
            self._call(processes.recv, torch.from_numpy(whole), rank)
        return array

    def add(self, part: Tensor) -> Tensor:
        """Add the parts of all ranks; rank 0 gets the sum, the others nothing to use."""
        self._call(processes.reduce, part, 0)
        return part

    def copy(self, values: Tensor) -> None:
        """Overwrite values with those of rank 0."""
        self._call(processes.broadcast, values, 0)

    def _call(self, what: Callable[..., Any], tensor: Tensor, rank: int) -> None:
        """Do what all ranks do together.

        Raises:
            RankLost: another one is gone. What the library says of it is not shown.
        """
        try:
            what(tensor, rank)
        except RuntimeError:
            lost = "the first process" if self.place.rank else "another process"
            raise RankLost(
                f"{lost} of this fit has ended before its time; torchrun says which, and what it "
                "wrote says why"
            ) from None


@contextmanager
def joined(place: Place) -> Generator[TorchRanks, None, None]:
    """Join the processes that ``torchrun`` started, and leave them at the end.

    Where rank 0 leaves before it told the others what to do, it tells them that there is nothing.
    """
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = loopback
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(place.rank % torch.cuda.device_count())
        backend = "cpu:gloo,cuda:nccl"
    processes.init_process_group(backend, timeout=READING)
    ranks = TorchRanks(place)
    try:
        yield ranks
    finally:
        try:
            if place.rank == 0 and not ranks.begun:
                ranks.tell({"do": END})
        except RankLost:
            pass
        finally:
            processes.destroy_process_group()
