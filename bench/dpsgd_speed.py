"""What a private step costs beside a plain one: dpsynth's two engines, Opacus ghost and hooks.

The network is a tabular VAE of six linear layers over 150 one-hot inputs. Each method takes whole
steps (forward, backward, clipping, noise, Adam) on the same units; methods take turns, and the
median step counts. With one thread the clock is that of the process, which other programs on the
machine disturb less. Prints a markdown table. With ``--memory``, each method takes three steps in a
process of its own, and the table shows by how much its largest memory grew, in MB.

    python bench/dpsgd_speed.py [--quick] [--threads 1] [--memory]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from dpsynth.models.dpsgd.layers import Activations, Linear
from dpsynth.models.dpsgd.opacus_engine import OpacusSgd
from dpsynth.models.dpsgd.optimizer import DpSgd, PlainSgd
from dpsynth.privacy.entropy import OsEntropy, Size
from dpsynth.privacy.events import PoissonSgd

COLUMNS, CODES, LATENT = 15, 10, 16
WIDTH = COLUMNS * CODES
MAX_MEMORY = 1.5e9  # floats; Opacus hooks hold one gradient per unit and are left out beyond
Step = Callable[[], None]


class Vae(nn.Module):
    """Six linear layers, each one made by ``linear``; the same sums for every method."""

    def __init__(self, linear: Callable[[int, int], nn.Module], hidden: int) -> None:
        """Make the layers."""
        super().__init__()
        shapes = [
            (WIDTH, hidden),
            (hidden, hidden),
            (hidden, 2 * LATENT),
            (LATENT, hidden),
            (hidden, hidden),
            (hidden, WIDTH),
        ]
        self.layers = nn.ModuleList(linear(*shape) for shape in shapes)

    def forward(self, codes: Tensor, *activations: Activations) -> Tensor:
        """Return one loss per row, ``[units, rows]``."""
        hot = functional.one_hot(codes, CODES).flatten(-2).float()
        one, two, three, four, five, six = self.layers
        hidden = torch.relu(two(torch.relu(one(hot, *activations)), *activations))
        mean, log_variance = three(hidden, *activations).chunk(2, dim=-1)
        latent = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        hidden = torch.relu(five(torch.relu(four(latent, *activations)), *activations))
        logits = six(hidden, *activations)
        normaliser = logits.unflatten(-1, (COLUMNS, CODES)).logsumexp(dim=-1).sum(dim=-1)
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=-1)
        losses: Tensor = normaliser - (logits * hot).sum(dim=-1) + divergence
        return losses


class EveryUnit(OsEntropy):
    """The noise is real, but every unit is in every batch, so that all methods do equal work."""

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Draw zeros."""
        return np.zeros(size)


def private(engine: type[DpSgd], net: Vae, loss: Callable[..., Tensor], codes: Tensor) -> Step:
    """A private step of an engine, on all units."""
    trainer = engine(
        net,
        event=PoissonSgd("steps", 0.5, 1_000_000, 1.0),
        clipping_norm=1.0,
        population=2 * len(codes),
        learning_rate=1e-3,
        entropy=EveryUnit(),
        schedule="cosine",
        optimizer="adam",
    )
    mask = torch.ones(codes.shape[:2])

    def step() -> None:
        trainer.sample_batch(len(codes))
        trainer.step(loss, codes, mask)

    return step


def own(hidden: int, codes: Tensor) -> Step:
    """A private step of dpsynth."""
    net = Vae(lambda i, o: Linear(i, o, generator=torch.Generator().manual_seed(0)), hidden)
    return private(DpSgd, net, net, codes)


def own_plain(hidden: int, codes: Tensor) -> Step:
    """A step of dpsynth without clipping and noise."""
    net = Vae(lambda i, o: Linear(i, o, generator=torch.Generator().manual_seed(0)), hidden)
    trainer = PlainSgd(
        net, learning_rate=1e-3, steps=1_000_000, schedule="cosine", optimizer="adam"
    )
    mask = torch.ones(codes.shape[:2])
    return lambda: trainer.step(net, codes, mask)


def plain(hidden: int, codes: Tensor) -> Step:
    """An ordinary torch training step: the unit of the table."""
    net = Vae(nn.Linear, hidden)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step() -> None:
        adam.zero_grad()
        (net(codes).sum() / len(codes)).backward()
        adam.step()

    return step


