"""Layers with book-keeping: affine, masked affine, and embedding.

Book-keeping of a forward pass: which layer was used on what, and what a layer must tell of it.

The gradient of a layer's weight is b a^T summed over rows, with a the layer's input and b the
gradient of the loss at its output. So weights never require gradients; a forward pass with
`Activations` records (layer, input, output), one backward pass to the outputs gives every b, and
both the norm of each unit's gradient and the clipped sum follow from a and b alone (Goodfellow
2015, "Efficient per-example gradient computations", arXiv 1510.01799, for one row; Li et al. 2022,
arXiv 2110.05679, section 4, for several).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from dpsynth.errors import InputError


class Activation(NamedTuple):
    """One use of a layer: input ``[rows, ...]`` and output ``[rows, ...]``."""

    layer: Layer
    inputs: Tensor
    output: Tensor
    versions: tuple[int, int]


class Activations:
    """What a forward pass went through: each layer once."""

    def __init__(self) -> None:
        """Start empty."""
        self.records: list[Activation] = []

    def add(self, layer: Layer, inputs: Tensor, output: Tensor) -> None:
        """Record one use.

        Raises:
            InputError: the layer was already used in this pass. Its gradient would be a sum over
                uses, whose norm does not follow from one input and one output.
        """
        if any(record.layer is layer for record in self.records):
            raise InputError(
                f"{layer} is used twice in one pass; its per-unit gradient norm would be wrong. "
                "Use a second layer, or put both uses into rows of one call"
            )
        versions = (inputs._version, output._version)
        self.records.append(Activation(layer, inputs.detach(), output, versions))

    def check(self) -> None:
        """Refuse activations whose tensors were changed in place since they were recorded.

        Raises:
            InputError: an in-place operation, such as ``relu_``, overwrote an input or an output.
        """
        for record in self.records:
            if (record.inputs._version, record.output._version) != record.versions:
                raise InputError(
                    f"an input or output of {record.layer} was changed in place after the layer "
                    "recorded it; use the operation that returns a new tensor"
                )


class Layer(nn.Module):
    """A layer whose per-unit gradients are read off its inputs and output gradients.

    Attributes:
        width: numbers that it puts out per row.
    """

    width: int

    def declare(self, name: str, value: Tensor) -> None:
        """Register a parameter without a gradient: autograd never builds a weight gradient."""
        self.register_parameter(name, nn.Parameter(value, requires_grad=False))

    def recorded(self, inputs: Tensor, output: Tensor, activations: Activations | None) -> Tensor:
        """Return ``output``, recorded if activations are given."""
        if activations is not None:
            if not output.requires_grad:
                output.requires_grad_()
            activations.add(self, inputs, output)
        return output

    def rows(self, tensor: Tensor, count: int) -> Tensor:
        """View a recorded input, or the gradient at an output, as ``[count, ...]``.

        Raises:
            InputError: the layer was not used exactly once per row of the batch.
        """
        raise NotImplementedError

    def gram(self, inputs: Tensor, grads: Tensor) -> Tensor:
        """Return the inner products of the rows' gradients, ``[units, k, k]``.

        Their sum over a unit's k x k entries is the squared norm of the unit's gradient; their
        diagonal holds the squared norms of its rows.

        Args:
            inputs: ``[units, k, ...]``, as recorded.
            grads: ``[units, k, ...]``, the gradient at the output.
        """
        raise NotImplementedError

    def accumulate(self, inputs: Tensor, grads: Tensor, into: Sequence[Tensor]) -> None:
        """Add the gradient summed over rows to ``into``, one tensor per parameter, in order.

        The sum is made in the precision of ``into``.
        """
        raise NotImplementedError


__all__ = ["Embedding", "Layer", "Linear", "MaskedLinear", "Activations"]

FEW_ROWS = 5  # up to here, products of row pairs are faster than a loop over column groups


TINY = 2.0**-90
"""Added to inner products of rows, because squares below 2^-126 vanish in single precision.

