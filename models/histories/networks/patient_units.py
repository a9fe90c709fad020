"""Whole histories as units of DP-SGD: a patient's row and her steps of all tables, in one sample.

What a patient adds. A sample is a patient with her row of the person table and her steps of every
trained table, and her gradient is the sum over all of them. `DpSgd` clips that sum once, to norm C,
so the sum over patients moves by at most C with one patient more, however many steps and tables she
has. That needs no cap and no weights: both are for the quality of what is learned. Three things are
needed for it:

- A patient has one place among the units, in all tables. Were each step a unit, she would move
  the sum by up to C for each of them.
- Whether she is drawn is one coin, for her row and all of her steps at once. The claim of
  subsampling is about the patient.
- What is coded, kept and weighed of her does not depend on anybody else.

At most `KEPT` steps of a table are kept, chosen uniformly: a random set of steps has the law of
them all, and the first ones have not. Each of k that are kept weighs 1 / sqrt(k). In a histogram
that would be no bound (`privacy.mechanisms`), and weights of 1 / k it is there. Here clipping
bounds her, whatever her steps weigh. Patients with many steps have most rows of a cohort, and 1 / k
hides them; of k unlike steps the gradients add up to about sqrt(k) times one of them, so with
1 / sqrt(k) such a patient's gradient is as long as that of a patient with one step, and
clipping changes neither. The warm start has the law of 1 / k, and the number of rows is a condition
in both. Her row of the person table weighs `PERSON`: of many more patients, it needs to be known
less well than the steps, and leaves more of the norm to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import Histories, select
from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.histories.persons.table import PersonTable
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.models.marginals import MergedBins
from dpsynth.privacy import Entropy

Ints = npt.NDArray[np.int64]
Batch = tuple[Tensor, Tensor]

KEPT = 16
"""Steps of a patient in a table that a private step uses at most."""
PERSON = 0.5  # weight of a patient's row of the person table


@dataclass(frozen=True, eq=False)
class TableSteps:
    """Binned steps of one table, patient by patient.

    Attributes:
        bins: ``[steps, columns]``.
        counts: steps of each patient, at most `KEPT`.
        weight: of a patient's only step.
    """

    bins: npt.NDArray[np.uint16]
    counts: Ints
    weight: float = 1.0

    @classmethod
    def of(
        cls,
        codes: Ints,
        patients: Ints,
        number: int,
        bins: Sequence[MergedBins],
        entropy: Entropy,
    ) -> TableSteps:
        """Bin coded steps, and keep a random set of each patient's.

        Args:
            codes: ``[steps, columns]``.
            patients: of each step.
            number: of patients.
            bins: of each column.
            entropy: chooses the steps that are kept.
        """
        kept, _ = select(patients, KEPT, entropy)
        columns = [column.coarsen(codes[kept, j]) for j, column in enumerate(bins)]
        counts = np.bincount(patients[kept], minlength=number)
        return cls(np.column_stack(columns).astype(np.uint16), counts)

    def with_one(self) -> TableSteps:
        """Keep one step of each patient who has any."""
        has = self.counts > 0
        starts = (np.cumsum(self.counts) - self.counts)[has]
        return replace(self, bins=self.bins[starts], counts=has.astype(np.int64))

    def batch(self, chosen: Ints, most: int) -> tuple[Tensor, Tensor]:
        """Return the steps of chosen patients, ``[patients, most, columns]``, and their weights.

        Places without a step hold zeros, and no step of anybody else.
        """
        counts = self.counts[chosen]
        starts = (np.cumsum(self.counts) - self.counts)[chosen]
        places = np.arange(most)
        has = places < counts[:, None]
        bins = np.zeros((len(chosen), most, self.bins.shape[1]), dtype=np.uint16)
        bins[has] = self.bins[(starts[:, None] + places)[has]]
        weights = self.weight * has / np.sqrt(np.maximum(counts, 1))[:, None]
        return torch.from_numpy(bins), torch.from_numpy(weights.astype(np.float32))


@dataclass(frozen=True, eq=False)
class PatientUnits:
    """Patients with their steps of every trained table.

    Attributes:
        tables: the steps of each table, of the same patients; before them, rows of the person
            table, if their network is trained.
        number: of patients: private.
    """

    tables: tuple[TableSteps, ...]
    number: int

    @classmethod
    def of(
        cls,
        histories: Histories,
        domain: HistoryDomain,
        models: Sequence[tuple[int, StepModel]],
        entropy: Entropy,
    ) -> PatientUnits:
        """Code histories as what was learned of their steps has it.

        Args:
            histories: of the patients.
            domain: of the histories.
            models: of each trained table, with the table's place.
            entropy: chooses the steps that are kept.
        """
        codes = PersonTable(domain).codes(histories)
        tables = []
        for place, model in models:
            table = domain.tables[place]
            rows = TableRows.of(table, histories.rows[place], codes, histories.ends)
            (steps,) = rows.coded([model.table])
            who = rows.steps[0].patients
            tables.append(TableSteps.of(steps, who, len(histories), model.bins, entropy))
        return cls(tuple(tables), len(histories))

    def with_rows(self, bins: npt.NDArray[np.integer]) -> PatientUnits:
        """Put a row of each patient before her steps, ``[patients, columns]``."""
        rows = TableSteps(bins.astype(np.uint16), np.ones(self.number, dtype=np.int64), PERSON)
        return PatientUnits((rows, *self.tables), self.number)

    def __len__(self) -> int:
        """Count the patients: private."""
        return self.number

    def with_one_step(self) -> tuple[Batch, Tensor]:
        """Return those who have a step as a batch, each with one of a table; all, if none has.

        Rows of the person table come first, as `with_rows` puts them.
        """
        rows, *steps = (table.with_one() for table in self.tables)
        found = np.flatnonzero(sum((table.counts for table in steps), np.zeros_like(rows.counts)))
        one = replace(self, tables=(rows, *steps))
        return one.batch(found if len(found) else np.arange(len(self)))

    def batch(self, chosen: Ints) -> tuple[Batch, Tensor]:
        """Return chosen patients' rows and weights, and which places have one.

        The rows of all tables lie side by side, ``[patients, places, columns]``, and so do their
        weights, ``[patients, places, tables]``. A patient is one unit with all of them.
        """
        most = max((int(table.counts[chosen].max(initial=0)) for table in self.tables), default=0)
        parts = [table.batch(chosen, max(1, most)) for table in self.tables]
        weights = torch.stack([weight for _, weight in parts], dim=2)
        return (torch.cat([bins for bins, _ in parts], dim=2), weights), (weights > 0).any(dim=2)

    def whole(self) -> tuple[Batch, Tensor]:
        """Return the batch of all patients."""
        return self.batch(np.arange(len(self)))
