"""A network's parameters as one flat buffer, and the optimizer that moves it.

Noise, optimizer state and update are then a handful of vector operations, and "every parameter is
private" is a statement about one buffer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from dpsynth.errors import InputError
from dpsynth.models.dpsgd.layers import Layer, MaskedLinear

Schedule = Literal["constant", "cosine"]
Optimizer = Literal["adam", "sgd"]


def layers_of(network: nn.Module) -> dict[str, Layer]:
    """Return the network's layers by name, in the order of its modules.

    Raises:
        InputError: the network holds something whose per-unit gradient is not known here: another
            kind of layer with parameters or state, batch statistics, a parameter in two places,
            or one that asks for a gradient of its own.
    """
    layers: dict[str, Layer] = {}
    for name, module in network.named_modules():
        place = name or "the network itself"
        if isinstance(module, Layer):
            layers[name] = module
        elif isinstance(module, _BatchNorm):
            raise InputError(
                f"{place} ({type(module).__name__}) mixes the units of a batch, so clipping a "
                "unit's gradient bounds nothing; remove it"
            )
        elif next(module.parameters(recurse=False), None) is not None:
            raise InputError(
                f"{place} ({type(module).__name__}) has parameters of its own; per-unit gradients "
                "are known for Linear, MaskedLinear and Embedding of models.dpsgd.layers only"
            )
        elif next(module.buffers(recurse=False), None) is not None:
            raise InputError(
                f"{place} ({type(module).__name__}) has a buffer, which private rows could change "
                "without noise; keep constants as plain attributes"
            )
    _check_parameters(network, layers)
    return layers


def _check_parameters(network: nn.Module, layers: Mapping[str, Layer]) -> None:
    if not layers:
        raise InputError("the network has no layer of models.dpsgd.layers: nothing to train")
    storages: dict[int, str] = {}
    for name, parameter in network.named_parameters(remove_duplicate=False):
        if parameter.requires_grad:
            raise InputError(
                f"parameter {name} requires a gradient; an optimizer outside the private one could "
                "train it on private rows. Call requires_grad_(False)"
            )
        if parameter.dtype != torch.float32:
            raise InputError(f"parameter {name} is {parameter.dtype}; dpsynth trains in float32")
        if parameter.numel() == 0:
            continue
        # views of one flat buffer have storages in common but addresses of their own
        other = storages.setdefault(parameter.data_ptr(), name)
        if other != name:
            raise InputError(
                f"parameters {other} and {name} share memory; a gradient norm that counts them "
                "apart is wrong. Give each layer its own"
            )


class FlatParameters:
    """All parameters of a network in one buffer.

    Attributes:
        layers: the layers by name.
        values: the buffer; the layers' parameters are views of it.
        free: indices of the entries that no mask keeps at zero; None where there is no mask.
    """

    def __init__(self, network: nn.Module) -> None:
        """Move the parameters of ``network`` into one buffer.

        Raises:
            InputError: as `layers_of`.
        """
        self.layers = layers_of(network)
        self._parameters = {
            layer: list(layer.parameters(recurse=False)) for layer in self.layers.values()
        }
        parameters = [parameter for some in self._parameters.values() for parameter in some]
        self.values = torch.cat([parameter.data.flatten() for parameter in parameters])
        for layer, views in self.views(self.values).items():
            for parameter, view in zip(self._parameters[layer], views, strict=True):
                parameter.data = view
        self._homes = [parameter.data_ptr() for parameter in parameters]
        self.free = self._free()

    def views(self, buffer: Tensor) -> dict[Layer, tuple[Tensor, ...]]:
        """Cut a buffer like ``values`` into the shapes of each layer's parameters."""
        sizes = [p.numel() for some in self._parameters.values() for p in some]
        parts = iter(torch.split(buffer, sizes))
        return {
            layer: tuple(next(parts).view(parameter.shape) for parameter in some)
            for layer, some in self._parameters.items()
        }

    def _free(self) -> Tensor | None:
        free = torch.ones_like(self.values, dtype=torch.bool)
        for layer, views in self.views(free).items():
            if isinstance(layer, MaskedLinear):
                views[0].copy_(layer.mask > 0)
        return None if bool(free.all()) else free.nonzero()[:, 0]

    def check(self) -> None:
        """Refuse a network whose parameters no longer lie in this buffer.

        Raises:
            InputError: another trainer took the network, or a weight was replaced.
        """
        parameters = [p for layer in self.layers.values() for p in layer.parameters(recurse=False)]
        moved = [parameter.data_ptr() for parameter in parameters] != self._homes
        if moved or any(parameter.requires_grad for parameter in parameters):
            raise InputError(
                "a parameter of the network was replaced, moved or made trainable after this "
                "trainer was built; build a new trainer"
            )


class FlatOptimizer:
    """Adam or plain gradient descent on a flat buffer, with a schedule fixed beforehand.

    Adam is Kingma and Ba 2015, algorithm 1, with its default constants.
    """

    BETAS = (0.9, 0.999)
    EPS = 1e-8

    def __init__(
        self,
        values: Tensor,
        *,
        kind: Optimizer,
        learning_rate: float,
        schedule: Schedule,
        steps: int,
    ) -> None:
        """Take the buffer to move and the public settings; ``steps`` is what the cosine spans."""
        if kind not in ("adam", "sgd"):
            raise InputError(f"optimizer must be adam or sgd, not {kind!r}")
        if schedule not in ("constant", "cosine"):
            raise InputError(f"schedule must be constant or cosine, not {schedule!r}")
        if not (math.isfinite(learning_rate) and learning_rate > 0):
            raise InputError(f"learning rate must be positive, not {learning_rate}")
        self.values, self.kind, self.schedule, self.steps = values, kind, schedule, steps
        self.learning_rate = learning_rate
        self.taken = 0
        self.moments: Sequence[Tensor] = (
            (torch.zeros_like(values), torch.zeros_like(values)) if kind == "adam" else ()
        )

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0: public."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * step / self.steps))

    def step(self, gradient: Tensor) -> None:
        """Move the buffer against ``gradient``."""
        rate = self.rate(self.taken)
        self.taken += 1
        if self.kind == "sgd":
            self.values.add_(gradient, alpha=-rate)
            return
        first, second = self.moments
        fast, slow = self.BETAS
        first.lerp_(gradient, 1.0 - fast)
        second.mul_(slow).addcmul_(gradient, gradient, value=1.0 - slow)
        scale = second.sqrt().div_(math.sqrt(1.0 - slow**self.taken)).add_(self.EPS)
        self.values.addcdiv_(first, scale, value=-rate / (1.0 - fast**self.taken))
