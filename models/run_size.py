"""How many bytes the run of a fit may take: a public bound, to make sure of the room beforehand."""

from __future__ import annotations

from dpsynth.models.base import Domain
from dpsynth.models.contrast_settings import MAX_COLUMN_WIDTH
from dpsynth.models.presets import Preset
from dpsynth.models.registry import spec_of
from dpsynth.privacy import PrivacyBudget

_DOCUMENT = 2**18  # bytes: the certificate and the model's configuration
_SPREAD = 4  # a column has fewer bins than so many times those that its preset asks for

OUTSIDE = 2**26
"""Bytes that a generator of another package may keep: 64 MiB, which its adapter holds it to."""


def most_bytes(model: str, domain: Domain, budget: PrivacyBudget) -> int:
    """Return more bytes than a run's arrays and its document, less the schema, will take."""
    domain = domain.with_visits()
    shares = 16 * sum(domain.sizes) + 2**11 * len(domain.sizes) + _DOCUMENT
    spec = spec_of(model)
    if spec.outside is not None:
        return shares + OUTSIDE
    if not spec.measures_pairs:
        return shares
    preset = Preset.of(model, domain, budget)
    widest = _SPREAD * max(preset.bins, MAX_COLUMN_WIDTH)
    bins = sum(min(size, widest) for size in domain.sizes)
    within = 2 * len(domain.sizes) + 2**4  # of each bin: what scores within bins follow
    wide = within + preset.components + 4 * (preset.masked + preset.hidden + preset.latent)
    if spec.preset:
        wide += bins  # where it has a linear map, from each bin to each other one
    return shares + 4 * bins * wide + 4 * preset.hidden * (preset.components + preset.hidden)