A row of up to 2^12 numbers loses 2^-114 at most. Times the squared norm of a layer's input, that
could be any gradient at all. TINY is 2^24 times as much, so that it exceeds the loss also where the
rows of a unit cancel (see ``ROUNDING``). It never lowers a unit's norm, since a matrix of equal
entries is positive semidefinite. With a layer's input of norm 30 it adds 1e-12 to a norm: nothing
beside a gradient that trains.
"""


def _products(rows: Tensor) -> Tensor:
    """Return inner products of each unit's rows, ``[units, k, k]`` for ``[units, k, width]``."""
    if rows.shape[1] == 1:
        norms: Tensor = torch.linalg.vector_norm(rows, dim=2, keepdim=True)
        return norms.square_().add_(TINY)
    return torch.bmm(rows, rows.transpose(1, 2)).add_(TINY)


class Linear(Layer):
    """An affine map of rows, z = W x + b."""

    weight: nn.Parameter
    bias: nn.Parameter

    def __init__(self, inputs: int, outputs: int, *, generator: torch.Generator) -> None:
        """Draw weights uniformly within 1 / sqrt(inputs) of zero."""
        super().__init__()
        self.width = outputs
        bound = 1.0 / math.sqrt(max(inputs, 1))
        self.declare(
            "weight", torch.empty(outputs, inputs).uniform_(-bound, bound, generator=generator)
        )
        self.declare("bias", torch.empty(outputs).uniform_(-bound, bound, generator=generator))

    def extra_repr(self) -> str:
        """Show the widths."""
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}"

    def effective_weight(self) -> Tensor:
        """Return the matrix that rows are multiplied with, ``[outputs, inputs]``."""
        return self.weight

    def forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        """Map ``[..., inputs]`` to ``[..., outputs]``; record the use if activations are given."""
        z = functional.linear(x, self.effective_weight(), self.bias)
        return self.recorded(x, z, activations)

    def rows(self, tensor: Tensor, count: int) -> Tensor:
        """View ``[..., width]`` as ``[count, width]``."""
        flat = tensor.flatten(0, -2)
        if len(flat) != count:
            raise InputError(
                f"{self} was used on {len(flat)} rows of a batch of {count}; "
                "a layer must be used exactly once per row"
            )
        return flat

    def gram(self, inputs: Tensor, grads: Tensor) -> Tensor:
        """Return (A A^T + 1) o (B B^T): the 1 is the bias."""
        return _products(inputs).add_(1.0).mul_(_products(grads))

    def accumulate(self, inputs: Tensor, grads: Tensor, into: Sequence[Tensor]) -> None:
        """Add B^T A and the column sums of B, in the precision of ``into``."""
        weight, bias = into
        inputs, grads = inputs.to(weight), grads.to(bias)
        weight.addmm_(grads.T, inputs)
        bias.add_(grads.sum(dim=0))


