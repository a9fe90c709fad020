"""The clipping norm of DP-SGD: from rows that cost no privacy, within single precision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd.layers import Layer
from dpsynth.models.dpsgd.parameter_buffer import layers_of
from dpsynth.models.dpsgd.unit_gradients import Loss, UnitGradients, check_units_apart, packs

BLOCK = 1024  # rows that are added at once, at most
PASS = 3 * 2**19  # numbers that layers record in one forward pass: about what a cache holds
PASS_THERE, MOST_THERE = 2**25, 2**16  # of a device beside the host, and rows of such a pass
MIN_NORM, MAX_NORM = 2.0**-40, 2.0**40
"""Clipping norms are from 9e-13 to 1e12. Their squares, the noise of any event, and clipped sums of
any batch are then normal numbers of single precision (2^-126 to 2^128): none vanishes, none
overflows. Below, what makes up for squares that vanish (`models.dpsgd.layers.TINY`) would clip
every unit to less than the norm."""


def clipping_norm_from(
    network: nn.Module,
    loss: Loss,
    batch: Any,
    mask: Tensor,
    quantile: float = 0.95,
    otherwise: float | None = None,
) -> float:
    """Return a quantile of the units' gradient norms on rows that cost no privacy.

    The rows must be public, or drawn from what the plan's events released; from private rows the
    result would be a leak. Where units have several rows, build them from repeated rows: those of
    independent rows have smaller norms than those of one person.

    ``otherwise``, a public number, is returned where no norm is finite, or all but none are next to
    zero. A norm out of the range that `DpSgd` takes is moved to its end.

    Raises:
        InputError: as `layers_of` and `check_units_apart`, or there is no finite norm and nothing
            to return otherwise.
    """
    rows = rows_at_once(layers_of(network).values())
    norms: list[Tensor] = []
    for pack in packs(batch, mask, rows):
        if not norms:
            check_units_apart(loss, pack)
        norms.append(UnitGradients.of(loss, pack).norms())
    finite = torch.cat(norms) if norms else torch.zeros(0)
    finite = finite[torch.isfinite(finite)]
    norm = float(torch.quantile(finite.double(), quantile)) if len(finite) else 0.0
    if norm <= MIN_NORM and otherwise is not None:
        norm = otherwise
    elif not len(finite):
        raise InputError(
            "no unit has a finite, positive gradient norm to take a clipping norm from"
        )
    return min(max(norm, MIN_NORM), MAX_NORM)


def rows_at_once(layers: Iterable[Layer]) -> int:
    """Return how many rows to send through the layers at once: public.

    On the host at most `BLOCK`. Smaller passes reread less memory there: at 128 to 512 wide, 5 to
    15 per cent of a step. A device beside it takes as long for a thousand rows as for many.
    """
    layers = list(layers)
    width = max(1, sum(layer.width for layer in layers))
    if any(one.device.type != "cpu" for layer in layers for one in layer.parameters()):
        return min(MOST_THERE, max(BLOCK, PASS_THERE // width))
    return min(BLOCK, max(256, PASS // width))
