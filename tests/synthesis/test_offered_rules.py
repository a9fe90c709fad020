"""Rules that are offered after a fit, confirmed by a person, and kept without a new fit."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.certificate import AddedRule
from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import Rule, Schema
from dpsynth.synthesis import (
    OfferedRule,
    Run,
    Sampler,
    offered_rules,
    read_rules,
    read_samples,
    record_sample,
    rules_text,
)
from dpsynth.tables import write_table

SIZES = {one: {"value": 3000, "basis": "report"} for one in ("population", "rows")}
FREE = {"epsilon": 8.0, "delta": 1e-6, "dataset": "ward", "without_ledger": True}
BY = "A. Meier"


def choice(name: str, *values: str) -> dict[str, Any]:
    constraints = {"enum": [*values], "required": True}
    basis = {"bounds_basis": "form"}
    return {"name": name, "type": "string", "constraints": constraints, "dpsynth": basis}


def pressure(name: str) -> dict[str, Any]:
    limits = {"minimum": 40, "maximum": 240, "required": True}
    own = {"ucum": "mm[Hg]", "bounds_basis": "form"}
    return {"name": name, "type": "integer", "constraints": limits, "dpsynth": own}


@pytest.fixture(scope="module")
def run() -> Run[Schema]:
    """Women alone give birth, and the upper pressure is above the lower one."""
    fields = [choice("sex", "F", "M"), choice("dx", "O80", "I10", "C61"), pressure("low")]
    fields.append(pressure("high"))
    schema = Schema.from_dict(
        {"name": "ward", "fields": fields, "dpsynth": {"version": 1, **SIZES}}
    )
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], 3000)
    dx = np.where(rng.random(3000) < 0.4, np.where(sex == "F", "O80", "C61"), "I10")
    low = np.clip(rng.normal(80, 10, 3000), 40, 120).astype(int)
    high = np.clip(low + 40 + rng.normal(0, 8, 3000), 60, 240).astype(int)
    frame = pd.DataFrame({"sex": sex, "dx": dx, "low": low, "high": high}).astype(str)
    return dpsynth.fit(frame, schema, model="mixture", **FREE)


def rule(text: str, source: str = "declared", basis: str = "protocol 4.2") -> AddedRule:
    return AddedRule(text, source, basis, BY)


def test_lists_come_first_and_then_what_the_generator_shows(run: Run[Schema]) -> None:
    offered = offered_rules(run)
    assert [one.rule for one in offered[:2]] == [
        "dx == 'O80' implies sex == 'F'",
        "dx == 'C61' implies sex == 'M'",
    ]
    assert {one.source for one in offered[:2]} == {"public list"}
    assert all(one.source == "model" for one in offered[2:])
    drawn = run.sample(20_000, seed=3)
    for one in offered:
        assert abs((~Rule.parse(one.rule).holds(drawn)).mean() - one.broken) < 0.01


def test_pairs_and_orders_are_read_off_what_is_drawn(
    run: Run[Schema], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("dpsynth.synthesis.offered_rules")
    monkeypatch.setattr(module, "clinical_rules", lambda _: ())
    texts = {one.rule: one for one in offered_rules(run)}
    pairs = [text for text in texts if "dx" in text]
    assert set(pairs) <= {"not (sex == 'M' and dx == 'O80')", "not (sex == 'F' and dx == 'C61')"}
    assert pairs, "the model nearly knows it"
    assert set(texts) - {*pairs} <= {"low <= high"}
    assert "independent columns would give" in texts[pairs[0]].basis


def test_what_is_drawn_keeps_confirmed_rules(run: Run[Schema]) -> None:
    births = rule("dx == 'O80' implies sex == 'F'")
    order = rule("low < high")
    kept = run.kept_to([births, order])
    drawn = kept.sample(5_000, seed=1)
    assert ((drawn["dx"] == "O80") <= (drawn["sex"] == "F")).all()
    assert (drawn["low"] < drawn["high"]).all()
    assert run.schema.rules == () and kept.certificate is run.certificate
    assert kept.kept_to([births]).schema is kept.schema, "it is stated already"
    sampler = Sampler.of(kept)
    list(sampler.frames(2_000, seed=2))
    assert sampler.acceptance.drawn > 0 and set(sampler.acceptance.broken) == {
        births.rule,
        order.rule,
    }


def test_a_rule_that_cannot_be_is_refused(run: Run[Schema]) -> None:
    with pytest.raises(SchemaError, match="wards"):
        run.kept_to([rule("wards == 'A'")])
    with pytest.raises(SchemaError, match="contradict"):
        run.kept_to([rule("low > high"), rule("low < high")])


def test_only_what_somebody_signed_is_read(run: Run[Schema], tmp_path: Path) -> None:
    offered = offered_rules(run)
    path = tmp_path / "rules.yaml"
    text = rules_text(offered, "run/", "row")
    path.write_text(text)
    assert read_rules(path) == ()
    path.write_text(text.replace("confirmed_by: TODO", f"confirmed_by: {BY}", 1))
    [found] = read_rules(path)
    assert (found.rule, found.confirmed_by) == (offered[0].rule, BY)
    assert found.source == "public list" and found.covered


MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "version": (lambda one: one.update(version=2), "version"),
    "source": (lambda one: one["rules"][0].update(source="gut"), "source"),
    "basis": (lambda one: one["rules"][0].pop("basis"), "basis"),
    "key": (lambda one: one["rules"][0].update(colour="red"), "colour"),
    "list": (lambda one: one.update(rules="a < b"), "a list is expected"),
    "entry": (lambda one: one["rules"].append("a < b"), r"rules\[1\]"),
    "line": (lambda one: one["rules"][0].update(basis="a\nb"), "one line"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(name: str, tmp_path: Path) -> None:
    entry = rule("low < high").to_dict()
    document: dict[str, Any] = {"version": 1, "rules": [entry]}
    change, words = MISTAKES[name]
    change(document)
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError) as caught:
        read_rules(path)
    assert re.search(words, "\n".join([str(caught.value), *map(str, caught.value.items)]))


def test_a_rule_of_the_data_is_marked(run: Run[Schema], monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("dpsynth.synthesis.offered_rules")
    for known in ("clinical_rules", "_pairs"):
        monkeypatch.setattr(module, known, lambda *_: ())
    unseen = {"columns": ["sex", "dx"], "bins": ["M", "O80"], "share": 0.1, "largest": 0.1}
    document = {"parts": {"fidelity": {"unseen": [unseen]}}}
    of_data = [one for one in offered_rules(run, evaluation=document) if one.source == "data"]
    assert [one.rule for one in of_data] == ["not (sex == 'M' and dx == 'O80')"]
    text = rules_text(of_data, "run/", "row")
    assert "the guarantee does not cover it" in text
    added = rule(of_data[0].rule, "data", of_data[0].basis)
    assert not added.covered and added.words.endswith("NOT COVERED by the guarantee")
    assert replace(added, source="declared").covered


def test_a_record_of_a_draw_has_its_rules(run_folder: Path, made_run: Run, tmp_path: Path) -> None:
    table = tmp_path / "drawn.parquet"
    write_table(Sampler.of(made_run).frames(50, seed=1), table, made_run.schema)
    added = rule("1 == 1")
    record_sample(run_folder, table, size=50, seed=1, rules=[added])
    assert read_samples(run_folder)[-1].rules == (added,)


def test_an_offer_in_json_types() -> None:
    assert OfferedRule("a < b", "model", "so", 0.1).to_dict()["broken"] == 0.1


def test_rules_of_the_data_are_for_their_owner_alone(
    run: Run[Schema], tmp_path: Path, command_line: Callable[..., Any]
) -> None:
    run.save(tmp_path / "run")
    unseen = {"columns": ["sex", "dx"], "bins": ["M", "O80"]}
    document = {"parts": {"fidelity": {"unseen": [unseen]}}}
    (tmp_path / "evaluation.json").write_text(json.dumps(document))
    told = command_line("rules", "run", "-o", "open.yaml", "--json")
    assert told.code == 0 and "internal" not in told.json
    told = command_line(
        "rules", "run", "--evaluation", "evaluation.json", "-o", "own.yaml", "--json"
    )
    assert told.code == 0 and told.json["internal"] is True
    assert (tmp_path / "own.yaml").stat().st_mode & 0o077 == 0
    assert (tmp_path / "open.yaml").stat().st_mode & 0o044


def test_more_rules_than_a_certificate_lists_are_refused(tmp_path: Path) -> None:
    entry = rule("low < high").to_dict()
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"version": 1, "rules": [entry] * 201}))
    with pytest.raises(InputError) as caught:
        read_rules(path)
    assert "at most 200" in "\n".join(map(str, caught.value.items))
