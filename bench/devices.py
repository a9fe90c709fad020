"""What a CUDA device does for a network: private steps, whole fits, and how exact its norms are.

Everything is done on the processor and on the device, in turns, by the same program; without a
device, on the processor alone. Three markdown tables are printed:

- norms: the largest error of a unit's squared norm, as a share of the squared sum of its rows'
  norms, beside the bound that clipping counts on;
- steps: milliseconds of a private step, and beside it of a step of the same network without
  clipping and noise, by number of units; medians;
- fits: of simulated rows, epsilon 3: seconds of the whole fit and of its private steps, and the
  distance of pairs of columns; means.

    python bench/devices.py [--only norms steps fits] [--rows 56000] [--repeats 3] [--threads N]
        [--quick]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from dpsgd_speed import EveryUnit
from presets import Ruler
from torch import Tensor

from dpsynth import Execution
from dpsynth.models.dpsgd.device import CPU
from dpsynth.models.dpsgd.optimizer import DpSgd, PlainSgd
from dpsynth.models.dpsgd.unit_gradients import ROUNDING, UnitGradients, packs
from dpsynth.models.generators import autoregressive_network, tvae
from dpsynth.models.generators.binned_network import BinnedNetwork
from dpsynth.privacy.events import PoissonSgd

BINS = (16,) * 10 + (4,) * 10
NETWORKS = ("autoregressive", "tvae")
PARTS = ("norms", "steps", "fits")
WARM_STEPS = 5


def network_of(name: str, width: int) -> BinnedNetwork:
    """Build the network of a generator over 20 columns, with a hidden layer of this width."""
    seed = torch.Generator().manual_seed(0)
    if name == "autoregressive":
        shape = autoregressive_network.Shape(BINS, width)
        return autoregressive_network.Network(shape, generator=seed)
    network = tvae.Network(tvae.Shape(BINS, width, 16), generator=seed)
    network.draw_from(lambda: np.random.default_rng(0))
    return network


def rows_of(units: int, rows: int, where: torch.device) -> Tensor:
    """Draw binned rows ``[units, rows, columns]``."""
    codes = np.random.default_rng(1).integers(0, BINS, (units, rows, len(BINS)))
    return torch.from_numpy(codes).to(where)


def trainer_of(network: BinnedNetwork, units: int) -> DpSgd:
    """Return what takes private steps, each on all units."""
    return DpSgd(
        network,
        event=PoissonSgd("steps", 0.5, 1_000_000, 1.0),
        clipping_norm=1.0,
        population=2 * units,
        learning_rate=1e-3,
        entropy=EveryUnit(),
        schedule="cosine",
        optimizer="adam",
    )


def error_of_norms(name: str, width: int, rows: int, where: torch.device) -> float:
    """Return the largest error of the squared norm of 200 units, beside their rows' norms."""
    network = network_of(name, width).to(where)
    trainer = trainer_of(network, 200)
    worst = 0.0
    for one in rows_of(200, rows, where):
        [pack] = packs(one[None], torch.ones(1, rows), 10**6)
        gradients = UnitGradients.of(network.loss, pack)
        squares, spreads = (part.double() for part in gradients.squares())
        formed = torch.zeros_like(trainer.flat.values, dtype=torch.float64)
        gradients.add_to(trainer.flat.views(formed))
        worst = max(worst, float((squares - formed.square().sum()).abs() / spreads))
    return worst


def private_step(name: str, width: int, units: int, where: torch.device) -> Callable[[], None]:
    """Return a private step on so many units of one row."""
    network = network_of(name, width).to(where)
    trainer = trainer_of(network, units)
    batch, mask = rows_of(units, 1, where), torch.ones(units, 1)

    def step() -> None:
        trainer.sample_batch(units)
        trainer.step(network.loss, batch, mask)

    return step


