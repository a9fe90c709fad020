"""Where a network trains: the processor, or a CUDA device beside it.

Everything that decides what a step does stays on the host: who is drawn, how rows are packed, and
the noise, which is drawn by the cryptographic generator there. Numbers go to the device without
waiting for it, so a private step never reads anything back. Products have to be in full single
precision: the error of a unit's norm is bounded for it (`unit_gradients.ROUNDING`), and would be a
thousand times as large in TF32.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dpsynth.errors import InputError
from dpsynth.models.registry import DEVICES

CPU = torch.device("cpu")
CHECKED = 20  # steps on a device from one look at its parameters to the next


def device_of(name: str, processes: int = 1) -> torch.device:
    """Return the device of a name; ``auto`` is CUDA where there is one for each process.

    Args:
        name: ``auto``, ``cpu`` or ``cuda``.
        processes: that train one network together. NCCL refuses two of them on one device.

    Raises:
        InputError: there is no such device, or fewer than processes, or it is set to compute
            products in TF32.

    >>> device_of("cpu")
    device(type='cpu')
    """
    if name not in DEVICES:
        raise InputError(f"device must be one of {', '.join(DEVICES)}, not {name!r}")
    there = name != "cpu" and torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InputError(
            "there is no CUDA device that this build of torch can use; leave --device out"
        )
    found = torch.cuda.device_count() if there and processes > 1 else processes
    if name == "cuda" and found < processes:
        raise InputError(
            f"torchrun started {processes} processes, and each needs a CUDA device of its own; "
            f"there {'is' if found == 1 else 'are'} {found}. Start as many processes as devices"
        )
    if not there or found < processes:
        return CPU
    if torch.backends.cuda.matmul.allow_tf32 or torch.get_float32_matmul_precision() != "highest":
        raise InputError(
            "torch is set to compute products in TF32, in which norms of gradients are not exact "
            "enough to clip by: torch.set_float32_matmul_precision('highest')"
        )
    return torch.device("cuda")


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Send a tensor of the host to a device, without waiting for it.

    >>> moved(torch.ones(2), CPU)
    tensor([1., 1.])
    """
    if tensor.device.type == device.type:
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


def looks_back(values: Tensor, step: int, steps: int) -> bool:
    """Whether to read the parameters after a step: always on the host, else now and then.

    They are private by then, so that nothing follows from when they are read.
    """
    return values.device.type == CPU.type or step % CHECKED == 0 or step == steps
