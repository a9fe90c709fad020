"""Documents beside what is promised: what is new, gone or of another type is told."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.promised_documents import read, written
from ..support.shapes import departures, shape_of

SEEN = [
    {"kind": "a", "rows": 3, "opt": None, "each": [{"n": 1}, {"n": 2, "why": "x"}]},
    {"kind": "a", "rows": 3, "opt": {"file": "f"}, "each": [], "by": {"age": {"bad": 1}}},
]
PROMISED = shape_of(SEEN, {"by"})


@pytest.mark.parametrize("document", SEEN)
def test_what_was_seen_is_as_promised(document: dict[str, Any]) -> None:
    assert departures(shape_of([document], {"by"}), PROMISED) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"more": 1}, "more is new"),
        ({"rows": "3"}, "rows is text"),
        ({"each": [{}]}, "each[].n is gone"),
        ({"opt": {}}, "opt.file is gone"),
        ({"by": {"sex": {"good": 1}}}, "by.<name>.good is new"),
    ],
)
def test_a_change_is_told(change: dict[str, Any], told: str) -> None:
    assert told in departures(shape_of([SEEN[0] | change], {"by"}), PROMISED)


def test_a_key_that_is_gone_is_told() -> None:
    left = {key: value for key, value in SEEN[0].items() if key != "rows"}
    assert departures(shape_of([left], {"by"}), PROMISED) == ["rows is gone"]


def test_a_page_is_read_as_it_was_written(tmp_path: Any) -> None:
    page = tmp_path / "page.txt"
    page.write_text(written({"a": PROMISED}))
    assert read(page) == {"a": PROMISED}