def opacus_hooks(hidden: int, codes: Tensor) -> Step | None:
    """Opacus as it comes: one gradient per unit, by hooks."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    net = Vae(nn.Linear, hidden)
    if sum(p.numel() for p in net.parameters()) * len(codes) > MAX_MEMORY:
        return None
    wrapped = GradSampleModule(net, loss_reduction="sum")
    adam = DPOptimizer(
        torch.optim.Adam(net.parameters(), lr=1e-3),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=len(codes),
    )

    def step() -> None:
        adam.zero_grad()
        wrapped(codes).sum().backward()
        adam.step()

    return step


def opacus_ghost(hidden: int, codes: Tensor) -> Step:
    """Opacus ghost clipping: norms in a first backward pass, the clipped sum in a second."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    net = Vae(nn.Linear, hidden)
    wrapped = GradSampleModuleFastGradientClipping(
        net, loss_reduction="sum", max_grad_norm=1.0, use_ghost_clipping=True
    )
    adam = DPOptimizerFastGradientClipping(
        torch.optim.Adam(net.parameters(), lr=1e-3),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=len(codes),
        loss_reduction="sum",
    )

    def step() -> None:
        adam.zero_grad()
        per_unit = wrapped(codes).sum(dim=1)
        DPTensorFastGradientClipping(wrapped, adam, per_unit, "sum").backward()
        adam.step()

    return step


def own_opacus(hidden: int, codes: Tensor) -> Step:
    """A private step of dpsynth through Opacus: one gradient per row, clipped by unit."""
    net = Vae(nn.Linear, hidden)
    return private(OpacusSgd, net, lambda rows, _: net(rows), codes)


METHODS: dict[str, Callable[[int, Tensor], Step | None]] = {
    "plain": plain,
    "dpsynth": own,
    "dpsynth, no clip, no noise": own_plain,
    "dpsynth by Opacus": own_opacus,
    "Opacus ghost": opacus_ghost,
    "Opacus hooks": opacus_hooks,
}


def measure(
    hidden: int, codes: Tensor, seconds: float, clock: Callable[[], float]
) -> dict[str, float | None]:
    """Return the median seconds of a step per method; the methods take turns."""
    steps = {name: make(hidden, codes) for name, make in METHODS.items()}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for warm_up in filter(None, steps.values()):
        warm_up()
    spent = {name: 0.0 for name in steps}
    while spent["plain"] < seconds:
        for name, step in steps.items():
            # a slow peer need not be timed as often: three steps tell 2x from 20x
            if step is None or (len(times[name]) >= 3 and spent[name] > 2 * seconds):
                continue
            start = clock()
            step()
            times[name].append(clock() - start)
            spent[name] += times[name][-1]
    return {name: statistics.median(found) if found else None for name, found in times.items()}


def grown(name: str, hidden: int, units: int, rows: int) -> float:
    """Return by how many MB three steps of a method raise the largest memory of this process."""
    codes = torch.randint(0, CODES, (units, rows, COLUMNS))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = METHODS[name](hidden, codes)
    if step is None:
        return float("nan")
    for _ in range(3):
        step()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024  # KiB on Linux


def memory(settings: list[tuple[int, int, int]]) -> None:
    """Print the memory of every method, each in a process of its own."""
    print(f"\n| width | units | rows | {' | '.join(METHODS)} |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for setting in settings:
        cells = []
        for name in METHODS:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                cells.append(f"{pool.submit(grown, name, *setting).result():.0f}")
        print(f"| {' | '.join(map(str, setting))} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure every setting and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two settings, in a few seconds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", action="store_true", help="memory in the place of time")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", module="torch")
    warnings.filterwarnings("ignore", message="Full backward hook|Using a non-full backward")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    settings = list(product((128, 256), (512, 4096), (1, 4, 8, 32)))
    if arguments.quick:
        settings = [(128, 512, 1), (128, 512, 4)]
    if arguments.memory:
        memory(settings)
        return
    others = [name for name in METHODS if name != "plain"]
    print(f"torch {torch.__version__}, {arguments.threads} thread(s); ratio to a plain step")
    print(f"\n| width | units | rows | plain ms | {' | '.join(others)} |")
    print("|---|---|---|---|" + "---|" * len(others))
    for hidden, units, rows in settings:
        codes = torch.randint(0, CODES, (units, rows, COLUMNS))
        measured = measure(hidden, codes, 1.0 if arguments.quick else 6.0, clock)
        base = measured["plain"] or float("nan")
        cells = [f"{t / base:.2f}" if (t := measured[name]) else "left out" for name in others]
        print(
            f"| {hidden} | {units} | {rows} | {base * 1e3:.1f} | {' | '.join(cells)} |", flush=True
        )


if __name__ == "__main__":
    main()
