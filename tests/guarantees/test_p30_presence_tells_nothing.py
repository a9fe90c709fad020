"""P30: a file of a bundle that is there or not as some patient's cells have it: one exact bit.

Sources that differ by one hostile patient are measured, evaluated and attacked, with the answers of
the mechanism stubbed equal; what is public must be of one shape: the same files, the same keys, the
same figures. The broken twin is the code as it was, which stopped at a refused cell.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import publish_quality, published_quality
from dpsynth.bundle import release, verify
from dpsynth.certificate import Override
from dpsynth.encoding import read_cohort
from dpsynth.errors import GateError, RefusedCellError, TableError
from dpsynth.ledger import Ledger

from ..support.small_office import small_office
from .hostile_patients import HOSTILE, KEPT, STRICT, others, public_shape, same_answers

pytestmark = pytest.mark.filterwarnings("ignore:a new ledger was created")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """A run that set a share aside, a table of it and the ledger: copies of one, in each folder."""
    base = tmp_path_factory.mktemp("fitted")
    small_office(base, others(60), STRICT, rows=300, seed=1, publish_quality=0.1)

    def made(folder: Path) -> Path:
        shutil.copytree(base, folder, dirs_exist_ok=True)
        return folder

    return made


def bundle_of(folder: Path, source: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Measure on this source, and release."""
    source.to_csv(folder / "holdout.csv", index=False)
    ledger = Ledger(folder / "ledger.sqlite")
    with monkeypatch.context() as patch:
        patch.setattr(published_quality, "ask", same_answers)
        publish_quality(
            folder / "run", folder / "out.parquet", folder / "holdout.csv", ledger=ledger
        )
    release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    verify(folder / "bundle")
    return folder / "bundle"


