"""How many bytes the run of a fit may take: a public bound, to make sure of the room beforehand."""

from __future__ import annotations

from dpsynth.models.base import Domain
from dpsynth.models.presets import WIDEST_COLUMN, Preset
from dpsynth.privacy import PrivacyBudget

_DOCUMENT = 2**18  # bytes: the certificate and the model's configuration
_SPREAD = 4  # a column has fewer bins than so many times those that its preset asks for


def most_bytes(model: str, domain: Domain, budget: PrivacyBudget) -> int:
    """Return more bytes than a run's arrays and its document, less the schema, will take."""
    domain = domain.with_visits()
    shares = 16 * sum(domain.sizes) + 2**11 * len(domain.sizes) + _DOCUMENT
    if model == "independent":
        return shares
    preset = Preset.of(model, domain, budget)
    widest = _SPREAD * max(preset.bins, WIDEST_COLUMN)
    bins = sum(min(size, widest) for size in domain.sizes)
    wide = preset.components + 4 * (preset.masked + preset.hidden + preset.latent)
    if model == "autoregressive":
        wide += bins  # its linear map, from each bin to each other one
    return shares + 4 * bins * wide + 4 * preset.hidden * (preset.components + preset.hidden)
