"""Gradients of units: their exact norms and their weighted sum, without forming any of them.

A unit is everything that one person contributed to a batch: up to k rows. Its gradient is the sum
over its rows, and clipping needs the norm of that sum. Clipping row by row would let a unit of k
equal rows move the model k times as far as the noise hides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from dpsynth.errors import InputError
from dpsynth.models.dpsgd.device import moved
from dpsynth.models.dpsgd.layers import Activations, Layer

Loss = Callable[[Any, Activations], Tensor]
WHOLE = slice(None)
ROUNDING = 4e-6  # relative float32 error of a squared norm; at most 7e-7 seen, widths to 2048


@dataclass(frozen=True)
class Pack:
    """Rows of a batch without padding; units with equally many rows lie side by side.

    Attributes:
        batch: what the loss gets: ``[units, k, ...]`` where nothing was padded, else
            ``[rows, 1, ...]``.
        weights: weight of each row's loss, shaped as the losses.
        groups: (units, rows of each of them), in the order in which the rows are laid out.
        order: position in the whole batch of each unit laid out.
    """

    batch: Any
    weights: Tensor
    groups: tuple[tuple[int, int], ...]
    order: Tensor

    @property
    def rows(self) -> int:
        """Number of rows that are not padding."""
        return self.weights.numel()

    def blocks(self, maximum: int) -> Iterator[slice]:
        """Cut the laid-out rows into blocks of so many, or into one where few go beyond it."""
        longest = max(k for _, k in self.groups)
        size = self.rows if self.rows < maximum + longest else maximum
        for start in range(0, self.rows, size):
            yield slice(start, start + size)

    def per_row(self, values: Tensor) -> Tensor:
        """Repeat a value per laid-out unit for each of its rows, ``[rows, 1]``."""
        parts = torch.split(values, [units for units, _ in self.groups])
        repeated = [
            part[:, None].expand(-1, k).reshape(-1, 1)
            for part, (_, k) in zip(parts, self.groups, strict=True)
        ]
        return repeated[0] if len(repeated) == 1 else torch.cat(repeated)


def packs(batch: Any, mask: Tensor, maximum: int) -> Iterator[Pack]:
    """Yield the units of a batch that have a row, in equal packs of about ``most`` rows at most.

    Args:
        batch: a tensor ``[units, k, ...]``, or a tuple of such tensors.
        mask: ``[units, k]``; False or 0 is padding, another number weighs the row's loss.
        maximum: rows in a pack; a single unit may have more.

    Raises:
        InputError: a tensor of the batch does not begin with the mask's shape.
    """
    parts = batch if isinstance(batch, tuple) else (batch,)
    device = parts[0].device  # the mask is on the host, where rows are packed
    for part in parts:
        if mask.dim() != 2 or part.shape[:2] != mask.shape:
            raise InputError(
                f"batch {list(part.shape)} and mask {list(mask.shape)} must both begin with "
                "[units, rows]"
            )
    units, k = mask.shape
    weights = mask.to(torch.float32)
    present = weights != 0
    counts = present.sum(dim=1)
    passes = max(1, math.ceil(int(counts.sum()) / maximum))
    if bool((counts == k).all()):  # no padding: slices of the batch as it is
        size = max(1, math.ceil(units / passes))
        for start in range(0, units if k else 0, size):
            here = slice(start, min(start + size, units))
            order = torch.arange(here.start, here.stop)
            there = moved(weights[here], device)
            yield Pack(take(batch, here), there, ((len(order), k),), order)
        return
    order = torch.argsort(counts, stable=True)[int((counts == 0).sum()) :]
    maximum = max(1, math.ceil(int(counts.sum()) / passes))
    numbers = (counts[order].cumsum(0) - 1) // maximum
    cuts = torch.unique_consecutive(numbers, return_counts=True)[1].tolist()
    for some in torch.split(order, cuts):
        sizes, times = torch.unique_consecutive(counts[some], return_counts=True)
        rows = (some[:, None] * k + torch.arange(k, device=mask.device))[present[some]]
        yield Pack(
            take(by_row(batch), moved(rows, device)),
            moved(weights.flatten()[rows][:, None], device),
            tuple(zip(times.tolist(), sizes.tolist(), strict=True)),
            some,
        )


def take(batch: Any, index: slice | Tensor) -> Any:
    """Index a tensor, or each tensor of a tuple, along the first axis."""
    return tuple(part[index] for part in batch) if isinstance(batch, tuple) else batch[index]


def by_row(batch: Any) -> Any:
    """View ``[units, k, ...]`` as ``[rows, 1, ...]``."""
    return tuple(map(by_row, batch)) if isinstance(batch, tuple) else batch.flatten(0, 1)[:, None]


@dataclass(frozen=True)
class UnitGradients:
    """The gradients of a batch's units, as inputs and output gradients of the layers.

    Attributes:
        layers: the layers, each once.
        inputs: per layer ``[rows, ...]``.
        grads: per layer ``[rows, ...]``; may share memory with each other: never written to.
        pack: how rows belong to units.
    """

    layers: Sequence[Layer]
    inputs: Sequence[Tensor]
    grads: Sequence[Tensor]
    pack: Pack

    @classmethod
    def of(cls, loss: Loss, pack: Pack, weights: Tensor | None = None) -> UnitGradients:
        """Run the loss forward and backward once.

        Args:
            loss: maps a batch and activations to one loss per row. The loss of a row reads that row
                and public things only.
            pack: a batch with at least one row.
            weights: in place of the pack's, for checks.

        Raises:
            InputError: the loss does not return one value per row, or changed tensors in place.
        """
        activations = Activations()
        with torch.enable_grad():
            losses = loss(pack.batch, activations)
        if losses.shape != pack.weights.shape:
            raise InputError(
                f"the loss must return one value per row, {list(pack.weights.shape)}, "
                f"not {list(losses.shape)}"
            )
        activations.check()
        layers = [record.layer for record in activations.records]
        outputs = [record.output for record in activations.records]
        grads = torch.autograd.grad(
            losses,
            outputs,
            pack.weights if weights is None else weights,
            allow_unused=True,
            materialize_grads=True,
        )
        inputs = [record.layer.rows(record.inputs, pack.rows) for record in activations.records]
        flat = [layer.rows(b, pack.rows) for layer, b in zip(layers, grads, strict=True)]
        return cls(layers, inputs, flat, pack)

    def squares(self) -> tuple[Tensor, Tensor]:
        """Return, per laid-out unit, the squared norm and the squared sum of its rows' norms.

        Squares that vanish in single precision are made up for, see `models.dpsgd.layers.TINY`;
        those that overflow are infinite.
        """
        squares, spreads = [], []
        start = 0
        for units, k in self.pack.groups:
            part = slice(start, start + units * k)
            start = part.stop
            gram = torch.zeros((), device=self.pack.weights.device)
            for layer, a, b in zip(self.layers, self.inputs, self.grads, strict=True):
                gram = gram + layer.gram(
                    a[part].view(units, k, a.shape[1]), b[part].view(units, k, b.shape[1])
                )
            diagonal = gram.diagonal(dim1=1, dim2=2)
            squares.append(gram.sum(dim=(1, 2)))
            spreads.append(diagonal.clamp(min=0.0).sqrt().sum(dim=1).square())
        return torch.cat(squares), torch.cat(spreads)

    def norms(self) -> Tensor:
        """Return the norm of each laid-out unit's gradient, ``[units]``."""
        return self.squares()[0].clamp(min=0.0).sqrt()

    def factors(self, clipping_norm: float) -> Tensor:
        """Return what clips each laid-out unit's gradient to norm C; 0 where it is not finite.

        Where the rows of a unit nearly cancel, rounding can make a large gradient look small, so
        the norm is taken at the upper end of its rounding error.
        """
        squares, spreads = self.squares()
        upper = (squares.clamp(min=0.0) + ROUNDING * spreads).sqrt()
        finite = torch.isfinite(squares) & torch.isfinite(upper)
        return torch.where(finite, (clipping_norm / upper).clamp(max=1.0), 0.0)

    def add_to(
        self,
        into: Mapping[Layer, Sequence[Tensor]],
        factors: Tensor | None = None,
        block: slice = WHOLE,
    ) -> None:
        """Add the sum of the units' gradients, each times its factor, to the layers' buffers.

        Args:
            into: buffers of each layer.
            factors: of each laid-out unit; 1 without.
            block: laid-out rows that are added; all of them, unless it says otherwise.
        """
        rows = None if factors is None else self.pack.per_row(factors)[block]
        lost = rows is not None and (rows.device.type != "cpu" or bool((rows == 0).any()))
        for layer, inputs, grads in zip(self.layers, self.inputs, self.grads, strict=True):
            a, b = inputs[block], grads[block]
            if rows is not None:
                b = b * rows
            if rows is not None and lost:  # 0 * nan is nan: what is lost must not be multiplied
                b = torch.where(rows != 0, b, 0.0)
                a = torch.where(rows != 0, a, 0.0) if a.is_floating_point() else a
            layer.accumulate(a, b, into[layer])


