"""Which library drew the noise of a fit, and in which version: public, for whoever asks later.

A mistake that is found in a sampler years from now concerns the fits whose certificates name it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Self

from dpsynth.documents import check_keys, matching, names, text, version_text
from dpsynth.events import Event, PoissonSgd

DISCRETE, GAUSSIAN = "discrete", "gaussian"
SOURCES = {DISCRETE: ("opendp",), GAUSSIAN: ("OpenSSL", "LibreSSL", "AWS-LC")}
LEAST = {"opendp": (0, 14, 2)}  # 0.14.0 and 0.14.1 divide rationals wrongly: their noise is biased


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
    found = {GAUSSIAN if isinstance(event, PoissonSgd) else DISCRETE for event in events}
    return tuple(sorted(found))


def noise_sources(events: Iterable[Event], *, seeded: bool) -> tuple[NoiseSource, ...]:
    """Say what draws the noise of a fit in this installation; ``seeded`` noise is NumPy's."""
    name, number = ssl.OPENSSL_VERSION.split()[:2]
    known = {DISCRETE: ("opendp", installed("opendp")), GAUSSIAN: (name, number)}
    numpy = ("numpy", installed("numpy"))
    return tuple(NoiseSource(kind, *(numpy if seeded else known[kind])) for kind in kinds(events))


def too_old(library: str, stated: str) -> bool:
    """Whether a version is below the first one that draws correctly."""
    least = LEAST.get(library)
    if least is None:
        return False
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", stated)
    return found is not None and tuple(int(part or 0) for part in found.groups()) < least


def installed(distribution: str) -> str:
    """Return the version of an installed library, or ``unknown``."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown"
