"""P16: whoever has the seed or the generator's state can subtract the noise.

The attack: know every seed that a user could set and everything the source object holds, run the
mechanism again on nothing, and subtract.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
import ssl
from collections.abc import Callable

import numpy as np
import pytest

from dpsynth.privacy import (
    Entropy,
    JointHistograms,
    OsEntropy,
    PaidEntropy,
    SeededEntropy,
    joint_histograms,
)

from ..support.bare_counts import Rows

pytestmark = pytest.mark.fresh_noise

SIZES = (40, 3)
EVENT = JointHistograms("counts", histograms=2, rows_per_unit=1, sigma=30.0)


def cohort(units: int) -> Rows:
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, size, (units, 1)) for size in SIZES], axis=-1)
    return Rows(codes.astype(np.uint16), np.ones((units, 1), bool))


def seed_everything() -> None:
    """Set every global seed there is."""
    random.seed(0)
    np.random.seed(0)
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)


def replayed(source: Entropy, release: Callable[[Entropy], np.ndarray]) -> bool:
    """Whether an attacker with the seeds and a copy of the source draws the same again."""
    seed_everything()
    stolen = pickle.loads(pickle.dumps(source))
    shallow = copy.deepcopy(source)
    released = release(source)
    attempts = []
    for attacker in (stolen, shallow):
        seed_everything()
        attempts.append(release(attacker))
    return any(np.array_equal(released, attempt) for attempt in attempts)


def histograms(source: Entropy) -> np.ndarray:
    paid = PaidEntropy([EVENT], source)
    return np.concatenate(joint_histograms(cohort(500), SIZES, EVENT, paid))


RELEASES: list[Callable[[Entropy], np.ndarray]] = [
    histograms,
    lambda source: source.normal(20),
    lambda source: source.normal(20, np.float32),
    lambda source: source.uniform(20),
    lambda source: source.integers(0, 2**60, 20),
    lambda source: source.permutation(60),
    lambda source: source.generator().random(20),
    lambda source: source.discrete_gaussian(1e6, 20),
]


@pytest.mark.parametrize("release", RELEASES)
def test_noise_of_the_operating_system_is_not_replayed(
    release: Callable[[Entropy], np.ndarray],
) -> None:
    assert replayed(SeededEntropy(1), release)  # the broken way, and the check sees it
    assert not replayed(OsEntropy(), release)


def test_seed_gives_the_exact_counts_away() -> None:
    """The attack in full against a seeded source: subtract, and each count is bare."""
    released = histograms(SeededEntropy(1))
    nobody = Rows(np.zeros((0, 1, 2), np.uint16), np.zeros((0, 1), bool))
    noise = np.concatenate(joint_histograms(nobody, SIZES, EVENT, SeededEntropy(1)))
    bare = np.concatenate(
        [np.bincount(c, minlength=s) for c, s in zip(cohort(500).codes[:, 0].T, SIZES, strict=True)]
    )
    assert np.array_equal(released - noise, bare)
    attempt = np.concatenate(
        joint_histograms(nobody, SIZES, EVENT, PaidEntropy([EVENT], OsEntropy()))
    )
    assert not np.array_equal(histograms(OsEntropy()) - attempt, bare)


def test_source_keeps_nothing() -> None:
    source = OsEntropy()
    for release in RELEASES:
        release(source)
    assert vars(source) == {}
    with pytest.raises(TypeError):
        OsEntropy(1)  # type: ignore[call-arg]
    assert OsEntropy.releasable
    assert not SeededEntropy.releasable


def test_draws_come_from_urandom_opendp_or_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fixed os.urandom the draws repeat: there is no second, weaker source behind them.

    OpenDP has its own, and so have the single normals of DP-SGD: OpenSSL, with the system's bytes
    mixed in at each draw.
    """
    stream = {"position": 0}

    def fixed(count: int) -> bytes:
        stream["position"] += 1
        return np.random.default_rng(stream["position"]).bytes(count)

    def again(release: Callable[[Entropy], np.ndarray]) -> np.ndarray:
        stream["position"] = 0
        return release(OsEntropy())

    monkeypatch.setattr(os, "urandom", fixed)
    for release in (*RELEASES[1:2], *RELEASES[3:-1]):
        assert np.array_equal(again(release), again(release))
        assert stream["position"] > 0
    single, discrete = RELEASES[2], RELEASES[-1]
    assert not np.array_equal(again(discrete), again(discrete))
    assert not np.array_equal(again(single), again(single))
    assert stream["position"] == 1
    monkeypatch.setattr(ssl, "RAND_bytes", fixed)
    assert np.array_equal(again(single), again(single))  # and nothing else beside it


def test_a_forked_process_does_not_repeat_the_noise() -> None:
    first = OsEntropy().normal(4, np.float32)
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(sending, OsEntropy().normal(4, np.float32).tobytes())
        os._exit(0)
    here = OsEntropy().normal(4, np.float32)
    there = np.frombuffer(os.read(receiving, 16), np.float32)
    os.waitpid(child, 0)
    assert not set(here) & set(there) and not set(first) & set(there)
