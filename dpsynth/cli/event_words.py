"""An event of a plan in a few words, for a terminal."""

from __future__ import annotations

from dpsynth.cli.discoveries import noise_of
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    KeyCounts,
    LaplaceCounts,
    LinkCounts,
    PoissonSgd,
    RowSums,
    StaySums,
    TeacherVotes,
    TopChoice,
)


def describe_event(event: Event, unit: str = "") -> str:
    """Say in a few words what noise an event adds.

    Of linked tables, ``unit`` is whom counts are of: there, each adds one row to a table of rows.
    """
    from dpsynth.certificate import noise_sd
    from dpsynth.privacy.pair_statistics import DEPARTURES, PRODUCTS
    from dpsynth.privacy.quality_budget import QUALITY

    if isinstance(event, PoissonSgd):
        steps = "1 step" if event.steps == 1 else f"{event.steps} steps"
        return (
            f"{steps}, sampling rate {event.sampling_rate:g}, "
            f"noise multiplier {event.noise_multiplier:.4g}"
        )
    if isinstance(event, CodeDiscovery):
        return f"numbers of {unit or 'units'} by code; {noise_of(event)}"
    if isinstance(event, RowSums):
        return f"sums over {unit or 'rows'}; discrete Gaussian, sd {event.sigma:.4g}"
    if isinstance(event, TeacherVotes):
        return (
            f"votes of {event.teachers} teachers on {event.queries} rows; discrete Gaussian, "
            f"sd {event.sigma:.4g}"
        )
    if isinstance(event, LinkCounts):
        return (
            f"linked pairs at {event.cells} thresholds, at most {event.cap} of a record; discrete "
            f"Gaussian, sd {event.sigma:.4g}"
        )
    if isinstance(event, LaplaceCounts):
        return f"counts; discrete Laplace, scale {event.scale:.4g}"
    if isinstance(event, KeyCounts):
        return f"counts of keys from {event.threshold} on; discrete Gaussian, sd {event.sigma:.4g}"
    if isinstance(event, StaySums):
        return (
            f"{unit or 'units'} in {event.periods} periods; discrete Gaussian, noise multiplier "
            f"{event.relative_noise:.4g} for all together"
        )
    if isinstance(event, TopChoice):
        return f"{event.chosen} of {event.candidates} values; Gumbel, scale {event.scale:.4g}"
    sd = noise_sd(event)
    of_rows = f"counts of {unit or 'rows'}"
    shared = f"counts of {unit or 'units'}, shared by rows"
    counted = of_rows if event.unit_mass is None else shared
    if isinstance(event, ChosenHistograms) and event.name == QUALITY:
        return f"{event.most} public quality figures; discrete Gaussian, sd about {sd:.4g} rows"
    if isinstance(event, ChosenHistograms) and event.name == PRODUCTS:
        return (
            f"up to {event.most} sums of products of two columns' scores; discrete Gaussian, noise "
            f"multiplier {event.noise_multiplier:.4g} for all together"
        )
    if isinstance(event, ChosenHistograms) and event.name == DEPARTURES:
        return (
            f"{event.most} distances, one for each pair of columns; discrete Gaussian, sd {sd:.4g} "
            f"{unit or 'units'}"
        )
    if isinstance(event, ChosenHistograms):
        return (
            f"up to {event.most} histograms, {counted}; discrete Gaussian, sd {sd:.4g} if all are "
            "used"
        )
    noun = "histogram" if event.histograms == 1 else "histograms"
    return f"{event.histograms} {noun}, {counted}; discrete Gaussian, sd {sd:.4g}"
