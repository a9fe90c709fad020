"""Settings of the generators: a public function of (population, columns, codes, epsilon).

Nothing here reads data, and nothing here imports a heavy library: a plan is made, and a certificate
checked, without torch. The figures behind each number are in docs/benchmarks.md; they were found on
simulated cohorts and on rows drawn from noisy histograms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dpsynth.errors import InputError
from dpsynth.models.base import Domain
from dpsynth.models.contrast_settings import MAX_COLUMN_WIDTH, contrast_shares, contrasts_first
from dpsynth.models.grain_settings import with_grains
from dpsynth.models.registry import GeneratorSpec, spec_of
from dpsynth.models.spending import spending_of
from dpsynth.privacy import (
    ChosenHistograms,
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    Share,
    gaussian_mu,
    round_up,
)
from dpsynth.privacy.events import UNDECIDED

ONE_WAY = "one-way histograms"
PAIRS = "two-way histograms"
AGAIN = "two-way histograms that stand out"
STEPS = "DP-SGD steps"

MAX_MASS = 5040
MAX_PAIRS = 5000
FEW_PAIRS = 150  # up to so many are measured once; more, again where they stand out
MAX_CELLS = 10_000  # bins of all columns together; their pairs are kept as one square
MAX_WIDTH = 4096  # of a layer of a network, far beyond the presets
STEPS_OF_FEW = 200  # of a round, where contrasts come first; all rounds are run
LARGE = 20_000  # units from which on finer bins and longer fits of the mixture pay
MIN_UNITS = 5_000  # of a fit by DP-SGD
MIN_SIGNAL, MAX_SIGNAL = 40, 500  # units times mu over codes; see `choose`
FINE = 250_000  # units times mu: from here on, noise leaves room for finer bins
EXPECTED_UNITS = 5_000  # of a private step; more cost time and gain little


@dataclass(frozen=True)
class Preset:
    """Settings of one fit.

    Attributes:
        bins: that a smooth numeric column is cut into, about.
        one_way: share of the budget for the one-way histograms; `contrast_settings` divides it for
            few patients.
        training: share for DP-SGD; the rest goes to the pairs.
        components: of the mixture.
        mixture_steps: of a round of its fit.
        tie: weight, in the mixture's loss, of the information between component and column.
        masked: width of the autoregressive network's hidden layer; 0 leaves a linear map.
        hidden: width of the hidden layers of encoder and decoder, or of critic and generator.
        latent: width of the latent vector; 0 where there is none.
        warm_steps: of training on rows of the mixture, free of charge.
        sampling_rate: of units, in each private step.
        steps: private steps.
        learning_rate: of the first private step.
        anchor: weight of the gradient on rows of the mixture beside the private one.
        rounds: steps of a critic for each turn of its generator.
        settling_steps: after the private steps, towards the mixture's pairs; free of charge.
    """

    bins: int
    one_way: float
    training: float
    components: int
    mixture_steps: int
    tie: float = 0.0
    masked: int = 0
    hidden: int = 0
    latent: int = 0
    warm_steps: int = 0
    sampling_rate: float = 0.1
    steps: int = 0
    learning_rate: float = 0.0
    anchor: float = 0.0
    rounds: int = 0
    settling_steps: int = 0

    def __post_init__(self) -> None:
        """Refuse widths that no fit has: a run from a stranger must not ask for all the memory.

        Raises:
            ValueError: if a width is out of range.
        """
        if not all(0 <= width <= MAX_WIDTH for width in (self.masked, self.hidden, self.latent)):
            raise ValueError(f"a network's widths lie between 0 and {MAX_WIDTH}")

    @classmethod
    def of(cls, model: str, domain: Domain, budget: PrivacyBudget) -> Preset:
        """Choose the settings of a model from public facts."""
        epsilon, units = budget.epsilon, domain.population
        mu = gaussian_mu(epsilon, budget.delta)
        large = units >= LARGE
        bins = 16 if large or epsilon > 6 else (8 if epsilon <= 4 else 12)
        if units * mu >= FINE:
            bins = 32
        noise = math.sqrt(len(domain.features)) * bins / (units * mu)
        one_way = min(0.25, max(0.1, 0.1 + 8 * (noise - 0.005)))
        level = 0 if epsilon <= 2 else (1 if epsilon <= 6 else 2)
        few = contrasts_first(domain, budget)
        steps = (300, 800, 1500) if large else (100, 150, 400)
        settings = cls(
            bins=bins,
            one_way=one_way,
            training=0.0,
            components=(500, 500, 1000)[level],
            mixture_steps=STEPS_OF_FEW if few else steps[level],
            tie=0.0 if few or runs_again(domain) else (2.0, 2.0, 0.0)[level],
        )
        return replace(settings, **spec_of(model).training(level, units))


def choose(domain: Domain, budget: PrivacyBudget) -> tuple[str, str]:
    """Choose a generator from public facts; returns its name and the reason.

    The signal is units times the budget's mu, over the codes of all columns. DP-SGD pays for what
    it adds with noise in the counts and in its own steps. Up to a large signal, a network that
    learns from the mixture is better or as good (`bench/auto_choice.py`). Below a small one the
    mixture is left as it is, but where patients are so few for their columns that products of
    contrasts come first (`bench/few_patients_real.py`). docs/benchmarks.md has the figures.
    """
    counted = "distilled" if contrasts_first(domain.with_visits(), budget) else "mixture"
    if domain.population < MIN_UNITS:
        return counted, (
            f"with fewer than {MIN_UNITS} units the noise of DP-SGD costs more than it teaches"
        )
    signal = domain.population * gaussian_mu(budget.epsilon, budget.delta) / codes_of(domain)
    if signal < MAX_SIGNAL:
        return counted if signal < MIN_SIGNAL else "distilled", (
            "for these numbers of units and columns and this budget, the noise of DP-SGD costs "
            "more than it teaches"
        )
    return (
        "autoregressive",
        "with these numbers of units and columns and this budget, DP-SGD adds what pairs of "
        "columns do not show",
    )


def mass_of(max_rows: int) -> int | None:
    """Return the integer mass M that a unit spreads over its rows; None where it has one row.

    The least common multiple of 1 .. max_rows, so that every share is whole: up to 10 rows. Beyond,
    M is 5040, and a unit of r rows weighs floor(M / r) r / M, rounded down. Privacy holds: a unit
    never weighs more than 1. But units do not weigh the same: at least 0.998 with a cap of 20 rows,
    0.98 with 100, 0.83 with 1000. At the largest cap, 4096, M / r is small, and units of 2521 rows
    weigh 0.50 (a share of 1 a row, of 5040), on average 0.80. Tables of so long histories count
    their longest ones at half.
    """
    if max_rows == 1:
        return None
    enough = min(max_rows, 11)  # the multiple of 1 .. 11 is above the largest mass
    return max(max_rows, min(math.lcm(*range(1, enough + 1)), MAX_MASS))


def shares_of(model: str, domain: Domain, budget: PrivacyBudget) -> tuple[Share, ...]:
    """Name every mechanism that a fit of the model runs, with its share of the budget.

    Args:
        model: the generator's name.
        domain: public facts; the hidden column is added where the model uses it.
        budget: the whole fit's budget.
    """
    shares = _shares_of(model, domain, budget, few=contrasts_first(domain.with_visits(), budget))
    spec = spec_of(model)
    if spec.outside is not None:
        return shares
    mass = mass_of(domain.max_rows) if spec.measures_pairs else None
    return with_grains(shares, domain, mass)


def _shares_of(
    model: str, domain: Domain, budget: PrivacyBudget, *, few: bool
) -> tuple[Share, ...]:
    spec = spec_of(model)
    if spec.outside is not None:
        return _outside_shares(spec, domain, budget)
    if not spec.measures_pairs:
        return (Share(one_way_event(domain, weighted=False), 1.0),)
    check_width(model, domain)
    domain = domain.with_visits()
    preset = Preset.of(model, domain, budget)
    one_way = one_way_event(domain, weighted=True)
    if few:
        tables = _pairs_event(PAIRS, domain)
        shares = contrast_shares(domain, budget, one_way, tables, preset.training)
        return (*shares, *_steps(preset))
    shares = [Share(one_way, preset.one_way)]
    rest = 1.0 - preset.one_way - preset.training
    if runs_again(domain):
        names = (PAIRS, AGAIN)
        shares += [Share(_pairs_event(name, domain), rest / len(names)) for name in names]
    else:
        shares.append(Share(_pairs_event(PAIRS, domain), rest))
    return (*shares, *_steps(preset))


def _steps(preset: Preset) -> tuple[Share, ...]:
    if preset.training == 0:
        return ()
    steps = PoissonSgd(STEPS, preset.sampling_rate, preset.steps, UNDECIDED)
    return (Share(steps, preset.training),)


def _outside_shares(
    spec: GeneratorSpec, domain: Domain, budget: PrivacyBudget
) -> tuple[Share, ...]:
    """Turn what a generator of another package would spend into shares of dpsynth's own events."""
    spending = spending_of(spec, domain.with_visits(), budget)
    events = outside_events(domain)
    shares = [Share(events[ONE_WAY], spending.columns)]
    if spending.pairs > 0:
        check_width(spec.name, domain)
        shares.append(Share(events[PAIRS], spending.pairs))
    if spending.training > 0:
        steps = PoissonSgd(STEPS, spending.sampling_rate, spending.steps, UNDECIDED)
        shares.append(Share(steps, spending.training))
    return tuple(shares)


