"""Training of a network: on rows of the mixture, then by private steps.

Several processes may take the private steps together: ranks that ``torchrun`` started. Rank 0 makes
the fit. Before the first step it tells the others the public settings of the steps, and gives each
the parameters, the rows of the mixture and its part of the units. Then all take the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models import Checkpoints, Domain, Preset, Progress, TrainingState
from dpsynth.models.dpsgd import (
    END,
    Batches,
    OtherRank,
    PlainSgd,
    Ranks,
    Trainer,
    Units,
    device_of,
    in_turn,
    moved,
    next_batch,
)
from dpsynth.models.generators.binned_network import BinnedNetwork
from dpsynth.models.marginals import InitialModel
from dpsynth.models.registry import generator_class
from dpsynth.privacy import OsEntropy, PoissonSgd

if TYPE_CHECKING:
    from dpsynth.encoding import AnyRows
    from dpsynth.privacy import AnyPlan, Entropy


WARM_BATCH = 4_000  # rows of the mixture in a step
WARM_RATE = 0.01


def warm_up(
    network: BinnedNetwork,
    rows: Tensor,
    steps: int,
    progress: Progress,
    *,
    batch: int | None = None,
    rate: float | None = None,
) -> None:
    """Train on rows of the mixture, ``[rows, columns]``: post-processing."""
    batch, rate = batch or WARM_BATCH, rate or WARM_RATE
    trainer = PlainSgd(
        network, learning_rate=rate, steps=steps, schedule="cosine", optimizer="adam"
    )
    ones = torch.ones(batch, 1)
    for step in range(steps):
        trainer.step(network.loss, in_turn(rows, step, batch), ones)
        progress("warming up", (step + 1) / steps)


def take_steps(
    trainer: Trainer,
    network: BinnedNetwork,
    units: Batches,
    anchors: Tensor | None,
    *,
    after: int = 0,
    taken: Callable[[int], None] = lambda step: None,
) -> None:
    """Take every step of the plan that is left; their number and schedule are fixed beforehand.

    Args:
        trainer: takes them; of several processes, that of this one.
        network: what it trains.
        units: private; of several processes, the part of this one.
        anchors: rows of the mixture, ``[rows, columns]``; None for steps without an anchor.
        after: steps that an earlier process took.
        taken: called with the number of steps after each.
    """
    device = next(network.parameters()).device
    for step in range(after, trainer.event.steps):
        batch, weights = next_batch(trainer, units)
        anchor = None if anchors is None else in_turn(anchors, step, WARM_BATCH)
        trainer.step(network.loss, moved(batch, device), weights, anchor=anchor)
        taken(step + 1)


def share(
    ranks: Ranks, trainer: Any, job: dict[str, Any], anchors: Tensor | None, units: Units
) -> Units:
    """Tell the other ranks what to do, and give each what it needs.

    Args:
        ranks: seen from rank 0.
        trainer: the `FirstRank` of this process; its network is where the steps begin.
        job: the network's ``model``, ``preset``, ``bins`` and ``device``, the ``population``, and
            the number of steps that were taken before, ``after``.
        anchors: rows of the mixture.
        units: all of them.

    Returns:
        The part of the units that rank 0 keeps.
    """
    settings = {
        "event": asdict(trainer.event),
        "clipping_norm": trainer.clipping_norm,
        "learning_rate": trainer.optimizer.learning_rate,
        "anchor_weight": trainer.anchor_weight,
    }
    ranks.tell({"do": "train", "trainer": settings, **job})
    ranks.copy(trainer.flat.values)
    size = ranks.place.size
    for rank in range(1, size):
        if anchors is not None:
            ranks.send(anchors.cpu().numpy(), rank)
        ranks.send(units.bins[rank::size], rank)
        ranks.send(units.weights[rank::size], rank)
    return Units(units.bins[::size].copy(), units.weights[::size].copy())


def assist(ranks: Ranks) -> None:
    """Do the part of a rank other than 0, from waiting for rank 0 to the last step.

    It knows neither plan nor ledger, and reads no table. Units are drawn by the operating system's
    entropy, here as on rank 0.
    """
    job = ranks.hear()
    if job["do"] == END:
        return
    entropy = OsEntropy()
    kind: Any = generator_class(job["model"])
    network: BinnedNetwork = kind.network_of(Preset(**job["preset"]), tuple(job["bins"]), 0)
    network.draw_from(entropy.generator)
    device = device_of(job["device"])
    network.to(device)
    settings = job["trainer"]
    event = PoissonSgd(**settings.pop("event"))
    trainer = OtherRank(
        network,
        event=event,
        entropy=entropy,
        schedule="cosine",
        optimizer="adam",
        ranks=ranks,
        population=job["population"],
        **settings,
    )
    ranks.copy(trainer.flat.values)
    anchors = None
    if trainer.anchor_weight:
        anchors = moved(torch.from_numpy(ranks.receive(0)), device)
    bins = ranks.receive(0)
    units = Units(bins, ranks.receive(0))
    take_steps(trainer, network, units, anchors, after=job["after"])


Arrays = Mapping[str, npt.NDArray[Any]]


def counted_start(
    cohort: AnyRows,
    domain: Domain,
    plan: AnyPlan,
    entropy: Entropy,
    preset: Preset,
    progress: Progress,
    checkpoints: Checkpoints,
    *,
    target: bool = False,
) -> InitialModel:
    """Count and fit the mixture, and keep both; what was counted before is never counted again.

    Args:
        cohort: codes of the domain's columns, the hidden one included.
        domain: its public facts.
        plan: has the events of the histograms.
        entropy: source of noise.
        preset: settings, public.
        progress: of the stages ``histograms`` and ``mixture``.
        checkpoints: where the fit keeps its state.
        target: whether training needs what the mixture was fitted to.
    """
    if checkpoints.state is not None:
        return InitialModel.restore(domain, checkpoints.state.arrays)
    start = InitialModel.fit(cohort, domain, plan, entropy, preset, progress)
    checkpoints.save(TrainingState(0, {}, kept_start(start, target=target)))
    return start


def kept_start(start: InitialModel, *, target: bool) -> Arrays:
    """Return what a checkpoint holds of it."""
    kept = start.arrays()
    if start.released is not None:
        kept |= start.released.arrays()
    if target:
        assert start.target is not None
        kept |= start.target.arrays()
    return kept
