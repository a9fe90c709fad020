"""P18: a run from a stranger is data. Whatever lies in its place, nothing of it runs."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth._util.strict_json import digest
from dpsynth.bundle import verify
from dpsynth.errors import ArtifactError
from dpsynth.synthesis import Run

from ..support.source_code import nodes_of

ROOT = Path(__file__).parents[2]


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def pickled(marker: Path) -> bytes:
    return pickle.dumps(Payload(marker))


def torch_archive(marker: Path) -> bytes:
    """The layout of torch.save: a zip with a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickled(marker))
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def numpy_objects(marker: Path) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([Payload(marker)], dtype=object), allow_pickle=True)
    return file.getvalue()


def with_header(header: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(8)


def tensor(dtype: str, begin: int, end: int, shape: list[int]) -> bytes:
    offsets = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    return json.dumps({"shares": offsets}).encode()


PAYLOADS: dict[str, Callable[[Path], bytes]] = {
    "a pickle": pickled,
    "a torch archive": torch_archive,
    "an array of objects": numpy_objects,
}
DAMAGED: dict[str, bytes] = {
    "nothing": b"",
    "half a length": b"\x01\x02",
    "a huge header": struct.pack("<Q", 2**63) + b"{}",
    "a header beyond the end": with_header(b"{}", 10_000_000),
    "a header that is no JSON": with_header(b"\x80\x04}."),
    "a header with a call": with_header(b'{"__reduce__": "os.system"}'),
    "a tensor beyond the end": with_header(tensor("F64", 0, 2**40, [2**37])),
    "a tensor that ends before it begins": with_header(tensor("F64", 8, 0, [1])),
    "an overflowing shape": with_header(tensor("F64", 0, 8, [2**62, 2**62])),
    "an unknown type": with_header(tensor("O", 0, 8, [1])),
    "a type without numpy": with_header(tensor("BF16", 0, 8, [4])),
    "another tensor": with_header(tensor("F64", 0, 8, [1])),
}


def replace_state(run_folder: Path, content: bytes) -> None:
    """Put other bytes in the place of the arrays, and renew all digests."""
    (run_folder / "state.safetensors").write_bytes(content)
    path = run_folder / "run.json"
    document = json.loads(path.read_text())
    document["state"]["sha256"] = hashlib.sha256(content).hexdigest()
    del document["sha256"]
    path.write_text(json.dumps(document | {"sha256": digest(document)}))


def broken_load(folder: Path) -> Any:
    """The broken twin: takes whatever format the file has."""
    path = folder / "state.safetensors"
    content = path.read_bytes()
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return pickle.loads(archive.read("archive/data.pkl"))
    if content.startswith(b"\x93NUMPY"):
        return np.load(io.BytesIO(content), allow_pickle=True)
    return pickle.loads(content)


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_in_the_place_of_the_arrays_does_not_run(
    run_folder: Path, tmp_path: Path, name: str
) -> None:
    marker = tmp_path / "marker"
    replace_state(run_folder, PAYLOADS[name](marker))
    with pytest.raises(ArtifactError, match="is not a safetensors file, so it was not read"):
        Run.load(run_folder)
    assert not marker.exists()
    broken_load(run_folder)
    assert marker.exists()


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_of_arrays_is_a_clear_error(run_folder: Path, name: str) -> None:
    replace_state(run_folder, DAMAGED[name])
    with pytest.raises(ArtifactError, match=r"state\.safetensors"):
        Run.load(run_folder)


def test_every_truncation_of_the_arrays_is_a_clear_error(run_folder: Path) -> None:
    content = (run_folder / "state.safetensors").read_bytes()
    for length in (*range(0, 200, 7), len(content) // 2, len(content) - 1):
        replace_state(run_folder, content[:length])
        with pytest.raises(ArtifactError, match=r"state\.safetensors"):
            Run.load(run_folder)


def test_a_payload_in_a_document_does_not_run(run_folder: Path, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for text in (
        f'!!python/object/apply:os.mkdir ["{marker}"]',
        f'{{"format": !!python/object/apply:os.mkdir ["{marker}"]}}',
        f"__import__('os').mkdir('{marker}')",
    ):
        (run_folder / "run.json").write_text(text)
        with pytest.raises(ArtifactError, match="not strict JSON"):
            Run.load(run_folder)
    (run_folder / "run.json").write_bytes(pickled(marker))
    with pytest.raises(ArtifactError, match="not strict JSON"):
        Run.load(run_folder)
    assert not marker.exists()


@pytest.mark.parametrize("file", ["datapackage.json", "schema.json", "privacy.json"])
def test_a_payload_in_a_bundle_does_not_run(bundle: Path, tmp_path: Path, file: str) -> None:
    marker = tmp_path / "marker"
    (bundle / file).write_bytes(pickled(marker))
    with pytest.raises(Exception, match="strict JSON"):
        verify(bundle)
    assert not marker.exists()


BANNED_MODULES = {"pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal", "_pickle"}
BANNED_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "torch.load",
    "np.load",
    "numpy.load",
    "pd.read_pickle",
    "yaml.load",
    "yaml.unsafe_load",
    "yaml.full_load",
    "os.system",
}


def dotted(function: ast.expr) -> str:
    """The name that is called: ``torch.load``; of others than names, only the end."""
    if isinstance(function, ast.Attribute):
        return f"{dotted(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def dangers(nodes: Iterable[ast.AST]) -> set[str]:
    """Name the imports and calls of a module that could run what it reads."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names} & BANNED_MODULES
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module.split(".")[0]} & BANNED_MODULES
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & BANNED_CALLS
        elif isinstance(node, ast.Call):
            found |= {dotted(node.func)} & BANNED_CALLS
    return found


def test_no_module_can_run_what_it_reads() -> None:
    for broken in ("import pickle", "from joblib import load", "torch.load(path)", "eval(text)"):
        assert dangers(ast.walk(ast.parse(broken)))
    modules = sorted(
        path for room in ("dpsynth", "models", "eval") for path in (ROOT / room).rglob("*.py")
    )
    assert len(modules) > 30
    found = {str(path): dangers(nodes_of(path)) for path in modules}
    assert {path: dangerous for path, dangerous in found.items() if dangerous} == {}