def outside_events(domain: Domain) -> dict[str, Event]:
    """Return the events on counts that a generator of another package can run, by name.

    They follow from the schema alone, so that a bundle is verified without the package. Beside
    them it can run `PoissonSgd` by the name of `STEPS`, of any rate and number.
    """
    whole = domain.with_visits()
    return {
        ONE_WAY: one_way_event(whole, weighted=True),
        PAIRS: _pairs_event(PAIRS, whole),
    }


def one_way_event(domain: Domain, *, weighted: bool) -> JointHistograms:
    """Return the joint one-way histograms of a domain, before their noise is set."""
    return JointHistograms(
        ONE_WAY,
        histograms=sum(len(feature.levels) for feature in domain.features),
        rows_per_unit=domain.max_rows,
        sigma=UNDECIDED,
        unit_mass=mass_of(domain.max_rows) if weighted else None,
    )


def check_width(model: str, domain: Domain) -> None:
    """Refuse tables so wide that all their pairs of bins would not fit into memory.

    Raises:
        InputError: for a model that fits pairs; a public fact, so it is known before any charge.
    """
    cells = codes_of(domain)
    if spec_of(model).measures_pairs and cells > MAX_CELLS:
        raise InputError(
            f"model '{model}' fits all pairs of columns, which have about {cells} bins; at most "
            f"{MAX_CELLS} fit into memory. Leave columns out (role: drop), or use independent"
        )


