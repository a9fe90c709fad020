"""Book-keeping of a forward pass: which layer was used on what, and what a layer must tell of it.

The gradient of a layer's weight is b a^T summed over rows, with a the layer's input and b the
gradient of the loss at its output. So weights never require gradients; a forward pass with
`Activations` records (layer, input, output), one backward pass to the outputs gives every b, and
both the norm of each unit's gradient and the clipped sum follow from a and b alone (Goodfellow
2015, "Efficient per-example gradient computations", arXiv 1510.01799, for one row; Li et al. 2022,
arXiv 2110.05679, section 4, for several).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, nn

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