def plain_step(name: str, width: int, units: int, where: torch.device) -> Callable[[], None]:
    """Return a step of the same network without clipping and noise."""
    network = network_of(name, width).to(where)
    trainer = PlainSgd(
        network, learning_rate=1e-3, steps=1_000_000, schedule="cosine", optimizer="adam"
    )
    batch, mask = rows_of(units, 1, where), torch.ones(units, 1)
    return lambda: trainer.step(network.loss, batch, mask)


def milliseconds(step: Callable[[], None], where: torch.device, seconds: float) -> float:
    """Return the median time of a step, in which the device has ended what it was told to do."""
    taken: list[float] = []
    spent = 0.0
    while spent < seconds or len(taken) < 2 * WARM_STEPS:
        start = time.perf_counter()
        step()
        if where.type == "cuda":
            torch.cuda.synchronize()
        taken.append(1e3 * (time.perf_counter() - start))
        spent += taken[-1] / 1e3
    return statistics.median(taken[WARM_STEPS:])


class Stages:
    """Remembers how long a fit was in its private steps."""

    def __init__(self) -> None:
        """Begin."""
        self.first, self.last = 0.0, 0.0

    def __call__(self, stage: str, part: float) -> None:
        """Take a fit's progress."""
        if stage == "training":
            self.first = self.first or time.perf_counter()
            self.last = time.perf_counter()


def norms(places: list[torch.device]) -> None:
    """Print how exact norms are."""
    _head(["network", "width", "rows of a unit", *map(str, places), "bound"])
    for name in NETWORKS:
        for width, rows in ((64, 1), (64, 8), (512, 1), (512, 8), (2048, 4)):
            errors = [f"{error_of_norms(name, width, rows, where):.1e}" for where in places]
            _line([name, width, rows, *errors, f"{ROUNDING:.0e}"])


def steps(places: list[torch.device], quick: bool) -> None:
    """Print what steps take: private / plain."""
    _head(["network", "width", "units", *(f"{where}, private / plain ms" for where in places)])
    for name in NETWORKS:
        for width in (64,) if quick else (64, 512):
            for units in (500, 5_000) if quick else (500, 5_000, 50_000):
                cells = []
                for where in places:
                    both = [
                        milliseconds(kind(name, width, units, where), where, 0.2 if quick else 0.5)
                        for kind in (private_step, plain_step)
                    ]
                    cells.append(" / ".join(f"{one:.2f}" for one in both))
                _line([name, width, units, *cells])


def fits(places: list[torch.device], rows: int, repeats: int) -> None:
    """Print what whole fits take, and how near they are."""
    ruler = Ruler(rows)
    _head(["fit", "device", "whole s", "private steps s", "TVD2"])
    for name in NETWORKS:
        found: dict[str, list[tuple[float, float, float]]] = {where.type: [] for where in places}
        for _ in range(repeats):
            for device, of_device in found.items():
                stages = Stages()
                _, two, _, seconds = ruler.of(
                    3.0, name, execution=Execution(device=device), progress=stages
                )
                of_device.append((seconds, stages.last - stages.first, two))
        for device, of_device in found.items():
            whole, private, two = np.mean(of_device, axis=0)
            _line([name, device, f"{whole:.1f}", f"{private:.1f}", f"{two:.4f}"])


def _head(names: list[str]) -> None:
    print()
    _line(names)
    _line(["---"] * len(names))


def _line(cells: list[object]) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=56_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of the processor; all without it")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, less often")
    wanted = parser.parse_args()
    if wanted.threads:
        torch.set_num_threads(wanted.threads)
    places = [CPU]
    device = "none"
    if torch.cuda.is_available():
        places.append(torch.device("cuda"))
        device = torch.cuda.get_device_name()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} thread(s), device: {device}")
    if "norms" in wanted.only:
        norms(places)
    if "steps" in wanted.only:
        steps(places, wanted.quick)
    if "fits" in wanted.only:
        fits(places, wanted.rows, wanted.repeats)


if __name__ == "__main__":
    main()
