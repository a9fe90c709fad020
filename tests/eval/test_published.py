"""Public quality figures: what noisy answers say, and intervals that hold what they promise."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpsynth.bundle.format import Quality
from dpsynth.encoding import Codec
from dpsynth.eval import Questionnaire, figures
from dpsynth.privacy import ChosenHistograms, SeededEntropy, ask, quality_event
from dpsynth.schema import Schema

from ..support.bare_counts import Silence
from ..support.schema_fields import schema_field

BASIS = "made up for a test"


def described(flags: int, target: bool = False) -> Schema:
    fields = [
        schema_field(
            f"x{i}",
            "boolean",
            {"bounds_basis": BASIS} | ({"role": "target"} if target and not i else {}),
            required=True,
        )
        for i in range(flags)
    ]
    many = {"value": 5000, "basis": BASIS}
    return Schema.from_dict(
        {"name": "t", "fields": fields, "dpsynth": {"version": 1, "population": many, "rows": many}}
    )


@dataclass(frozen=True)
class Rows:
    codes: Any
    mask: Any

    @classmethod
    def of(cls, codes: np.ndarray) -> Rows:
        return cls(codes[:, None, :], np.ones((len(codes), 1), bool))


def flags(rows: int, shares: list[float], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.random((rows, len(shares))) < shares).astype(np.uint16)


def figures_of(
    schema: Schema, synthetic: np.ndarray, real: np.ndarray, multiplier: float, entropy: Any
) -> dict[str, Any]:
    codec = Codec(schema)
    asked = Questionnaire.of(codec, synthetic)
    wanted = quality_event(schema)
    event = ChosenHistograms("quality", wanted.most, 1, multiplier)
    answers = ask(Rows.of(real), codec.sizes, asked.questions, asked.parts, event, entropy)
    return figures(asked, answers, "0" * 64, len(synthetic))


def by_key(document: dict[str, Any]) -> dict[str, Any]:
    return {statistic["key"]: statistic for statistic in document["statistics"]}


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Total variation distance of two tables, counted by hand."""
    a, b = Counter(map(tuple, one)), Counter(map(tuple, other))
    return sum(abs(a[k] / len(one) - b[k] / len(other)) for k in set(a) | set(b)) / 2


def test_without_noise_the_figures_are_the_distances() -> None:
    schema = described(3)
    drawn, real = flags(3000, [0.2, 0.5, 0.6], 1), flags(5000, [0.3, 0.5, 0.5], 2)
    figures = figures_of(schema, drawn, real, 1.0, Silence(0))
    for place, column in enumerate(figures["columns"]):
        own = distance(drawn[:, [place]], real[:, [place]])
        assert column["tvd"] == pytest.approx(own, abs=2e-4)
    pairs = np.mean([distance(drawn[:, p], real[:, p]) for p in ([0, 1], [0, 2], [1, 2])])
    assert by_key(figures)["tvd2"]["value"] == pytest.approx(pairs, abs=2e-4)
    assert by_key(figures)["tvd3"]["value"] == pytest.approx(distance(drawn, real), abs=2e-4)


def test_chance_is_what_two_samples_of_one_population_show() -> None:
    schema = described(3)
    pairs = []
    for seed in range(60):
        drawn, real = flags(700, [0.2, 0.5, 0.6], seed), flags(500, [0.2, 0.5, 0.6], 1000 + seed)
        found = by_key(figures_of(schema, drawn, real, 1.0, Silence(0)))["tvd3"]
        pairs.append((found["value"], found["chance"]))
    mean = np.mean(pairs, axis=0)
    assert mean[0] == pytest.approx(mean[1], rel=0.06)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """The noise of the number of rows is in every figure, and was once forgotten."""
    schema = described(3)
    drawn, real = flags(4000, [0.01] * 3, 1), flags(5000, [0.03] * 3, 2)
    exact = by_key(figures_of(schema, drawn, real, 1.0, Silence(0)))
    codec, event = Codec(schema), ChosenHistograms("quality", 6, 1, 10.0)
    asked, entropy = Questionnaire.of(codec, drawn), SeededEntropy(5)
    held: Counter[str] = Counter()
    runs = 400
    for _ in range(runs):
        answers = ask(Rows.of(real), codec.sizes, asked.questions, asked.parts, event, entropy)
        for key, one in by_key(figures(asked, answers, "0" * 64, len(drawn))).items():
            held[key] += one["low"] <= exact[key]["value"] <= one["high"]
    assert min(held.values()) >= 0.91 * runs, held


def predicted(multiplier: float, entropy: Any, rows: int = 4000) -> dict[str, Any]:
    schema = described(3, target=True)

    def table(seed: int) -> np.ndarray:
        codes = flags(rows, [0.5, 0.4, 0.5], seed)
        chance = np.where(codes[:, 1] == 1, 0.7, 0.3)
        codes[:, 0] = np.random.default_rng(seed + 50).random(rows) < chance
        return codes

    return figures_of(schema, table(1), table(2), multiplier, entropy)


@pytest.mark.long
def test_the_auc_by_hand_and_within_its_interval() -> None:
    # P(score of a case above that of another): 1/2 (1 + TPR - FPR) for a flag
    [exact] = predicted(1.0, Silence(0))["targets"]
    true, false = 0.4 * 0.7 / (0.4 * 0.7 + 0.6 * 0.3), 0.4 * 0.3 / (0.4 * 0.3 + 0.6 * 0.7)
    assert exact["auc"] == pytest.approx((1 + true - false) / 2, abs=0.02)
    assert exact["class"] == "true"
    entropy = SeededEntropy(3)
    found = [predicted(4.0, entropy)["targets"][0] for _ in range(12)]
    inside = sum(one["low"] <= exact["auc"] <= one["high"] for one in found)
    assert inside >= 9
    values = [one["auc"] for one in found]
    error = np.std(values) / math.sqrt(len(values))
    assert abs(np.mean(values) - exact["auc"]) < 4 * error + 0.002  # not pulled to one half


def test_noise_as_large_as_the_rows_gives_words_and_no_figure() -> None:
    figures = predicted(200.0, SeededEntropy(1), rows=300)
    assert figures["targets"] == [] and "too large to tell" in figures["note"]


def test_the_document_is_what_the_reader_of_a_bundle_takes() -> None:
    document = predicted(4.0, SeededEntropy(2))
    assert json.loads(json.dumps(Quality.from_dict(document).to_dict())) == document
