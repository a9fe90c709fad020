"""P19: discrete noise of a library version that draws it wrongly, which no bundle would tell.

OpenDP 0.14.0 and 0.14.1 divide rationals wrongly, so that their additive noise is biased. A fit
refuses them before it is charged, a certificate names library and version, and verify reads it.
"""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth._util import dependencies
from dpsynth._util.dependencies import installed, load_fitting, too_old
from dpsynth.certificate import Certificate, certify
from dpsynth.errors import ArtifactError, InputError
from dpsynth.privacy import NoiseSource
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare

DEMO = Schema.load("demo")
BIASED = ["0.13.0", "0.14.0", "0.14.1", "0.14", "0.14.1rc1", "0.9.9"]
SOUND = ["0.14.2", "0.15.0", "0.16.0", "1.0.0", "0.14.10"]


def certificate(model: str, **options: Any) -> dict[str, Any]:
    plan = prepare(DEMO, epsilon=2.0, delta=1e-7, model=model).plan
    return certify(DEMO, plan, model=model, charge=None, **options)


@pytest.mark.parametrize("version", BIASED)
def test_a_biased_library_is_refused_before_the_charge(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(library: str) -> str:
        return version if library == "opendp" else "1.0"

    monkeypatch.setattr(dependencies, "installed", found)
    with pytest.raises(InputError, match="biased; nothing was charged.*opendp>=0.14.2"):
        load_fitting(networks=False)
    assert too_old("opendp", version)
    assert NoiseSource("discrete", "opendp", version).fault is not None


@pytest.mark.parametrize("version", SOUND)
def test_a_sound_one_is_taken(version: str) -> None:
    assert not too_old("opendp", version)
    assert NoiseSource("discrete", "opendp", version).fault is None
    # the broken twin compares texts, by which 0.9.9 is late and 0.14.10 early
    assert ("0.9.9" < "0.14.2") is False and ("0.14.10" < "0.14.2") is True


def test_the_certificate_names_what_drew_each_kind_of_noise() -> None:
    counts, trained = certificate("mixture"), certificate("tvae")
    opendp = {"noise": "discrete", "library": "opendp", "version": installed("opendp")}
    assert counts["noise"] == [opendp]
    assert trained["noise"][0] == opendp and trained["noise"][1]["noise"] == "gaussian"
    assert certificate("mixture", seeded=True)["noise"][0]["library"] == "numpy"


@pytest.mark.parametrize("change", [[], "both", "words", "doubled"])
def test_a_certificate_names_exactly_the_noise_of_its_events(change: Any) -> None:
    document = certificate("mixture")
    (one,) = document["noise"]
    document["noise"] = {
        "both": [one, one | {"noise": "gaussian"}],
        "words": [one | {"library": "trust me, it is fine"}],
        "doubled": [one, one],
    }.get(str(change), change)
    with pytest.raises(ArtifactError, match="noise"):
        Certificate.from_dict(document)


def test_noise_of_another_library_is_a_fault() -> None:
    assert NoiseSource("discrete", "numpy", "2.0.0").fault is not None
    assert NoiseSource("gaussian", "OpenSSL", "3.0.13").fault is None
