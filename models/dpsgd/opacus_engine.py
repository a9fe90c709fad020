"""DP-SGD of any torch network: per-row gradients by Opacus, all the rest as the exact engine does.

The exact engine knows three kinds of layers and never forms a gradient. This one takes any network
whose layers Opacus has per-sample gradients for (convolutions, attention and recurrent layers of
``opacus.layers``, norms of one row), and forms them: ``rows * parameters`` numbers for each pass.
Plan, Poisson sampling, noise from `Entropy`, steps, divisor and optimizer are those of `DpSgd`,
which this class extends; it replaces the clipped sum of a block alone.

**Clipping by unit.** Opacus gives one gradient g_r for each row, of the row's weighted loss. The
gradient of a unit is G_u = sum of g_r over its rows, added in float64, and the factor
min(1, C / |G_u|) is taken from the norm of that very sum, in float64 and rounded down. So a unit
adds a vector of norm at most C, also where its rows cancel. Clipping each row instead would let a
unit of k equal rows move the sum by k C (P20).

**Rounding of the sum** (P22). Units are added as in `DpSgd`: blocks of at most `BLOCK` units by one
matrix product in float64, the blocks by Kahan's summation. The absolute terms have a norm of at
most A C for A units, and the derivation in `models.dpsgd.optimizer` holds with the same `MARGIN`;
here a unit counts once however many rows it has, because its rows are added before it is clipped.

**Rows apart.** A gradient by row is that of the row's loss only if no row reads another one.
`check_rows_apart` compares the gradients that Opacus gives within a batch with those of each row
alone, on rows that cost no privacy. A network that mixes rows, or uses a weight where no hook sees
it, is refused. A network that mixes rows only for certain values can pass this check.

Source: Abadi et al. 2016, algorithm 1; Yousefpour et al., Opacus, arXiv 2109.12298, section 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd.clipping_norm import BLOCK, MAX_NORM, MIN_NORM
from dpsynth.models.dpsgd.optimizer import DpSgd, Loss
from dpsynth.models.dpsgd.unit_gradients import Pack, by_row, packs, take

if TYPE_CHECKING:
    from dpsynth.models.dpsgd.parameter_buffer import FlatParameters

NUMBERS = 2**24  # of a pass: rows at once times parameters
CHECKED = 6  # rows that are also sent through alone
_TOLERANCE = 1e-3  # relative, between a row in a batch and the row alone, in single precision
_DOWN = 1 + 2.0**-40  # far above the rounding of a norm in double precision


class OpacusSgd(DpSgd):
    """Trains any network on private rows, as the event of the plan says and no further.

    Settings and interface are those of `DpSgd`. A loss is called as ``loss(rows, None)`` with
    ``[rows, 1, ...]`` and returns ``[rows, 1]``.

    Example:
        >>> from dpsynth.privacy import OsEntropy, PoissonSgd
        >>> event = PoissonSgd("steps", sampling_rate=0.1, steps=5, noise_multiplier=1.0)
        >>> network = nn.Sequential(nn.Conv1d(1, 4, 3), nn.Flatten(), nn.Linear(8, 1))
        >>> trainer = OpacusSgd(network, event=event, clipping_norm=1.0, population=1000,
        ...     learning_rate=0.1, entropy=OsEntropy(), schedule="constant", optimizer="sgd")

    Raises:
        InputError: as `DpSgd`, or Opacus has no per-sample gradient for a layer.
    """

    flat: Any

    def _flattened(self, network: nn.Module) -> FlatParameters:
        return cast("FlatParameters", SampledFlat(network))

    def _mean_gradient(self, loss: Loss, batch: Any) -> Tensor:
        first = batch[0] if isinstance(batch, tuple) else batch
        total = torch.zeros_like(self.flat.values, dtype=torch.float64)
        for units in self.flat.units(loss, batch, torch.ones(first.shape[:2])):
            total += units.sum(dim=0)
        mean: Tensor = (total / max(1, len(first))).to(self.flat.values)
        return mean

    def _clipped_blocks(self, loss: Loss, batch: Any, mask: Tensor) -> Iterator[Tensor]:
        for units in self.flat.units(loss, batch, mask):
            norms = torch.linalg.vector_norm(units, dim=1)
            finite = torch.isfinite(norms)
            factors = (self.clipping_norm / (norms * _DOWN)).clamp(max=1.0)
            factors = torch.where(finite, factors, 0.0)
            yield factors @ torch.where(finite[:, None], units, 0.0)


class SampledFlat:
    """All parameters of a network in one buffer, and the gradients of units by Opacus.

    Attributes:
        network: whose parameters are views of the buffer.
        values: the buffer.
        free: None, as no entry is masked.
    """

    free = None

    def __init__(self, network: nn.Module) -> None:
        """Move the parameters of ``network`` into one buffer.

        Raises:
            InputError: it has no parameters, or a buffer, or a parameter of another type than
                float32 or in two places, or a layer that Opacus cannot handle.
        """
        self.network = network.train()
        self._parameters = list(network.parameters())
        owned = [p for m in network.modules() for p in m._parameters.values() if not _renamed(m)]
        if not owned or len([p for p in owned if p is not None]) != len(self._parameters):
            raise InputError("a network needs parameters, each of one layer")
        if any(p.dtype != torch.float32 for p in self._parameters):
            raise InputError("a network has parameters of float32 only")
        if next(network.buffers(), None) is not None:
            raise InputError("a network has no buffers, which private rows could change")
        _check_layers(network)
        self.values = torch.cat([p.detach().flatten() for p in self._parameters])
        sizes = [p.numel() for p in self._parameters]
        for p, view in zip(self._parameters, torch.split(self.values, sizes), strict=True):
            p.data = view.view(p.shape)
            p.requires_grad_(False)
        self._homes = [p.data_ptr() for p in self._parameters]

    def check(self) -> None:
        """Refuse a network whose parameters no longer lie in this buffer.

        Raises:
            InputError: another trainer took the network, or a weight was replaced.
        """
        moved = [p.data_ptr() for p in self._parameters] != self._homes
        if moved or any(p.requires_grad for p in self._parameters):
            raise InputError("the network is no longer as built; build a new trainer")

    def units(self, loss: Loss, batch: Any, mask: Tensor) -> Iterator[Tensor]:
        """Yield the gradients of units, ``[units, parameters]`` in float64, block by block."""
        maximum = max(1, min(BLOCK, NUMBERS // len(self.values)))
        for pack in packs(batch, mask, maximum):
            yield _summed(self.rows(loss, by_row(pack.batch), pack.weights.reshape(-1)), pack)

    def rows(self, loss: Loss, rows: Any, weights: Tensor) -> Tensor:
        """Return the gradient of each row's weighted loss, ``[rows, parameters]``.

        Hooks and gradients of single rows are gone from the network when this returns or fails.

        Raises:
            InputError: the loss does not return one value per row, leaves a layer out, or makes
                rows of it into something else before a layer.
        """
        from opacus import GradSampleModule

        hooks: Any = None
        try:
            for p in self._parameters:
                p.requires_grad_(True)
            hooks = GradSampleModule(self.network, loss_reduction="sum", strict=True)
            with torch.enable_grad():
                losses = loss(rows, None)  # type: ignore[arg-type]
            if losses.shape != (len(weights), 1):
                raise InputError(
                    f"the loss must return one value per row, {[len(weights), 1]}, "
                    f"not {list(losses.shape)}"
                )
            with warnings.catch_warnings():  # codes, which the first layer reads, have no gradient
                warnings.filterwarnings("ignore", message="Full backward hook is firing")
                (losses[:, 0] * weights).sum().backward()  # type: ignore[no-untyped-call]
            parts = [getattr(p, "grad_sample", None) for p in self._parameters]
            return torch.cat([_of_rows(part, len(weights)) for part in parts], dim=1)
        finally:
            if hooks is not None:
                hooks.to_standard_module()
            for p in self._parameters:
                p.requires_grad_(False)
                p.grad = None
                for name in ("grad_sample", "summed_grad", "_forward_counter"):
                    vars(p).pop(name, None)


def check_rows_apart(network: nn.Module, loss: Loss, rows: Any) -> None:
    """Refuse a network whose gradients by row are not those of each row alone.

    Args:
        network: as for `OpacusSgd`.
        loss: as for `OpacusSgd`.
        rows: ``[rows, 1, ...]``, at least two, which cost no privacy.

    Raises:
        InputError: rows are mixed, or a weight is used where Opacus does not see it.
    """
    flat = SampledFlat(network)
    count = min(CHECKED, len(rows[0] if isinstance(rows, tuple) else rows))
    few = take(rows, slice(0, count))
    together = flat.rows(loss, few, torch.ones(count))
    for place in range(count):
        for p in flat._parameters:
            p.requires_grad_(True)
        with torch.enable_grad():
            alone = loss(take(few, slice(place, place + 1)), None)  # type: ignore[arg-type]
            parts = torch.autograd.grad(
                alone.sum(), flat._parameters, allow_unused=True, materialize_grads=True
            )
        for p in flat._parameters:
            p.requires_grad_(False)
        truth = torch.cat([part.flatten() for part in parts])
        apart = torch.linalg.vector_norm(together[place] - truth)
        if not bool(apart <= _TOLERANCE * (1e-3 + torch.linalg.vector_norm(truth))):
            raise InputError(
                "the network mixes rows of a batch, or uses a weight outside its layer: the "
                "gradient of a row in a batch is not that of the row alone, so clipping by unit "
                "bounds nothing"
            )


def opacus_clipping_norm(
    network: nn.Module, loss: Loss, batch: Any, quantile: float = 0.95, otherwise: float = 1.0
) -> float:
    """Return a quantile of the units' gradient norms on rows that cost no privacy.

    Args:
        network: as for `OpacusSgd`.
        loss: as for `OpacusSgd`.
        batch: ``[units, rows, ...]`` without padding.
        quantile: of the norms.
        otherwise: returned where no norm is finite and above zero.
    """
    flat = SampledFlat(network)
    first = batch[0] if isinstance(batch, tuple) else batch
    ones = torch.full(first.shape[:2], 1.0 / max(1, first.shape[1]))
    norms = [torch.linalg.vector_norm(some, dim=1) for some in flat.units(loss, batch, ones)]
    finite = torch.cat(norms) if norms else torch.zeros(0)
    finite = finite[torch.isfinite(finite)]
    norm = float(torch.quantile(finite.double(), quantile)) if len(finite) else 0.0
    return min(max(norm if norm > MIN_NORM else otherwise, MIN_NORM), MAX_NORM)


def _check_layers(network: nn.Module) -> None:
    """Refuse batch statistics, and whatever else Opacus refuses."""
    from opacus import GradSampleModule

    try:
        problems = GradSampleModule.validate(network, strict=False)
    except Exception as error:
        raise InputError(f"Opacus cannot train this network ({type(error).__name__})") from None
    recurrent = [m for m in network.modules() if isinstance(m, nn.RNNBase | nn.MultiheadAttention)]
    if problems or recurrent:
        kinds = ", ".join(sorted({type(m).__name__ for m in recurrent})) or "a layer"
        raise InputError(
            f"Opacus has no per-sample gradients for {kinds}; take the layers of opacus.layers "
            "(DPLSTM, DPGRU, DPMultiheadAttention), and no batch statistics"
        )


def _renamed(module: nn.Module) -> bool:
    """Whether a module only names the parameters of those within it, as recurrent ones do."""
    return type(module).__module__ == "opacus.layers.dp_rnn" and bool(list(module.children()))


def _of_rows(part: Any, rows: int) -> Tensor:
    """Return the gradients of one parameter by row, ``[rows, numbers]``."""
    if not isinstance(part, Tensor):
        raise InputError("a layer of the network took no part in the loss, or was used twice")
    if len(part) != rows:
        raise InputError(
            f"a layer saw a first axis of {len(part)}, not the {rows} rows of the batch; keep rows "
            "on the first axis"
        )
    return part.detach().reshape(rows, -1)


def _summed(rows: Tensor, pack: Pack) -> Tensor:
    """Add the gradients of each unit's rows in float64, ``[units, parameters]``."""
    parts, start = [], 0
    for units, k in pack.groups:
        some = rows[start : start + units * k]
        start += units * k
        parts.append(some.view(units, k, -1).sum(dim=1, dtype=torch.float64))
    return torch.cat(parts)