def check_units_apart(loss: Loss, pack: Pack) -> None:
    """Refuse a loss in which one unit's value depends on another unit of the batch.

    Weighs some laid-out units by zero: the gradient at their rows must then be zero, in every
    layer. Which, follows the bits of a unit's number and their complements, so that every unit is
    once weighed while any other one is not. Runs on public or synthetic rows. What reaches other
    units without a gradient, such as detached statistics of the batch, is not found.

    Raises:
        InputError: batch statistics, attention over the batch, or a mean over rows mix units.
    """
    numbers = torch.arange(len(pack.order))
    for bit, value in product(range(max(1, (len(numbers) - 1).bit_length())), (0, 1)):
        rows = pack.per_row(((numbers >> bit) % 2 == value).to(pack.weights))
        gradients = UnitGradients.of(loss, pack, pack.weights * rows.reshape(pack.weights.shape))
        for layer, grads in zip(gradients.layers, gradients.grads, strict=True):
            unweighed = grads[rows[:, 0] == 0]  # a unit of no numbers has none for a gradient
            if bool(((unweighed != 0) & torch.isfinite(unweighed)).any()):
                raise InputError(
                    f"the loss mixes units of a batch: the gradient of one unit reaches {layer} "
                    "at the rows of another, so clipping by unit bounds nothing. Remove batch "
                    "statistics and sums over the batch"
                )
