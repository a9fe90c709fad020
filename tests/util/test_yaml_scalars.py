"""Words that versions of YAML read differently are refused, wherever a person writes YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_json, parse_yaml, yaml_text
from dpsynth._util.written_files import read_plain
from dpsynth.errors import InputError, SchemaError
from dpsynth.eval.gates import gates

DIFFERENT = ["1:20", "190:20:30.15", "0777", "008", "1_000", "0b1", "0x1F", "0o17"]
TRUTHS = ["yes", "No", "ON", "off"]


@pytest.mark.parametrize("word", DIFFERENT + TRUTHS)
@pytest.mark.parametrize("place", ["a: {}", "a: [x, {}]", "{}: a", "a:\n  b: &c {}\n  d: *c"])
def test_a_word_with_two_readings_is_refused_with_its_line(word: str, place: str) -> None:
    with pytest.raises(SchemaError, match=r"line [12]: .*quotes") as refused:
        parse_yaml(place.format(word).encode(), "s")
    assert len(refused.value.problems) == 1 and word in str(refused.value)


@pytest.mark.parametrize("word", DIFFERENT + TRUTHS)
def test_in_quotes_it_is_text(word: str) -> None:
    assert parse_yaml(f"a: '{word}'".encode(), "s") == {"a": word}
    assert parse_json(f'{{"a": "{word}"}}'.encode(), "s") == {"a": word}


def test_words_with_one_reading_stay() -> None:
    text = b"[0, -3, 80, 0.5, 1.0e-6, .5, true, False, null, ~, text, 1e-6, 12-A]"
    values = [0, -3, 80, 0.5, 1e-6, 0.5, True, False, None, None, "text", "1e-6", "12-A"]
    assert parse_yaml(text, "s") == values


def test_policies_and_gates_are_read_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "office.yaml"
    path.write_text("tvd: {most: 0777}\n")
    with pytest.raises(InputError, match="line 1: '0777'"):
        read_plain(path, "policy", subject="a policy is", title="policy has")
    with pytest.raises(InputError, match="line 1: '0777'"):
        gates(path)


TEXTS = (
    *("07609", "008", "007", "1_000", "0x1F", "0o17", "0b1", "1:20", "1e5", "1e-6", ".5", "5."),
    *(
        "yes",
        "No",
        "on",
        "~",
        "null",
        "NULL",
        "true",
        "True",
        "",
        " ",
        "-",
        "=",
        "<<",
        "2020-01-01",
    ),
    *("+1", "-0", "1.0", ".inf", "nan", ".nan", "0", "00", "0.", "é", "a: b", "#x", "'", '"'),
)


def test_every_text_that_is_written_is_read_as_it_was() -> None:
    document = {"texts": list(TEXTS), **{text: text for text in TEXTS}}
    assert parse_yaml(yaml_text(document).encode(), "x.yaml") == document
