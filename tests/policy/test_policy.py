"""The policy document: read with every mistake at once, written back, and groups of datasets."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsynth.errors import InputError
from dpsynth.policy import Cap, Policy
from dpsynth.policy.limits import Caps, DatasetGroup, Population, Tier

FULL: dict[str, Any] = {
    "dpsynth_policy": 1,
    "name": "Data-sharing office, 2026",
    "delta": 1e-5,
    "caps": {
        "release": {"epsilon": 0.405, "basis": "law: odds move by at most 1.5"},
        "year": {"epsilon": 0.5, "basis": "ethics board 2026-03"},
        "total": {"epsilon": 5, "basis": "ten years"},
    },
    "tiers": {
        "rare-disease": {
            "caps": {"release": {"epsilon": 0.2, "basis": "board"}},
            "releases_a_year": 1,
            "least": {"epsilon": 0.17, "basis": "accuracy floor"},
        },
        "standard": {"releases_a_year": 2},
    },
    "datasets": {"diabetes": ["Diabetes-2019", "diabetes-2020"]},
    "models": ["tvae", "mixture"],
    "minimum_population": {"value": 5000, "basis": "board"},
    "allow_refuse": False,
    "gates": ["membership"],
    "sign_off": {"people": 2},
}

SMALL: dict[str, Any] = {
    "dpsynth_policy": 1,
    "name": "small",
    "delta": 1e-6,
    "caps": {"total": {"epsilon": 3, "basis": "board"}},
}


def changed(path: str, value: object, base: dict[str, Any] = FULL) -> dict[str, Any]:
    """A copy with one value replaced, or removed where it is ``...``."""
    document = copy.deepcopy(base)
    *way, last = path.split("/")
    part = document
    for key in way:
        part = part[key]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    return document


def test_every_part_is_read() -> None:
    assert Policy.from_dict(FULL, "test") == Policy(
        name="Data-sharing office, 2026",
        delta=1e-5,
        caps=Caps(
            release=Cap(0.405, "law: odds move by at most 1.5"),
            year=Cap(0.5, "ethics board 2026-03"),
            total=Cap(5.0, "ten years"),
        ),
        tiers=(
            Tier(
                "rare-disease",
                Caps(release=Cap(0.2, "board")),
                releases_a_year=1,
                least=Cap(0.17, "accuracy floor"),
            ),
            Tier("standard", releases_a_year=2),
        ),
        groups=(DatasetGroup("diabetes", ("diabetes", "diabetes-2019", "diabetes-2020")),),
        models=("mixture", "tvae"),
        minimum_population=Population(5000, "board"),
        allow_refuse=False,
        gates=("membership",),
        sign_off=2,
    )


def test_what_is_absent_is_allowed() -> None:
    policy = Policy.from_dict(SMALL, "test")
    assert policy.models is None and policy.allow_refuse and policy.minimum_population is None
    assert (policy.tiers, policy.groups, policy.gates, policy.sign_off) == ((), (), (), 0)


@pytest.mark.parametrize("document", [FULL, SMALL])
def test_documents_round_trip_with_their_digest(document: dict[str, Any]) -> None:
    policy = Policy.from_dict(document, "test")
    again = Policy.from_dict(json.loads(json.dumps(policy.to_dict())), "test")
    assert again == policy and again.digest == policy.digest
    assert len(policy.digest) == 64


def test_the_digest_is_of_what_is_said_not_of_how() -> None:
    policy = Policy.from_dict(FULL, "test")
    told_otherwise = changed("models", ["mixture", "tvae"])
    told_otherwise["datasets"] = {"DIABETES": ["diabetes-2020", "diabetes", "diabetes-2019"]}
    assert Policy.from_dict(told_otherwise, "test").digest == policy.digest
    for path, value in [("delta", 1e-6), ("caps/year/epsilon", 0.6), ("sign_off", ...)]:
        assert Policy.from_dict(changed(path, value), "test").digest != policy.digest


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_files_are_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"policy{suffix}"
    write = yaml.safe_dump if suffix == ".yaml" else json.dumps
    path.write_text(write(FULL))
    assert Policy.load(path) == Policy.load(str(path)) == Policy.from_dict(FULL, "test")


def test_a_number_with_an_exponent_is_a_number(tmp_path: Path) -> None:
    """YAML 1.1 reads 1e-5 as a text; nobody means that here."""
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(SMALL).replace("delta: 1.0e-06", "delta: 1e-6"))
    assert "delta: 1e-6\n" in path.read_text()
    assert Policy.load(path).delta == 1e-6


def test_names_that_share_patients_are_one_budget_whatever_their_case() -> None:
    policy = Policy.from_dict(FULL, "test")
    everyone = ("diabetes", "diabetes-2019", "diabetes-2020")
    for name in ("diabetes", "DIABETES-2019", "Diabetes-2020"):
        assert policy.group_of(name) == "diabetes"
        assert policy.members(name) == everyone
    assert policy.group_of("Heart") == "heart"
    assert policy.members("Heart") == ("heart",)


def test_tiers_are_found_whatever_their_case() -> None:
    policy = Policy.from_dict(FULL, "test")
    tier = policy.tier("Rare-Disease")
    assert tier is not None and tier.name == "rare-disease"
    assert policy.tier(None) is None and policy.tier("other") is None


MISTAKES: list[tuple[str, object, str]] = [
    ("dpsynth_policy", ..., "dpsynth_policy: is missing"),
    ("dpsynth_policy", 2, "version 1, not 2"),
    ("dpsynth_policy", True, "version 1, not true"),
    ("name", ..., "name: is missing"),
    ("name", 2026, "name: text is expected"),
    ("delta", ..., "delta: is missing"),
    ("delta", 0, "delta: a number of at least 1e-10"),
    ("delta", 1, "delta: a number of at least 1e-10"),
    ("delta", "small", "delta: a number is expected"),
    ("caps", ..., "caps: is missing"),
    ("caps", {}, "caps: is empty"),
    ("caps/release/basis", ..., "caps.release.basis: is missing"),
    ("caps/release/basis", " ", "caps.release.basis: the text is blank"),
    ("caps/release/epsilon", ..., "caps.release.epsilon: is missing"),
    ("caps/release/epsilon", -1, "caps.release.epsilon: a number above 0"),
    ("caps/release/epsilon", 0, "caps.release.epsilon: a number above 0"),
    ("caps/release/epsilon", float("nan"), "caps.release.epsilon: the number is not finite"),
    ("caps/release/epsilon", float("inf"), "caps.release.epsilon: the number is not finite"),
    ("caps/release", 0.4, "caps.release: an epsilon and its basis are expected"),
    ("caps/yaer", {}, "caps.yaer: there is no such key here (did you mean 'year'?)"),
    ("tiers/a b", {}, "tiers.a b: the name of a tier has 1 to 64"),
    ("tiers/STANDARD", {}, "differs from 'standard' in case only"),
    ("tiers/standard/releases_a_year", 0, "tiers.standard.releases_a_year: a whole number"),
    ("tiers/standard/releases_a_year", 1.5, "tiers.standard.releases_a_year: a whole number"),
    ("tiers/standard/least", {"epsilon": 1}, "tiers.standard.least.basis: is missing"),
    ("tiers/standard/cap", {}, "tiers.standard.cap: there is no such key"),
    ("datasets/heart", [], "datasets.heart: is empty"),
    ("datasets/heart", ["DIABETES-2019"], "'diabetes-2019' is in 'diabetes' already"),
    ("datasets/diabetes-2020", ["x"], "'diabetes-2020' is in 'diabetes' already"),
    ("datasets/heart", ["a b"], "datasets.heart: the name of a dataset"),
    ("datasets/heart", [2019], "datasets.heart[0]: text is expected"),
    ("datasets/heart", "x", "datasets.heart: a list is expected"),
    ("models", ["tave"], "models: 'tave' is not a model (did you mean 'tvae'?)"),
    ("models", [], "models: allows none"),
    ("minimum_population", 5000, "minimum_population: a value and its basis are expected"),
    ("minimum_population/basis", ..., "minimum_population.basis: is missing"),
    ("minimum_population/value", 0, "minimum_population.value: a whole number"),
    ("allow_refuse", "no", "allow_refuse: true or false"),
    ("gates", ["a", ""], "gates: one of the names is blank"),
    ("sign_off", {}, "sign_off.people: is missing"),
    ("sign_off/people", -1, "sign_off.people: a whole number"),
    ("sign_off/people", 21, "sign_off.people: at most 20"),
    ("capps", {}, "capps: there is no such key here (did you mean 'caps'?)"),
    ("name", "TODO", "name: is still TODO"),
    ("name", "office\x1b[2J", "name: the text has a line break or another character"),
    ("caps/year/basis", "a\x07b", "caps.year.basis: the text has a line break"),
    ("caps/year/basis", "board\n", "caps.year.basis: the text has a line break"),
    ("caps/year/basis", "a\u202eb", "caps.year.basis: the text has a line break"),
    ("tiers/rare-disease/least/basis", "\x9b2J", "tiers.rare-disease.least.basis: the text has"),
    ("minimum_population/basis", "a\tb", "minimum_population.basis: the text has a line break"),
    ("gates", ["a", "b\x1b[0m"], "gates: 'b\\x1b[0m' has a line break"),
    ("a\x1b[2J", 1, "a\\x1b[2J: there is no such key here"),
]


@pytest.mark.parametrize(("path", "value", "message"), MISTAKES)
def test_a_mistake_is_named_with_its_place(path: str, value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Policy.from_dict(changed(path, value), "office.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("policy office.yaml has 1 mistake:\n")
    assert caught.value.exit_code == 2
    assert all(line.isprintable() for line in str(caught.value).split("\n"))


def test_all_mistakes_are_listed_at_once_a_line_each() -> None:
    document = changed("delta", 2)
    document["caps"]["year"] = {"epsilon": 0.5}
    document["models"] = ["vae"]
    with pytest.raises(InputError) as caught:
        Policy.from_dict(document, "office.yaml")
    head, *lines = str(caught.value).splitlines()
    assert head == "policy office.yaml has 3 mistakes:"
    assert [line.strip().split(":")[0] for line in lines] == ["delta", "caps.year.basis", "models"]


@pytest.mark.parametrize("document", [None, [], "policy", 3, {1: 2}])
def test_another_shape_is_a_list_of_mistakes(document: Any) -> None:
    with pytest.raises(InputError, match="policy x has"):
        Policy.from_dict(document, "x")


BOMB = "a: &a [1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 8)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: a\nname: b\n", "occurs twice"),
        (BOMB, "stands for more than"),
        ("a: !!python/object:os.system x\n", "tags are not read"),
        ("", "the file is empty"),
        ("a: [", "not YAML"),
        ("x" * (2**20 + 1), "larger than 1 MiB"),
    ],
)
def test_files_that_are_no_plain_documents_are_refused(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        Policy.load(path)
    assert "schema policy" not in str(caught.value) and "schema " + str(path) not in str(
        caught.value
    )


def test_files_that_are_not_there_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        Policy.load(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="ends in"):
        Policy.load(tmp_path / "policy.txt")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(InputError, match="not a plain file"):
        Policy.load(tmp_path / "folder.yaml")


def test_policies_need_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from dpsynth.policy import policy, rules, advice\n"
        f"policy.Policy.from_dict({SMALL!r}, 'x')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd="/")
