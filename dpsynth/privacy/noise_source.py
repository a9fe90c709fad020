"""Which library drew the noise of a fit, and in which version: public, for whoever asks later.

A mistake that is found in a sampler years from now concerns the fits whose certificates name it.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

from dpsynth._util.dependencies import installed, too_old
from dpsynth._util.strict_json import check_keys, matching, names, text, version_text
from dpsynth.privacy.events import Event, PoissonSgd

DISCRETE, GAUSSIAN = "discrete", "gaussian"
SOURCES = {DISCRETE: ("opendp",), GAUSSIAN: ("OpenSSL", "LibreSSL", "AWS-LC")}


@dataclass(frozen=True)
class NoiseSource:
    """What drew one kind of noise.

    Attributes:
        noise: ``discrete``, of counts, or ``gaussian``, of DP-SGD.
        library: its name.
        version: as the library states it.
    """

    noise: str
    library: str
    version: str

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly one entry of a certificate."""
        check_keys(document, place, names(cls))
        return cls(
            noise=text(document["noise"], f"{place}.noise"),
            library=matching(
                document["library"], f"{place}.library", "[A-Za-z0-9._-]{1,20}", "name of a library"
            ),
            version=version_text(document["version"], f"{place}.version"),
        )

    @property
    def fault(self) -> str | None:
        """Say what is wrong with this source; None if nothing is known to be."""
        if self.library not in SOURCES.get(self.noise, ()):
            return f"{self.library} is not what dpsynth draws {self.noise} noise from"
        if too_old(self.library, self.version):
            return f"{self.library} {self.version} draws biased noise"
        return None


def kinds(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the kinds of noise that events need, in the order of a certificate."""
    samplers = {GAUSSIAN if isinstance(event, PoissonSgd) else DISCRETE for event in events}
    return tuple(sorted(samplers))


def noise_sources(events: Iterable[Event], *, seeded: bool) -> tuple[NoiseSource, ...]:
    """Say what draws the noise of a fit in this installation; ``seeded`` noise is NumPy's."""
    name, number = ssl.OPENSSL_VERSION.split()[:2]
    known = {DISCRETE: ("opendp", installed("opendp")), GAUSSIAN: (name, number)}
    numpy = ("numpy", installed("numpy"))
    return tuple(NoiseSource(kind, *(numpy if seeded else known[kind])) for kind in kinds(events))
