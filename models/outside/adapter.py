"""A generator of another package as one of dpsynth: rehearsed before anything is charged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.errors import DpsynthError, InputError
from dpsynth.models import Codes, Domain, Progress, shares_of, silent
from dpsynth.models.marginals import Binning
from dpsynth.models.outside.desk import Desk, check_bins
from dpsynth.models.outside.mechanisms import PlugIn, serve
from dpsynth.models.registry import GeneratorSpec
from dpsynth.models.run_size import OUTSIDE
from dpsynth.privacy import ObservedPlan, OsEntropy, PrivacyPlan

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy, PrivacyBudget, Share

OWN = "outside."  # before the names of its arrays
UNITS, DRAWS, STEPS = 40, 20, 2  # of a rehearsal
TRIES = 200  # draws of rows that are weighed, before one gives up


def adapted(spec: GeneratorSpec, plug_in: type[PlugIn]) -> type[OutsideGenerator]:
    """Return the generator that hands a plug-in its mechanisms, under its full name."""
    return type("Outside", (OutsideGenerator,), {"name": spec.name, "plug_in": plug_in})


class OutsideGenerator:
    """Learns by another package's class, which gets noisy answers and no row."""

    name: ClassVar[str] = ""
    neural: ClassVar[bool] = False  # it has no reference without privacy
    plug_in: ClassVar[type[PlugIn]]

    def __init__(self, domain: Domain) -> None:
        """Build an unfitted generator from public facts."""
        self.domain = domain.with_visits()

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name the events that the plug-in would spend on."""
        return shares_of(self.name, self.domain, budget)

    def rehearse(self, plan: PrivacyPlan) -> None:
        """Fit it on made-up rows, keep, restore and sample it, before anything is charged.

        Raises:
            InputError: it fails, asks for what is not in its plan, or leaves an event out.
        """
        try:
            rng = np.random.default_rng(0)
            features = [feature for feature in self.domain.features if feature.name[0] != "\t"]
            shape = (UNITS, self.domain.max_rows)
            codes = [rng.integers(0, feature.size, shape) for feature in features]
            mask = np.arange(shape[1]) < rng.integers(1, shape[1] + 1, UNITS)[:, None]
            cohort = Cohort((np.stack(codes, axis=-1) * mask[..., None]).astype(np.uint16), mask)
            trial = type(self)(self.domain)
            source = plan.opened(OsEntropy())
            desk = Desk(cohort, self.domain, plan, source, silent, steps=STEPS)
            trial._fit(desk)
            if desk.unused:
                raise InputError(f"it spends on '{desk.unused[0]}', and does not use it")
            again = type(self).restore(self.domain, trial.config(), trial.arrays())
            again.sample(DRAWS, rng)
        except DpsynthError as error:
            text = str(error).removeprefix(f"generator '{self.name}' ")
            raise InputError(
                f"generator '{self.name}' failed its rehearsal on made-up rows: {text}; nothing "
                "was charged"
            ) from None

    def fit(
        self,
        cohort: Cohort,
        plan: PrivacyPlan | ObservedPlan,
        entropy: Entropy,
        progress: Progress = silent,
    ) -> Self:
        """Let the plug-in ask for the events of the plan; it gets no row.

        Raises:
            DpsynthError: it failed, or asked for what is not in its plan.
        """
        return self._fit(Desk(cohort, self.domain, plan, entropy, progress))

    def _fit(self, desk: Desk) -> Self:
        fitted = self._called("be built", lambda: self.plug_in(self.domain))
        serve(fitted.fit, desk.answers, self.name)
        self.fitted_, self.binning_ = fitted, desk.binning
        self.config(), self.arrays()
        return self

    def sample(self, rows: int, rng: np.random.Generator, *, even: bool = True) -> Codes:
        """Draw ``[rows, columns]`` codes: bins from the plug-in, codes within them by histogram.

        Where units have several rows, what is drawn is a row of a unit; draws are kept with the
        chance by which a row of so many weighs more.
        """
        factors = self.binning_.row_factors()
        if factors is None:
            return self.binning_.refine(self._drawn(rows, rng), rng, even=even)
        accepted: list[npt.NDArray[np.integer]] = []
        for _ in range(TRIES):
            bins = self._drawn(max(rows, 256), rng)
            chance = factors[bins[:, 0]] / factors.max()
            accepted.append(bins[rng.random(len(bins)) < chance])
            if sum(map(len, accepted)) >= rows:
                break
        enough = np.concatenate(accepted)[:rows]
        if len(enough) < rows:
            raise InputError(f"generator '{self.name}' draws too few units of several rows")
        return self.binning_.refine(enough, rng, even=even)

    def _drawn(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.integer]:
        bins = np.asarray(self._called("sample", lambda: self.fitted_.sample(rows, rng)))
        check_bins(bins, self.binning_.sizes)
        if len(bins) != rows:
            raise InputError(f"generator '{self.name}' drew {len(bins)} rows, not {rows}")
        return bins

    def config(self) -> dict[str, Any]:
        """Give what the plug-in says of itself, as plain JSON values."""
        config = self._called("describe itself", self.fitted_.config)
        try:
            plain = json.loads(json.dumps(config, allow_nan=False))
        except (TypeError, ValueError):
            plain = None
        if not isinstance(config, dict) or plain != config:
            raise InputError(f"generator '{self.name}' has a config that is not plain JSON")
        return {"plug_in": plain}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give the plug-in's arrays, and the columns' bins."""
        arrays = self._called("give its arrays", self.fitted_.arrays)
        numbers = isinstance(arrays, dict) and all(
            isinstance(name, str) and isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
            for name, array in arrays.items()
        )
        if not numbers or sum(array.nbytes for array in arrays.values()) > OUTSIDE:
            raise InputError(
                f"generator '{self.name}' must keep arrays of numbers by name, of at most "
                f"{OUTSIDE // 2**20} MiB together"
            )
        return {f"{OWN}{name}": array for name, array in arrays.items()} | self.binning_.arrays()

    @classmethod
    def restore(
        cls, domain: Domain, config: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]
    ) -> Self:
        """Rebuild the bins and the plug-in."""
        fitted = cls(domain)
        fitted.binning_ = Binning.restore(fitted.domain, arrays)
        plug_in_arrays = {
            name.removeprefix(OWN): array.copy()
            for name, array in arrays.items()
            if name.startswith(OWN)
        }
        settings = config["plug_in"]
        fitted.fitted_ = fitted._called(
            "be restored", lambda: cls.plug_in.restore(fitted.domain, settings, plug_in_arrays)
        )
        return fitted

    def _called(self, task: str, work: Callable[[], Any]) -> Any:
        """Run code of the plug-in, far from any row; its error is named by kind alone."""
        try:
            return work()
        except Exception as error:
            raise InputError(
                f"generator '{self.name}' failed to {task} ({type(error).__name__})"
            ) from None
