"""The weights of a network as plain arrays of a run, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import nn


def arrays_of(network: nn.Module, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Return copies of a network's weights, named ``prefix.`` and their own names."""
    return {
        f"{prefix}.{name}": tensor.detach().numpy().copy()
        for name, tensor in network.state_dict().items()
    }


def load_arrays(network: nn.Module, prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Put the arrays whose names begin with ``prefix.`` into a network.

    Raises:
        RuntimeError: they do not fit the network.
    """
    start = f"{prefix}."
    network.load_state_dict(
        {
            name.removeprefix(start): torch.from_numpy(array.copy())
            for name, array in arrays.items()
            if name.startswith(start)
        }
    )