@pytest.fixture(scope="module")
def without(
    fitted: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Bundles without the hostile patient: of the others, and of a table without rows."""
    sources = {"others": others(), "nobody": HOSTILE["a refused number"][:0]}
    top = tmp_path_factory.mktemp("without")
    with pytest.MonkeyPatch.context() as patch:
        return {
            name: bundle_of(fitted(top / name), source, patch) for name, source in sources.items()
        }


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_patient_of_the_holdout_changes_no_file_and_no_key(
    kind: str,
    fitted: Callable[[Path], Path],
    without: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = pd.concat([others(), HOSTILE[kind]])
    within = bundle_of(fitted(tmp_path / "within"), source, monkeypatch)
    other = without["others"]
    assert public_shape(within) == public_shape(other)
    assert (within / "quality.json").read_bytes() == (other / "quality.json").read_bytes()


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_patient_alone_is_measured_like_nobody(
    kind: str,
    fitted: Callable[[Path], Path],
    without: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The neighbour of a table of one patient is a table without rows."""
    alone = bundle_of(fitted(tmp_path / "alone"), HOSTILE[kind], monkeypatch)
    assert list(HOSTILE[kind]) == list(HOSTILE["a refused number"])  # so nobody is the same
    assert public_shape(alone) == public_shape(without["nobody"])


def test_a_table_without_rows_is_really_asked(
    fitted: Callable[[Path], Path], tmp_path: Path
) -> None:
    """With the mechanism as it is: nobody, and then one patient whose every cell is refused."""
    for number, source in enumerate((others()[:0], HOSTILE["a refused number"])):
        folder = fitted(tmp_path / str(number))
        source.to_csv(folder / "holdout.csv", index=False)
        ledger = Ledger(folder / "ledger.sqlite")
        quality = publish_quality(
            folder / "run", folder / "out.parquet", folder / "holdout.csv", ledger=ledger
        )
        assert len(quality.columns) == len(KEPT) - 1


@pytest.mark.parametrize("kind", ["a refused number", "a refused category", "some refused"])
def test_the_broken_twin_is_seen(
    kind: str, fitted: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: nothing is read before the charge, a refused cell stops, and release goes on."""
    monkeypatch.setattr(published_quality, "_read_through", lambda *_: None)
    monkeypatch.setattr(published_quality, "read_cohort", lambda *words: read_cohort(*words[:5]))
    folder = fitted(tmp_path)
    with pytest.raises(RefusedCellError) as stopped:
        bundle_of(folder, pd.concat([others(), HOSTILE[kind]]), monkeypatch)
    assert any("is spent" in note for note in stopped.value.__notes__)
    ledger = Ledger(folder / "ledger.sqlite")
    monkeypatch.setattr("dpsynth.bundle.gates.public_gates.reserved", lambda events: None)
    release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    assert not (folder / "bundle" / "quality.json").exists()  # the bit, in a bundle that verifies


def test_the_others_are_coded_as_without_the_hostile_one() -> None:
    """Rows that are left out are left out by their own cells."""
    from dpsynth.encoding import Codec
    from dpsynth.privacy import SeededEntropy
    from dpsynth.tables import open_table

    codec = Codec(STRICT)

    def units(frame: pd.DataFrame) -> list[bytes]:
        table = open_table(frame, STRICT)
        cohort = read_cohort(table, codec, STRICT, SeededEntropy(1), None, "drop")
        found = [np.sort(c[m], axis=0) for c, m in zip(cohort.codes, cohort.mask, strict=True)]
        return sorted(one.tobytes() for one in found)

    few = others().groupby("patient_id").head(STRICT.unit.max_rows)
    without = units(few)
    assert units(pd.concat([HOSTILE["a refused number"], few])) == without
    assert len(units(pd.concat([few, HOSTILE["some refused"]]))) == len(without) + 1


# Nothing but a person lets a bundle go without the figures ----------------------------------


@pytest.mark.parametrize("text", ['"open', "a,b,c,d,e,f,g,h\n", "\0"])
def test_a_damaged_table_spends_nothing_and_no_bundle_comes_of_it(
    text: str, fitted: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder = fitted(tmp_path)
    damaged = folder / "holdout.csv"
    others().to_csv(damaged, index=False)
    damaged.write_text(damaged.read_text() + text)
    ledger = Ledger(folder / "ledger.sqlite")
    with pytest.raises(TableError):
        publish_quality(folder / "run", folder / "out.parquet", damaged, ledger=ledger)
    assert ledger.state().entries[-1].measured is None
    with pytest.raises(GateError, match="quality figures that the budget paid for"):
        release(folder / "run", folder / "bundle", table=folder / "out.parquet", ledger=ledger)
    assert not (folder / "bundle").exists()


def test_a_table_that_breaks_off_within_spends_nothing(
    fitted: Callable[[Path], Path], tmp_path: Path
) -> None:
    """It opens, since a Parquet file is described at its end; its first cells cannot be read."""
    folder = fitted(tmp_path)
    damaged = folder / "holdout.parquet"
    others().to_parquet(damaged, index=False)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:4] + b"\xff" * 200 + content[204:])
    ledger = Ledger(folder / "ledger.sqlite")
    with pytest.raises(TableError):
        publish_quality(folder / "run", folder / "out.parquet", damaged, ledger=ledger)
    assert ledger.state().entries[-1].measured is None


def test_figures_that_are_lost_are_left_out_by_name_only(
    fitted: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fitted(tmp_path)
    ledger = Ledger(folder / "ledger.sqlite")

    def dies(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(published_quality, "ask", dies)
    others().to_csv(folder / "holdout.csv", index=False)
    with pytest.raises(KeyboardInterrupt):
        publish_quality(
            folder / "run", folder / "out.parquet", folder / "holdout.csv", ledger=ledger
        )
    words: dict[str, Any] = {"table": folder / "out.parquet", "ledger": ledger}
    with pytest.raises(GateError, match="--override REASON --by NAME"):
        release(folder / "run", folder / "bundle", **words)
    excuse = Override("a power cut while it was measured", "A. Person")
    release(folder / "run", folder / "bundle", override=excuse, **words)
    verify(folder / "bundle")
    privacy = json.loads((folder / "bundle" / "privacy.json").read_text())
    assert [override["gate"] for override in privacy["overrides"]] == ["quality"]
