"""Patients with what an encoder sees of them, as units of DP-SGD; see `patient_units`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dpsynth.models.histories.networks.latent_network import LATENT, LatentBatch
from dpsynth.models.histories.networks.patient_units import PatientUnits

Ints = npt.NDArray[np.int64]

LEAST = 1e-9  # of a sum of weights: who has no step has no mean


@dataclass(frozen=True, eq=False)
class LatentUnits:
    """Patients with their rows of the person table, and their steps.

    Attributes:
        steps: of every trained table.
        person: bins of the person table, ``[patients, columns]``.
        sizes: bins of each of its columns.
        widths: bins of each column of each table's steps.
        noise: source of the latent noise.
    """

    steps: PatientUnits
    person: npt.NDArray[np.uint16]
    sizes: Sequence[int]
    widths: Sequence[Sequence[int]]
    noise: np.random.Generator

    def __len__(self) -> int:
        """Count the patients: private."""
        return len(self.steps)

    def batch(self, chosen: Ints) -> tuple[LatentBatch, Tensor]:
        """Return chosen patients as `LatentNetworks.loss` takes them, and who has a step where.

        One draw of the latent noise is a patient's, at all her places.
        """
        (rows, weights), mask = self.steps.batch(chosen)
        parts = [hot_rows(self.person[chosen], self.sizes)]
        start = 0
        for place, widths in enumerate(self.widths):
            own = rows[:, :, start : start + len(widths)]
            parts.append(_mean(own, weights[:, :, place], widths))
            start += len(widths)
        noise = self.noise.standard_normal((len(chosen), LATENT), dtype=np.float32)
        first = torch.zeros(mask.shape)
        first[:, 0] = mask[:, 0].float()
        everywhere = (-1, mask.shape[1], -1)
        summary = torch.cat(parts, dim=1)[:, None].expand(*everywhere)
        return (
            rows,
            weights,
            first,
            summary,
            torch.from_numpy(noise)[:, None].expand(*everywhere),
        ), mask

    def whole(self) -> tuple[LatentBatch, Tensor]:
        """Return the batch of all patients."""
        return self.batch(np.arange(len(self)))

    def with_a_step(self) -> Ints:
        """Return the patients who have a step in some table."""
        return np.flatnonzero(sum(table.counts for table in self.steps.tables))


def without_padding(batch: LatentBatch, mask: Tensor) -> LatentBatch:
    """Lay public patients out step by step, with the same mean gradient: faster, and no unit.

    The mean is over steps then, so that their weights are larger by steps over patients.
    """
    kept = mask.flatten()
    scale = float(kept.sum()) / max(1, len(mask))
    rows, weights, first, summary, noise = (part.flatten(0, 1)[kept][:, None] for part in batch)
    return rows, scale * weights, scale * first, summary, noise


def hot_rows(bins: npt.NDArray[np.integer], sizes: Sequence[int]) -> Tensor:
    """Turn bins of the person table into one-hot rows, ``[patients, codes]``."""
    columns = torch.from_numpy(bins.astype(np.int64))
    parts = [one_hot(column, size) for column, size in zip(columns.T, sizes, strict=True)]
    return torch.cat(parts, dim=1).float()


def _mean(rows: Tensor, weights: Tensor, widths: Sequence[int]) -> Tensor:
    """Return the weighted mean of each patient's one-hot steps, ``[patients, codes]``."""
    starts = torch.tensor(np.cumsum([0, *widths[:-1]]))
    total = torch.zeros(len(rows), sum(widths))
    cells = (rows.long() + starts).flatten(1)
    parts = weights / weights.sum(dim=1, keepdim=True).clamp(min=LEAST)
    return total.scatter_add_(1, cells, parts[:, :, None].expand(rows.shape).flatten(1))