def codes_of(domain: Domain) -> int:
    """Bins of all columns together, about."""
    return sum(min(feature.size, MAX_COLUMN_WIDTH) for feature in domain.features)


def runs_again(domain: Domain) -> bool:
    """Whether a fit measures pairs in two rounds: a public function of the number of columns."""
    return _pairs_of(domain) > FEW_PAIRS


def _pairs_of(domain: Domain) -> int:
    columns = len(domain.features)
    return columns * (columns - 1) // 2


def _pairs_event(name: str, domain: Domain) -> ChosenHistograms:
    return ChosenHistograms(
        name,
        most=max(1, min(_pairs_of(domain), MAX_PAIRS)),
        rows_per_unit=domain.max_rows,
        noise_multiplier=UNDECIDED,
        unit_mass=mass_of(domain.max_rows),
    )


WARM_STEPS = 500  # of a network with a hidden layer


def autoregressive_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of the network and its training, by level of epsilon."""
    return {
        "training": (0.25, 0.25, 0.4)[level],
        "masked": (0, 64, 128)[level],
        "warm_steps": WARM_STEPS,
        "sampling_rate": min(0.1, max(0.01, round_up(EXPECTED_UNITS / units))),
        "steps": (200, 300, 400)[level],
        "learning_rate": (0.01, 0.005, 0.003)[level],
        "anchor": 2.0,
    }


def distilled_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of a network that learns from rows of the mixture alone.

    Where units are many, it adds up what each column says of the next: a hidden layer would also
    learn what single components say of rare rows, which is mostly noise. Where they are few, a
    hidden layer is as good, and sooner done.
    """
    if units >= MIN_UNITS:
        return {"masked": 0, "warm_steps": 3 * WARM_STEPS}
    return {"masked": 64, "warm_steps": WARM_STEPS}


def variational_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of encoder, decoder and their training, by level of epsilon.

    The private steps are those of `autoregressive`.
    """
    return autoregressive_training(level, units) | {
        "masked": 0,
        "hidden": 128,
        "latent": 16,
        "warm_steps": 2 * WARM_STEPS,
        "settling_steps": 4 * WARM_STEPS,
    }


def adversarial_training(level: int, units: int) -> dict[str, Any]:
    """Return the settings of a critic and its generator, by level of epsilon.

    The private steps are as many, and at the same rate, as those of `autoregressive`.
    """
    return autoregressive_training(level, units) | {
        "training": (0.1, 0.15, 0.4)[level],
        "masked": 0,
        "hidden": 64,
        "latent": 8,
        "learning_rate": 0.02,
        "anchor": 1.0,
        "rounds": 4,
    }
