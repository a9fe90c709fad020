"""Entropy: the one source of randomness for noise, sampling of units, and shuffles.

Whoever can replay the noise can subtract it. So noise comes from the operating system's generator,
draw by draw: ``OsEntropy`` holds no state, takes no seed, and leaves nothing that could be stored.
The float32 normals of DP-SGD, millions a fit, are bits of OpenSSL's generator (AES-256 in counter
mode, NIST SP 800-90A), which gets 32 fresh bytes of the operating system before each draw: a copy
of a process or of its machine does not repeat the noise. ``SeededEntropy`` is for tests; whatever
it touched is not releasable.

Which library drew the noise of a fit, and in which version: public, for whoever asks later.

A mistake that is found in a sampler years from now concerns the fits whose certificates name it.
"""

from __future__ import annotations

import math
import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpsynth._util.dependencies import installed, too_old
from dpsynth._util.strict_json import check_keys, matching, names, text, version_text
from dpsynth.errors import InputError
from dpsynth.privacy.events import Event, PoissonSgd

Size: TypeAlias = int | tuple[int, ...]

_BLOCK = 1 << 14  # normals made at a time: the work stays in the processor's cache


class Entropy(Protocol):
    """A source of random draws; ``releasable`` says whether its noise can be relied on."""

    releasable: bool

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Draw uniform floats in [0, 1), multiples of 2^-53."""
        ...

    def normal(self, size: Size, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Draw standard normals as float64 or float32."""
        ...

    def integers(self, low: int, high: int, size: Size) -> NDArray[np.int64]:
        """Draw integers uniformly from low (included) to high (excluded)."""
        ...

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Draw a uniform order of 0 .. count - 1."""
        ...

    def generator(self) -> np.random.Generator:
        """Return a fresh NumPy generator, for shuffles and draws that hide nothing."""
        ...

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Draw integers z with P(z) proportional to exp(-z^2 / (2 sigma^2))."""
        ...

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Draw integers z with P(z) proportional to exp(-|z| / scale)."""
        ...

    def top(self, scores: NDArray[np.int64], count: int, scale: float) -> list[int]:
        """Return the places of the largest scores after Gumbel noise of this scale, best first."""
        ...


class OsEntropy:
    """Randomness of the operating system (os.urandom), never stored and never seeded."""

    releasable = True

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Draw uniform floats in [0, 1), multiples of 2^-53."""
        units: NDArray[np.float64] = (_words(_count(size)) >> np.uint64(11)).astype(np.float64)
        units *= 2.0**-53
        return units.reshape(size)

    def normal(self, size: Size, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Draw standard normals as float64 or float32, by Box and Muller's transform.

        The radius comes from 53 bits, so values reach to 8.5 standard deviations; the angle from
        53 bits, or 32 for float32. Floating-point normals are not exact, see "floating_point" in a
        certificate.
        """
        out = np.empty(_count(size), _float_type(dtype))
        make = _box_muller if out.dtype == np.float64 else _box_muller_single
        for start in range(0, out.size, _BLOCK):
            part = out[start : start + _BLOCK]
            part[:] = make(part.size)
        return out.reshape(size)

    def integers(self, low: int, high: int, size: Size) -> NDArray[np.int64]:
        """Draw integers uniformly from low (included) to high (excluded), without bias.

        Words of 64 bits beyond the last whole multiple of the range are drawn again.
        """
        span = _span(low, high)
        count = _count(size)
        limit = np.uint64((2**64 // span) * span - 1)
        words = _words(count)
        while (bad := np.flatnonzero(words > limit)).size:
            words[bad] = _words(bad.size)
        return ((words % np.uint64(span)).astype(np.int64) + low).reshape(size)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Draw a uniform order of 0 .. count - 1, by sorting distinct random keys."""
        while True:
            keys = _words(count)
            order = np.argsort(keys)
            ranked = keys[order]
            if not (ranked[1:] == ranked[:-1]).any():  # equal keys would favour an order
                return order.astype(np.int64)

    def generator(self) -> np.random.Generator:
        """Return a fresh NumPy generator, for shuffles and draws that hide nothing."""
        return np.random.default_rng(int.from_bytes(os.urandom(32), "little"))

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussian integers exactly, by OpenDP: about 14 microseconds a draw.

        OpenDP takes ``sigma`` as the exact rational that the float is, samples with integer
        arithmetic only (Canonne, Kamath, Steinke, arXiv 2004.00010, Algorithm 3), and uses the
        operating system's randomness.
        """
        # not opendp.prelude, which loads scikit-learn and polars
        from opendp import domains, measurements, metrics, mod

        _require_sigma(sigma)
        mod.enable_features("contrib")
        space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l2_distance(T="f64")
        mechanism = measurements.make_gaussian(*space, scale=float(sigma))
        return np.array(mechanism([0] * size), np.int64).reshape(size)

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace integers exactly, by OpenDP (Algorithm 2 of the same paper)."""
        from opendp import domains, measurements, metrics, mod

        _require_sigma(scale)
        mod.enable_features("contrib")
        space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.l1_distance(T="i64")
        mechanism = measurements.make_laplace(*space, scale=float(scale))
        return np.array(mechanism([0] * size), np.int64).reshape(size)

    def top(self, scores: NDArray[np.int64], count: int, scale: float) -> list[int]:
        """Return the places of the largest scores after Gumbel noise, best first, by OpenDP."""
        from opendp import domains, measurements, measures, metrics, mod

        mod.enable_features("contrib")
        space = domains.vector_domain(domains.atom_domain(T="i64")), metrics.linf_distance(T="i64")
        mechanism = measurements.make_noisy_top_k(
            *space, measures.zero_concentrated_divergence(), k=count, scale=float(scale)
        )
        return [int(place) for place in mechanism([int(score) for score in scores])]


class SeededEntropy:
    """Repeatable randomness for tests: correct in law, worthless as protection."""

    releasable = False

    def __init__(self, seed: int) -> None:
        """Start from a seed."""
        self._rng = np.random.default_rng(seed)

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Draw uniform floats in [0, 1), multiples of 2^-53."""
        return self._rng.random(size)

    def normal(self, size: Size, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Draw standard normals as float64 or float32."""
        return self._rng.standard_normal(size).astype(_float_type(dtype))

    def integers(self, low: int, high: int, size: Size) -> NDArray[np.int64]:
        """Draw integers uniformly from low (included) to high (excluded)."""
        _span(low, high)
        return self._rng.integers(low, high, size)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """Draw a uniform order of 0 .. count - 1."""
        return self._rng.permutation(count)

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator of its own stream."""
        return self._rng.spawn(1)[0]

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """Draw discrete Gaussian integers: two-sided geometric proposals, thinned.

        Source: Canonne, Kamath, Steinke, arXiv 2004.00010, Algorithm 3, with floats.
        """
        _require_sigma(sigma)
        scale = math.floor(sigma) + 1
        stop = -math.expm1(-1 / scale)
        out = np.empty(0, np.int64)
        while out.size < size:
            many = 2 * (size - out.size) + 16
            value = self._rng.geometric(stop, many) - self._rng.geometric(stop, many)
            keep = np.exp(-((np.abs(value) - sigma**2 / scale) ** 2) / (2 * sigma**2))
            out = np.concatenate([out, value[self._rng.random(many) < keep]])
        return out[:size]

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """Draw discrete Laplace integers: the difference of two geometric ones."""
        _require_sigma(scale)
        stop = -math.expm1(-1 / scale)
        drawn: NDArray[np.int64] = self._rng.geometric(stop, size) - self._rng.geometric(stop, size)
        return drawn

    def top(self, scores: NDArray[np.int64], count: int, scale: float) -> list[int]:
        """Return the places of the largest scores after Gumbel noise of this scale, best first."""
        noisy = scores + self._rng.gumbel(0.0, scale, len(scores))
        return [int(place) for place in np.argsort(-noisy)[:count]]


def _box_muller(count: int) -> NDArray[np.float64]:
    """Standard normals, two from each pair of random words."""
    pairs = (count + 1) // 2
    words = _words(2 * pairs)
    radius = _radius(words[:pairs])
    angle = (words[pairs:] >> np.uint64(11)) * (2 * math.pi * 2.0**-53)
    normals = np.concatenate([np.cos(angle), np.sin(angle)])
    normals[:pairs] *= radius
    normals[pairs:] *= radius
    return normals[:count]


def _box_muller_single(count: int) -> NDArray[np.float32]:
    """The same in single precision, but for the radius; bits of OpenSSL: six times as fast."""
    pairs = (count + 1) // 2
    ssl.RAND_add(os.urandom(32), 32.0)
    bits = ssl.RAND_bytes(12 * pairs)
    radius = _radius(np.frombuffer(bits, np.uint64, pairs)).astype(np.float32)
    angle = np.frombuffer(bits, np.uint32, pairs, 8 * pairs).astype(np.float32)
    angle *= np.float32(2 * math.pi * 2.0**-32)
    normals = np.empty(2 * pairs, np.float32)
    np.cos(angle, out=normals[:pairs])
    np.sin(angle, out=normals[pairs:])
    normals[:pairs] *= radius
    normals[pairs:] *= radius
    return normals[:count]


def _radius(words: NDArray[np.uint64]) -> NDArray[np.float64]:
    """sqrt(-2 ln u), u in (0, 1] from the upper 53 bits of each word: its logarithm exists."""
    radius = ((words >> np.uint64(11)) + np.uint64(1)).astype(np.float64)
    radius *= 2.0**-53
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    return radius


def _words(count: int) -> NDArray[np.uint64]:
    """Uniform words of 64 bits from the operating system."""
    return np.frombuffer(bytearray(os.urandom(8 * count)), np.uint64)


def _count(size: Size) -> int:
    return size if isinstance(size, int) else math.prod(size)


def _span(low: int, high: int) -> int:
    if not -(2**63) <= low < high <= 2**63 - 1:
        raise InputError("integers need low < high, both within 64 bits")
    return high - low


def _float_type(dtype: DTypeLike) -> np.dtype[Any]:
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise InputError("normals are float64 or float32")
    return kind


def _require_sigma(sigma: float) -> None:
    if not (math.isfinite(sigma) and sigma > 0):
        raise InputError("sigma must be a finite number above 0")


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
