"""`distilled` of linked tables: `cohort`, whose table of patients is drawn by a network.

The network learns rows of the mixture of that table (`persons.network`), which was fitted to
released counts. So nothing is spent beside what `cohort` spends: all of it is post-processing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsynth.models.histories.generator import CohortGenerator

if TYPE_CHECKING:
    from dpsynth.encoding import Histories
    from dpsynth.models import Checkpoints, Progress
    from dpsynth.models.histories.row_grains import Found
    from dpsynth.privacy import Entropy, ObservedPlan, PrivacyPlan


class DistilledHistories(CohortGenerator):
    """Person table, whose network learned from its mixture, and step tables."""

    name = "distilled"

    def _train(
        self,
        histories: Histories,
        grains: Found,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress,
        checkpoints: Checkpoints,
    ) -> None:
        """Teach the network what the mixture says of a row; reads nothing else."""
        self.network = self.taught or self._taught(entropy.generator(), progress)
