"""How many real patients are behind a condition, by the model: of few, it knows little."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth._util.formatting import counted
from dpsynth.models.grain_settings import GRAINS
from dpsynth.synthesis.drawing.fitted import Fitted
from dpsynth.synthesis.drawing.sampler import Sampler


@dataclass(frozen=True)
class Support:
    """What a run's model says of a condition; it follows from what was released.

    Attributes:
        share: of rows that meet the condition.
        units: expected number of privacy units behind it, of the declared population.
        noise: standard deviation of the noise in a released count, in units; 0 if unknown.
        rows: that are drawn.
        proposals: effective number of those that the rows are chosen from; None where rows are not
            chosen among proposals, but drawn under the condition or left out.
    """

    share: float
    units: float
    noise: float
    rows: int = 0
    proposals: float | None = None

    @classmethod
    def of(cls, sampler: Sampler, run: Fitted, rows: int = 0) -> Support:
        """Ask a sampler with a condition, of which so many rows will be drawn."""
        share = sampler.share()
        events = [] if run.certificate is None else run.certificate["events"]
        noise = [
            event["sigma"] / (event.get("unit_mass") or 1)
            for event in events
            if "sigma" in event and event["name"] != GRAINS  # of few cells, with noise of its own
        ]
        proposals = sampler.effective(rows) if rows else None
        population = run.schema.population.value
        return cls(share, share * population, max(noise, default=0.0), rows, proposals)

    @property
    def is_small(self) -> bool:
        """Whether noise of one count could hide, or make, all of these units."""
        return self.units < 3 * self.noise

    @property
    def words(self) -> str:
        """Say it in a line."""
        units = f"about {counted(round(self.units), 'unit')} of the population"
        if not self.is_small:
            return f"{self.share:.3g} of the rows, {units}"
        return (
            f"{self.share:.1g} of the rows, {units}: the noise of a count is {self.noise:.0f}, so "
            "the model knows little about such rows"
        )

    @property
    def lines(self) -> list[str]:
        """Say it in the lines of a command: the condition, and the proposals if there are any."""
        found = [f"condition   {self.words}"]
        if self.proposals is None:
            return found
        number = f"{counted(self.rows, 'row')} chosen among about {self.proposals:,.0f} effective"
        if self.proposals >= self.rows:
            return [*found, f"proposals   {number} ones"]
        each = self.rows / max(self.proposals, 1.0)
        advice = f"about {each:.1f} rows share each; loosen the condition, or draw fewer rows"
        return [*found, f"proposals   FEW: {number} ones, so {advice}"]

    def to_dict(self) -> dict[str, float | None]:
        """Return it for a document: share of the rows, units, noise and proposals."""
        return {
            "share": self.share,
            "units": self.units,
            "noise": self.noise,
            "proposals": self.proposals,
        }
