"""P27, end to end: whatever a table holds and however it is broken, the screen quotes no cell.

The check: tables full of canaries, each broken at random (bytes, dialect, header, cells) or met by
a schema that does not fit it, go through `fit` and `schema check`. No canary is on stdout or
stderr, there is no traceback and no warning, and the exit code says "done", "your input" or
"does not fit".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from dpsynth.encoding import Codec

from ..support.some_cases import some_of
from .broken_tables import BREAKERS, Breaker, Case, csv_case, good_rows

Shell = Callable[..., Any]
TRACES = (
    "Quokka",
    "Kr\u00fcmel",
    "Kr\\xfc",
    "\\xfcmel",
    "7141592",
    "71.4159",
    "71,4159",
    "1871-07",
)
TRACES += ("7Zx",)


def ways(suffix: str, number: int) -> list[object]:
    """One of the commands that read a private table."""
    table = f"table{suffix}"
    if (number + number // len(BREAKERS)) % 3 == 0:
        return ["schema", "check", "clinic.schema.yaml", table, *["--json"][: number % 2]]
    return [
        "fit", "clinic.schema.yaml", table, "--dataset", f"clinic{number}", "--epsilon", 2,
        "--delta", "1e-5", "--model", "independent", "-o", f"run{number}",
        *["--json"][: number % 2],
    ]  # fmt: skip


@pytest.fixture
def tell(shell: Shell, tmp_path: Path, quick_plans: None) -> Callable[[Case, int], Any]:
    def of(case: Case, number: int) -> Any:
        (tmp_path / "clinic.schema.yaml").write_text(yaml.safe_dump(case.schema))
        (tmp_path / f"table{case.suffix}").write_bytes(case.content)
        return shell(tmp_path, *ways(case.suffix, number))

    return of


ROUNDS = 4


@pytest.mark.parametrize("breaker", some_of(BREAKERS, every=2))
def test_broken_text_is_not_quoted(
    breaker: Breaker, document: dict[str, Any], tell: Callable[[Case, int], Any]
) -> None:
    for turn in range(ROUNDS):
        number = BREAKERS.index(breaker) + turn * len(BREAKERS)
        output = tell(csv_case(document, number), number)
        assert output.quotes(TRACES) == [], number
        assert output.is_clear, (number, output)


def test_both_outcomes_occur(document: dict[str, Any], tell: Callable[[Case, int], Any]) -> None:
    """The fuzz is worth something: some of its tables are fitted, and many are refused."""
    codes = []
    for number in range(1, 3 * len(BREAKERS), 3):
        codes.append(tell(csv_case(document, number), number).code)
    assert codes.count(0) + codes.count(3) > 3 and codes.count(2) > 3


def quoting_codec(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: says which category is unknown."""
    encode = Codec.encode

    def naive(self: Codec, frame: pd.DataFrame) -> Any:
        unknown = sorted(set(frame["sex"].dropna().astype(str)) - {"F", "M"})
        if unknown:
            print(f"warning: sex {unknown[0]!r} is not declared")
        return encode(self, frame)

    patch.setattr(Codec, "encode", naive)


def quoting_reader(patch: pytest.MonkeyPatch) -> None:
    """Broken twin: the library's own error goes out."""

    def naive(self: Any, progress: Any = None) -> Any:
        frame = pd.read_csv(self.path, dtype=str)
        yield frame.assign(age=frame["age"].map(int))

    patch.setattr("dpsynth.tables.csv.CsvTable.chunks", naive)
    patch.setenv("DPSYNTH_DEBUG", "1")


@pytest.mark.parametrize("twin", [quoting_codec, quoting_reader])
def test_a_message_that_quotes_is_caught(
    twin: Callable[..., None],
    document: dict[str, Any],
    tell: Callable[[Case, int], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    twin(monkeypatch)
    output = tell(csv_case(document, BREAKERS.index(good_rows)), 1)
    assert output.quotes(TRACES) != []
