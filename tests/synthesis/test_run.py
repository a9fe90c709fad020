"""A run on disk: saved whole, read strictly, and nothing else in it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth._util.strict_json import digest, file_digest
from dpsynth.errors import ArtifactError, InputError
from dpsynth.synthesis import Run, read_samples, record_sample


def edit(folder: Path, change: Callable[[dict[str, Any]], None], *, renew: bool = True) -> None:
    """Change run.json; with ``renew``, as somebody would who knows the format."""
    path = folder / "run.json"
    document = json.loads(path.read_text())
    change(document)
    if renew:
        document.pop("sha256", None)
        document["sha256"] = digest(document)
    path.write_text(json.dumps(document))


def test_a_run_survives_the_disk(made_run: Run, tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "shares": made_run.arrays["shares"],
        "weights": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "bins": np.array([3, 1, 2], dtype=np.uint16),
        "flag": np.array(True),
        "empty": np.zeros((0, 4), dtype=np.int64),
    }
    config = {"preset": {"hidden": 128, "rate": 0.05}, "names": ["Größe"], "none": None}
    saved = replace(made_run, arrays=arrays, config=config, stamps=("seeded-entropy",))
    saved.save(tmp_path / "new" / "run")
    loaded = Run.load(tmp_path / "new" / "run")
    assert loaded.schema == saved.schema
    assert (loaded.model, loaded.config, loaded.stamps) == ("independent", config, saved.stamps)
    assert loaded.certificate == saved.certificate
    assert loaded.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert loaded.arrays[name].dtype == array.dtype
        assert loaded.arrays[name].shape == array.shape
        assert (loaded.arrays[name] == array).all()


def test_the_same_run_gives_the_same_bytes(
    made_run: Run, tmp_path: Path, files_of: Callable[[Path], dict[str, bytes]]
) -> None:
    made_run.save(tmp_path / "one")
    reordered = replace(made_run, arrays=dict(reversed(made_run.arrays.items())))
    reordered.save(tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    assert sorted(files_of(tmp_path / "one")) == ["run.json", "state.safetensors"]


def test_a_run_prints_as_one_line(made_run: Run) -> None:
    assert repr(made_run).startswith(f"<Run of schema {made_run.schema.name}: model ")
    assert "epsilon" in repr(made_run) and "\n" not in repr(made_run)
    assert len(repr(made_run)) < 120
    free = replace(made_run, certificate=None, stamps=("not-private",))
    assert repr(free).endswith(", not private>")


def test_a_run_never_takes_the_place_of_anything(made_run: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="exists; choose another name"):
        made_run.save(tmp_path / "run")


@pytest.mark.parametrize("array", [np.array(["text"]), np.array([object()]), np.array([1j])])
def test_a_run_keeps_numbers_only(made_run: Run, tmp_path: Path, array: Any) -> None:
    with pytest.raises(InputError, match="a run keeps numbers only"):
        replace(made_run, arrays={"x": array}).save(tmp_path / "run")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("file", ["run.json", "state.safetensors"])
def test_a_missing_file_is_named(run_folder: Path, file: str) -> None:
    (run_folder / file).unlink()
    with pytest.raises(ArtifactError, match=f"{file} is missing"):
        Run.load(run_folder)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="nowhere is not a run folder: it does not exist"):
        Run.load(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["run.json", "state.safetensors"])
def test_one_changed_byte_is_noticed(run_folder: Path, file: str) -> None:
    path = run_folder / file
    content = bytearray(path.read_bytes())
    place = content.index(b"population") + 12 if file == "run.json" else len(content) - 3
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match="damaged"):
        Run.load(run_folder)


def test_a_run_of_another_version_or_format_is_refused(run_folder: Path) -> None:
    edit(run_folder, lambda document: document.update(version=2, novelty=1))
    with pytest.raises(ArtifactError, match="version 2 of dpsynth-run; this dpsynth reads version"):
        Run.load(run_folder)
    edit(run_folder, lambda document: document.update(format="ctgan"))
    with pytest.raises(ArtifactError, match="is not a dpsynth-run document"):
        Run.load(run_folder)


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "an unknown key": (lambda d: d.update(hook="x"), "'hook' is unknown"),
    "a missing key": (lambda d: d.pop("stamps"), "'stamps' is missing"),
    "a certificate without ledger key": (lambda d: d["certificate"].pop("ledger"), "'ledger' is m"),
    "another model": (lambda d: d.update(model="tvae"), "another schema or model"),
    "another schema": (
        lambda d: d["schema"]["dpsynth"]["population"].update(value=600),
        "another schema or model",
    ),
    "a broken schema": (lambda d: d["schema"].update(fields=[]), "is damaged: schema"),
    "a config that is a list": (lambda d: d.update(config=[]), "config is damaged: an object"),
    "stamps that are no list": (lambda d: d.update(stamps="no-ledger"), "a list of texts"),
    "a state elsewhere": (lambda d: d["state"].update(file="../x"), "is not 'state.safetensors'"),
    "a state of objects": (
        lambda d: d["state"]["tensors"]["shares"].update(dtype="object"),
        "not a plain array of numbers",
    ),
    "a type that is a list": (
        lambda d: d["state"]["tensors"]["shares"].update(dtype=["float64"]),
        "text is expected",
    ),
    "a negative shape": (
        lambda d: d["state"]["tensors"]["shares"].update(shape=[-1]),
        "at least 0 is expected",
    ),
    "another shape": (
        lambda d: d["state"]["tensors"]["shares"].update(shape=[2]),
        "not hold the arrays that run.json describes",
    ),
    "one array more": (
        lambda d: d["state"]["tensors"].update(x={"dtype": "int64", "shape": []}),
        "not hold the arrays that run.json describes",
    ),
    "a lowered epsilon": (lambda d: d["certificate"].update(epsilon=1.0), "plan_sha256 does not"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_strange_document_is_refused_although_its_digest_fits(
    run_folder: Path, name: str
) -> None:
    change, message = CHANGES[name]
    edit(run_folder, change)
    with pytest.raises(ArtifactError, match=message):
        Run.load(run_folder)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "{",
        '{"format": NaN}',
        '{"format": -Infinity}',
        '{"version": 1e999}',
        '{"format": "dpsynth-run", "format": "dpsynth-run"}',
        '{"version": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_what_is_not_strict_json_is_refused(run_folder: Path, content: str) -> None:
    (run_folder / "run.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"run\.json"):
        Run.load(run_folder)


def test_what_is_not_text_is_refused(run_folder: Path) -> None:
    (run_folder / "run.json").write_bytes(b'{"format": "\xff\xfe"}')
    with pytest.raises(ArtifactError, match="not strict JSON"):
        Run.load(run_folder)


@pytest.mark.parametrize("file", ["run.json", "state.safetensors"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_plain_files_are_read(run_folder: Path, tmp_path: Path, file: str, kind: str) -> None:
    path = run_folder / file
    shutil.move(path, tmp_path / "elsewhere")
    if kind == "link":
        path.symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ArtifactError, match="not a plain file"):
        Run.load(run_folder)


def test_drawn_tables_are_recorded_in_order(run_folder: Path, tmp_path: Path) -> None:
    assert read_samples(run_folder) == ()
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name)
    recorded = record_sample(run_folder, tmp_path / "a.csv", size=3, seed=5)
    record_sample(run_folder, tmp_path / "b.csv", size=4, seed=6, condition="sex == 'F'")
    first, second = read_samples(run_folder)
    assert first.sha256 == recorded.sha256 == file_digest(tmp_path / "a.csv")
    assert (first.name, first.size, first.seed, first.condition) == ("a.csv", 3, 5, None)
    assert (second.name, second.condition) == ("b.csv", "sex == 'F'")
    assert str(tmp_path) not in (run_folder / "samples.json").read_text()
    Run.load(run_folder)


@pytest.mark.parametrize("content", ["{}", '{"format": "dpsynth-samples", "version": 1}', "x"])
def test_a_damaged_record_of_tables_is_refused(run_folder: Path, content: str) -> None:
    (run_folder / "samples.json").write_text(content)
    with pytest.raises(ArtifactError, match=r"samples\.json"):
        read_samples(run_folder)
