"""The settings of a run: read strictly, every mistake at once; what is written reads back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.bundle.format import About
from dpsynth.errors import InputError
from dpsynth.schema import Schema, without_share
from dpsynth.workflow import Settings

LEAST: dict[str, Any] = {
    "dpsynth_run": 1,
    "schema": "demo",
    "data": "extract.csv",
    "dataset": "cohort-a",
    "epsilon": 3,
    "delta": 1e-6,
    "output": "bundle",
}


def kept(folder: Path, document: object, name: str = "dpsynth.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document) if name.endswith("json") else yaml.safe_dump(document))
    return path


def refusal(folder: Path, document: object, **given: Any) -> str:
    with pytest.raises(InputError) as caught:
        Settings.load(kept(folder, document), **given)
    return str(caught.value)


def test_the_least_that_has_to_be_said(tmp_path: Path) -> None:
    settings = Settings.load(kept(tmp_path, LEAST))
    assert (settings.epsilon, settings.delta, settings.dataset) == (3.0, 1e-6, "cohort-a")
    assert (settings.holdout, settings.canaries, settings.attacks, settings.seed) == (
        0.2,
        1000,
        True,
        None,
    )
    assert settings.work_folder == tmp_path / "bundle.work"
    assert settings.internal_folder == tmp_path / "bundle.internal"


@pytest.mark.parametrize("name", ["schema", "data", "dataset", "epsilon", "delta", "output"])
def test_what_has_no_default_is_asked_for(tmp_path: Path, name: str) -> None:
    rest = {key: value for key, value in LEAST.items() if key != name}
    message = refusal(tmp_path, rest)
    assert "1 mistake" in message and f"  {name}: is missing" in message
    assert Settings.load(tmp_path / "dpsynth.yaml", **{name: LEAST[name]}).epsilon == 3.0


def test_every_mistake_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    message = refusal(
        tmp_path,
        LEAST
        | {"epsilon": -1, "delta": 2, "holdout": 1, "model": "tave", "rows": 0, "seed": -3}
        | {"canaires": 5, "dataset": "two words", "attacks": "yes", "purpose": "a\nb"}
        | {"about": {"licnce": "CC-BY-4.0"}, "publish_quality": 0, "gates": 3},
        output="",
    )
    assert message.startswith(f"settings {tmp_path}/dpsynth.yaml have 14 mistakes:\n"), message
    for part in (
        *("epsilon: a number above 0 is expected, not -1", "delta: a number above 0 and below 1"),
        *("holdout: a number at least 0 and below 1", "(did you mean 'tvae'?)"),
        *("rows: a whole number of at least 1", "seed: a whole number from 0"),
        *("canaires: there is no such key here (did you mean 'canaries'?)", "dataset: a name has"),
        *("attacks: true or false", "purpose: the text has a line break", "did you mean 'licence'"),
        *("publish_quality: a number above 0", "gates: text is expected", "output: the text is"),
    ):
        assert part in message, (part, message)


@pytest.mark.parametrize("name", ["passphrase", "key_password", "secret", "key"])
def test_no_passphrase_is_kept_in_a_file(tmp_path: Path, name: str) -> None:
    message = refusal(tmp_path, LEAST | {name: "open sesame"})
    assert (
        f"{name}: no key and no passphrase belong to a run" in message and "sesame" not in message
    )


@pytest.mark.parametrize("version", [None, 2, "1", True])
def test_only_its_own_version_is_read(tmp_path: Path, version: object) -> None:
    assert "dpsynth_run" in refusal(tmp_path, LEAST | {"dpsynth_run": version})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "", "is not a settings file"),
        ("a.yaml", "", "empty"),
        ("a.yaml", "- 1", "a mapping is expected"),
        ("a.yaml", "!!python/object:os.system x", "tags are not read"),
        ("a.yaml", "epsilon: 1\nepsilon: 2", "occurs twice"),
        ("a.json", "{", "not JSON"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: str, said: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        Settings.load(tmp_path / name)
    with pytest.raises(InputError, match="does not exist"):
        Settings.load(tmp_path / "absent.yaml")


def test_numbers_that_yaml_takes_for_texts(tmp_path: Path) -> None:
    path = kept(tmp_path, LEAST)
    path.write_text(path.read_text().replace("1.0e-06", "1e-6"))
    assert "1e-6" in path.read_text() and Settings.load(path).delta == 1e-6


def test_paths_of_a_file_are_relative_to_it_and_others_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = LEAST | {"schema": "my.schema.yaml", "data": "/abs/d.csv", "opt_out": "../out.csv"}
    kept(tmp_path / "conf", document)
    settings = Settings.load("conf/dpsynth.yaml", gates="gates.yaml")
    assert settings.schema == "conf/my.schema.yaml" and settings.data == Path("/abs/d.csv")
    assert settings.output == Path("conf/bundle") and settings.opt_out == Path("conf/../out.csv")
    assert settings.gates == Path("gates.yaml")
    assert Settings.load("conf/dpsynth.yaml", schema="demo").schema == "demo"


def test_what_is_given_wins_over_the_file_and_the_file_over_fallbacks(tmp_path: Path) -> None:
    path = kept(tmp_path, LEAST)
    settings = Settings.load(path, {"dataset": "env", "tier": "env"}, epsilon=1.0)
    assert (settings.epsilon, settings.dataset, settings.tier) == (1.0, "cohort-a", "env")


def test_folders_that_are_named_after_the_output_follow_it(tmp_path: Path) -> None:
    saved = LEAST | {"work": "bundle.work", "internal": "elsewhere"}
    settings = Settings.load(kept(tmp_path, saved), output="second")
    assert settings.work_folder == Path("second.work")
    assert settings.internal_folder == tmp_path / "elsewhere"
    assert Settings.load(tmp_path / "dpsynth.yaml").work_folder == tmp_path / "bundle.work"


def test_about_is_written_out_or_named(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    for value in ({"publisher": "A hospital"}, "about.yaml"):
        (tmp_path / "conf/about.yaml").write_text("publisher: A hospital\n")
        settings = Settings.load(kept(tmp_path / "conf", LEAST | {"about": value}))
        assert settings.about == About(publisher="A hospital")
        named = value if isinstance(value, dict) else "conf/about.yaml"
        assert settings.to_dict(tmp_path)["about"] == named  # its words are changed in one place
        settings.save(tmp_path / f"saved-{len(str(value))}.yaml")
        (tmp_path / "conf/about.yaml").write_text("publisher: Another\n")
        again = Settings.load(tmp_path / f"saved-{len(str(value))}.yaml")
        assert again.about == About(publisher="A hospital" if value == named else "Another")
    about = Settings.load(tmp_path / "conf/dpsynth.yaml", about=About(title="T"))
    assert about.about_file is None and about.to_dict()["about"] == {"title": "T"}
    assert "about" in refusal(tmp_path, LEAST | {"about": "nowhere.yaml"})


names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
paths = st.from_regex(r"(\.\./|/)?[a-z]{1,8}(/[a-z]{1,8})?\.yaml", fullmatch=True).map(Path)
full = st.builds(
    Settings,
    schema=st.sampled_from(["demo", "mine.schema.yaml", "../x/y.schema.json", "/a/b.yaml"]),
    data=paths,
    dataset=names,
    epsilon=st.floats(1e-3, 100),
    delta=st.floats(1e-12, 1e-2),
    output=paths,
    model=st.sampled_from(["tvae", "mixture", "auto"]),
    holdout=st.floats(0, 0.9),
    opt_out=st.none() | paths,
    rows=st.none() | st.integers(1, 10**9),
    seed=st.none() | st.integers(0, 2**63 - 1),
    audit_seed=st.integers(0, 2**63 - 1),
    canaries=st.integers(1, 10_000),
    attacks=st.booleans(),
    purpose=st.sampled_from(["", "teaching: year 1", "yes", "'quoted'"]),
    tier=st.none() | names,
    publish_quality=st.none() | st.floats(0.01, 0.5),
    gates=st.none() | paths,
    work=st.none() | paths,
    about=st.none() | st.builds(About, title=st.sampled_from(["A", "Daten: eins"])),
)


@given(told=full, folder=st.sampled_from([".", "sub/folder", "/elsewhere"]))
@settings(max_examples=60, deadline=None)
def test_what_is_written_reads_back(told: Settings, folder: str) -> None:
    from dpsynth._util.strict_yaml import parse_yaml
    from dpsynth.workflow.settings import _names, read_settings

    content = told.written(folder)
    again = Settings(**read_settings(_names(), parse_yaml(content, "x"), "x", Path(folder), {}))
    if folder != "/elsewhere":  # what is relative to it is absolute when it is read
        assert again.to_dict(folder) == told.to_dict(folder)
    for name in ("epsilon", "delta", "seed", "rows", "attacks", "purpose", "about", "tier"):
        assert getattr(again, name) == getattr(told, name)
    for name in ("data", "output", "gates"):
        one, two = getattr(again, name), getattr(told, name)
        assert one == two or one.absolute().resolve() == two.absolute().resolve()


def test_a_file_that_says_something_else_is_not_replaced(tmp_path: Path) -> None:
    message = Settings.load(kept(tmp_path, LEAST))
    message.save(tmp_path / "kept.yaml")
    message.save(tmp_path / "kept.yaml")
    before = (tmp_path / "kept.yaml").read_bytes()
    with pytest.raises(InputError, match="exists"):
        message.save(tmp_path / "dpsynth.yaml")
    with pytest.raises(InputError, match=r"\.yaml"):
        message.save(tmp_path / "kept.json")
    assert (tmp_path / "kept.yaml").read_bytes() == before


@pytest.mark.parametrize(
    ("value", "held_out", "left"),
    [(5000, 0.2, 4000), (70000, 0.25, 52000), (9, 0.5, 4), (1, 0.9, 1), (101766, 0.2, 81000)],
)
def test_public_sizes_are_scaled_by_the_public_share(
    value: int, held_out: float, left: int
) -> None:
    document = Schema.load("demo").to_dict()
    document["dpsynth"]["population"] = {"value": value, "basis": "Smith et al. 2019"}
    scaled = without_share(Schema.from_dict(document), held_out)
    assert scaled.population.value == left
    assert str(value) in scaled.population.basis and "held out" in scaled.population.basis
    assert Schema.from_dict(scaled.to_dict()) == scaled
    assert scaled.columns == Schema.load("demo").columns
