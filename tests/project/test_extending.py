"""The package of docs/extending.md: fitted, sampled, released, and verified without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.models import check_model, description_of, generator_class
from dpsynth.models.registry import KNOWN, model_names
from dpsynth.policy import Policy
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, Share
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare
from dpsynth.tables import simulate

from ..support.toy_package import FULL_NAME, install, toy_source

Cli = Callable[..., Any]
BUDGET = ("--epsilon", "3", "--delta", "1e-6")


def words_of(outcome: Any) -> str:
    return " ".join((outcome.out + outcome.err).split())


def done(outcome: Any) -> None:
    assert outcome.code == 0, words_of(outcome)


def refused(outcome: Any) -> str:
    assert outcome.code not in (0, 1)
    return words_of(outcome)


@pytest.mark.long
def test_the_toy_goes_the_whole_way(command_line: Cli, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        install(tmp_path / "site", patch, toy_source())
        data, run, bundle = tmp_path / "patients.csv", tmp_path / "run", tmp_path / "bundle"
        simulate(400, seed=1).to_csv(data, index=False)
        done(
            command_line(
                "fit", "demo", data, "--model", "toy", "--dataset", "demo", *BUDGET, "-o", run
            )
        )
        assert json.loads((run / "run.json").read_text())["model"] == FULL_NAME
        done(
            command_line(
                "sample", run, "--rows", "300", "--seed", "1", "-o", tmp_path / "table.csv"
            )
        )
        done(command_line("release", run, "--table", "table.csv", "-o", bundle))
        [entry] = Ledger.default().entries()
        assert entry.model == FULL_NAME
        card = (bundle / "CARD.md").read_text()
        assert "the package dpsynth-toy 0.1, which is not part of dpsynth" in card
        certificate = json.loads((bundle / "privacy.json").read_text())
        assert certificate["model"] == FULL_NAME
        assert any(
            "code of the package dpsynth-toy 0.1" in one for one in certificate["not_covered"]
        )
    sys.modules.pop("dpsynth_toy", None)
    assert model_names() == KNOWN  # it is gone
    done(command_line("verify", bundle))
    assert "which is not installed" in refused(command_line("sample", run, "-o", "other.csv"))


def charged() -> int:
    return len(Ledger.default().entries())


BROKEN = {
    "it cannot be imported": ("import torch\n", "import nothing_here\n", "cannot be loaded"),
    "no class": ("class Toy", "class Other", "cannot be loaded"),
    "spending fails": ("return Spending(", "return 1 / 0 or Spending(", "ZeroDivisionError"),
    "spending is none": ("return Spending(", "return dict(", "as a Spending"),
    "parts do not add up": ("columns=0.3", "columns=0.5", "must add up to 1"),
    "fit fails": (
        "        columns = mech",
        "        raise KeyError\n        columns = mech",
        "KeyErr",
    ),
    "an event is left out": (
        "mechanisms.train(self.network, learning_rate=0.02)",
        "pass",
        "does not",
    ),
    "an event is run twice": (
        "        self.network = Network(columns.sizes)",
        "        mechanisms.count_columns(); self.network = Network(columns.sizes)",
        "was run already",
    ),
    "an event is not planned": (
        "        self.network = Network(columns.sizes)",
        "        mechanisms.count_pairs([(0, 1)]); self.network = Network(columns.sizes)",
        "the plan has no event",
    ),
    "bins out of range": ("return drawn.numpy()", "return drawn.numpy() + 1000", "does not have"),
    "config is no JSON": ('{"sizes": list(self.network.sizes)}', '{"sizes": self}', "plain JSON"),
    "arrays are objects": ("p.detach().numpy()", "object()", "arrays of numbers"),
}


def quick(cls: type[PrivacyPlan], budget: PrivacyBudget, shares: Sequence[Share]) -> PrivacyPlan:
    """A plan of the right events that nobody accounted for; the fits below end before they run."""
    return cls(budget, tuple(share.event.with_mu(0.5) for share in shares), budget.epsilon)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_plug_in_gives_one_sentence_and_no_charge(
    broken: str, command_line: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, words = BROKEN[broken]
    source = toy_source()
    assert old in source
    install(tmp_path / "site", monkeypatch, source.replace(old, new, 1))
    before = charged()
    data = tmp_path / "patients.csv"
    simulate(50, seed=1).to_csv(data, index=False)
    monkeypatch.setattr(PrivacyPlan, "calibrate", classmethod(quick))
    arguments = ("fit", "demo", data, "--model", "toy", "--dataset", "demo")
    text = refused(command_line(*arguments, *BUDGET, "-o", "run"))
    assert words in text and "nothing was charged" in text and "Traceback" not in text
    assert charged() == before


def test_names_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "one", monkeypatch, toy_source())
    assert check_model("toy") == check_model(FULL_NAME) == FULL_NAME
    assert generator_class("toy").name == FULL_NAME
    assert "dpsynth-toy 0.1" in description_of(FULL_NAME)
    with pytest.raises(InputError, match="installed is dpsynth-toy==0.1:toy"):
        check_model("dpsynth-toy==0.2:toy")
    install(tmp_path / "two", monkeypatch, toy_source(), package="dpsynth-other")
    with pytest.raises(InputError, match="several packages"):
        check_model("toy")
    assert check_model(FULL_NAME) == FULL_NAME


def test_no_package_takes_a_name_of_dpsynth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch, toy_source(), name="mixture")
    assert generator_class("mixture").__module__ == "dpsynth.models.generators.mixture"
    with pytest.raises(InputError):
        check_model("dpsynth-toy==0.1:mixture")


def test_planning_gives_a_plug_in_public_facts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "site", monkeypatch, toy_source())
    prepared = prepare(Schema.load("demo"), epsilon=3.0, delta=1e-6, model="toy")
    assert prepared.model == FULL_NAME
    assert [event.name for event in prepared.plan.events] == ["one-way histograms", "DP-SGD steps"]


@pytest.mark.parametrize(
    ("models", "allowed"),
    [
        (None, False),
        (("mixture",), False),
        (("dpsynth-toy:toy",), True),
        ((FULL_NAME,), True),
        (("dpsynth-toy==0.2:toy",), False),
        (("dpsynth-other:toy",), False),
    ],
)
def test_a_policy_names_the_packages_that_it_allows(
    models: tuple[str, ...] | None, allowed: bool
) -> None:
    document = {
        "dpsynth_policy": 1,
        "name": "office",
        "delta": 1e-6,
        "caps": {"release": {"epsilon": 3, "basis": "the board"}},
    }
    if models is not None:
        document["models"] = list(models)
    policy = Policy.from_dict(document, "policy")
    assert policy.allows(FULL_NAME) is allowed
    assert policy.allows("mixture") is (models in (None, ("mixture",)))
