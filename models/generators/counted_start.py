"""Where a network starts, counted once: what an earlier process counted is taken over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from dpsynth.models import Checkpoints, Domain, Preset, Progress, TrainingState
from dpsynth.models.marginals import InitialModel

if TYPE_CHECKING:
    from dpsynth.encoding import AnyRows
    from dpsynth.privacy import AnyPlan, Entropy

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