class MaskedLinear(Linear):
    """An affine map in which an output of group g sees only inputs of groups below g.

    With the columns of a table as groups, in order, on both sides, this is a linear autoregressive
    model. A hidden layer takes the outputs' groups for its units; the layer after it then gets
    ``output_groups + 1``, so that group g sees hidden units of group g, which saw inputs below g.
    """

    mask: Tensor

    def __init__(
        self,
        input_groups: npt.ArrayLike,
        output_groups: npt.ArrayLike,
        *,
        generator: torch.Generator,
    ) -> None:
        """Take the group of each input ``[inputs]`` and of each output ``[outputs]``."""
        seen_by = np.asarray(input_groups, dtype=np.int64)
        groups = np.asarray(output_groups, dtype=np.int64)
        super().__init__(len(seen_by), len(groups), generator=generator)
        mask = torch.from_numpy(groups[:, None] > seen_by[None, :])
        self.register_buffer("mask", mask.float(), persistent=False)
        self.weight.data.mul_(self.mask)
        # per distinct output group: its outputs, and the inputs it sees that the one before did not
        labels = np.unique(groups)
        below = np.searchsorted(labels, seen_by, side="right")
        self._steps = [
            (_columns(groups == label), _columns(below == position))
            for position, label in enumerate(labels)
        ]
        self.register_buffer(
            "_sees", torch.from_numpy(labels[None, :] > seen_by[:, None]).float(), persistent=False
        )
        self.register_buffer(
            "_own", torch.from_numpy(labels[None, :] == groups[:, None]).float(), persistent=False
        )

    def effective_weight(self) -> Tensor:
        """Return the weight with zeros where an output must not see an input."""
        return self.weight * self.mask

    def gram(self, inputs: Tensor, grads: Tensor) -> Tensor:
        """Return the sum over output groups of (A_<g A_<g^T + 1) o (B_g B_g^T).

        The plain form over all inputs is wrong here: it counts weights that the mask removes.
        """
        units, k, _ = inputs.shape
        if k <= FEW_ROWS:
            return self._gram_by_pairs(inputs, grads)
        visible = inputs.new_ones(units, k, k)
        total = inputs.new_zeros(units, k, k)
        for outputs, fresh in self._steps:
            newly = inputs[:, :, fresh]
            if newly.shape[2]:
                visible += _products(newly)
            total.addcmul_(visible, _products(grads[:, :, outputs]))
        return total

    def _gram_by_pairs(self, inputs: Tensor, grads: Tensor) -> Tensor:
        """Do the same pair of rows by pair of rows, all groups at once by one matrix product."""
        units, k, _ = inputs.shape
        gram = inputs.new_empty(units, k, k)
        for s in range(k):
            visible = (inputs[:, s : s + 1] * inputs[:, s:]) @ self._tensor("_sees")
            products = (grads[:, s : s + 1] * grads[:, s:]) @ self._tensor("_own")
            products += TINY
            gram[:, s, s:] = gram[:, s:, s] = visible.add_(1.0).mul_(products).sum(dim=2)
        return gram

    def _tensor(self, name: str) -> Tensor:
        tensor: Any = getattr(self, name)
        assert isinstance(tensor, Tensor)
        return tensor

    def accumulate(self, inputs: Tensor, grads: Tensor, into: Sequence[Tensor]) -> None:
        """Add B^T A within the mask: what lies outside is in no unit's norm."""
        weight, bias = into
        inputs, grads = inputs.to(weight), grads.to(bias)
        # where, not a product: a unit's non-finite input that no output sees is in no norm either
        weight.add_(torch.where(self.mask > 0, grads.T @ inputs, 0.0))
        bias.add_(grads.sum(dim=0))


def _columns(chosen: npt.NDArray[np.bool_]) -> slice | Tensor:
    """Return the chosen columns as a slice where they are neighbours, which needs no copy."""
    index = np.flatnonzero(chosen)
    if len(index) == 0:
        return slice(0, 0)
    if index[-1] - index[0] + 1 == len(index):
        return slice(int(index[0]), int(index[-1]) + 1)
    return torch.from_numpy(index)


class Embedding(Layer):
    """A table of vectors, looked up by code."""

    weight: nn.Parameter

    def __init__(self, codes: int, width: int, *, generator: torch.Generator) -> None:
        """Draw the vectors from a standard normal distribution."""
        super().__init__()
        self.width = width
        self.declare("weight", torch.empty(codes, width).normal_(generator=generator))

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}"

    def forward(self, codes: Tensor, activations: Activations | None = None) -> Tensor:
        """Map codes ``[rows]`` or ``[rows, m]``, int64, to ``[rows, (m,) width]``."""
        return self.recorded(codes, functional.embedding(codes, self.weight), activations)

    def rows(self, tensor: Tensor, count: int) -> Tensor:
        """View codes as ``[count, m]``, a gradient as ``[count, m * width]``."""
        if count == 0 or tensor.numel() % count:
            raise InputError(f"{self} was not used on the {count} rows of the batch alike")
        return tensor.reshape(count, -1)

    def gram(self, inputs: Tensor, grads: Tensor) -> Tensor:
        """Return b_s . b_t where the codes are equal, else 0, summed over a row's m codes."""
        units, k = inputs.shape[:2]
        codes = inputs.reshape(units, -1)
        slots = _products(grads.reshape(units, codes.shape[1], self.width))
        slots = slots * (codes[:, :, None] == codes[:, None, :])
        m = codes.shape[1] // k
        return slots.reshape(units, k, m, k, m).sum(dim=(2, 4))

    def accumulate(self, inputs: Tensor, grads: Tensor, into: Sequence[Tensor]) -> None:
        """Add each row's gradient to the vector that it looked up."""
        (weight,) = into
        weight.index_add_(0, inputs.reshape(-1), grads.to(weight).reshape(-1, weight.shape[1]))


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
