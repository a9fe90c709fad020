"""Run folders and bundles with something wrong in them, by careless and careful hands.

A careful hand knows the format: it renews every digest that would give the change away, so that
what lies behind the digests is read too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from random import Random
from typing import Any

from fuzz_bytes import NUMBERS, damaged
from fuzz_documents import as_json, changed, document_text
from fuzz_good import Files, write_files
from fuzz_tables import columns, csv_file, parquet_file

from dpsynth._util.strict_json import digest, written
from dpsynth.errors import DpsynthError
from dpsynth.schema.schema import Schema

_STATE = "state.safetensors"
CLUMSY = (AttributeError, LookupError, RecursionError, TypeError, ValueError)  # over odd JSON


def run_folder(rng: Random, files: Files, folder: Path) -> None:
    """Write a run with something wrong in it."""
    files, what = dict(files), rng.random()
    if what < 0.45:
        document = changed(rng, json.loads(files["run.json"]))
        files["run.json"] = as_json(rng, _renewed(rng, document, files))
    elif what < 0.55:
        files["run.json"] = damaged(rng, files["run.json"])
    elif what < 0.8:
        files[_STATE] = damaged(rng, files[_STATE]) if rng.random() < 0.5 else _header(rng, files)
        document = json.loads(files["run.json"])
        if rng.random() < 0.7:
            files["run.json"] = as_json(rng, _renewed(rng, document, files))
    elif what < 0.9:
        samples = json.loads(files["samples.json"])
        files["samples.json"] = document_text(rng, samples, is_json=True)
    _write(rng, files, folder, strange=what >= 0.9)


def _header(rng: Random, files: Files) -> bytes:
    """Change the header of safetensors: a length, and JSON that says where each array lies."""
    content = files[_STATE]
    size = int.from_bytes(content[:8], "little")
    header = as_json(rng, changed(rng, json.loads(content[8 : 8 + size])))
    stated = len(header) if rng.random() < 0.8 else rng.choice(NUMBERS) % 2**64
    return stated.to_bytes(8, "little") + header + content[8 + size :]


def _renewed(rng: Random, document: Any, files: Files) -> Any:
    """Renew the digests of a run, and what its certificate says of its schema and arrays."""
    with contextlib.suppress(*CLUMSY, DpsynthError):
        document["state"]["sha256"] = hashlib.sha256(files[_STATE]).hexdigest()
        if rng.random() < 0.7:
            size = int.from_bytes(files[_STATE][:8], "little")
            _describe(document, json.loads(files[_STATE][8 : 8 + size]))
        hashed = Schema.from_dict(document["schema"]).hash()
        document["certificate"]["schema_sha256"] = hashed
        document["certificate"] = _replanned(document["certificate"])
    with contextlib.suppress(*CLUMSY):
        document.pop("sha256", None)
        document["sha256"] = digest(document)
    return document


def _describe(document: Any, header: dict[str, Any]) -> None:
    names = {"F64": "float64", "F32": "float32", "F16": "float16", "BOOL": "bool"}
    for bits in (8, 16, 32, 64):
        names |= {f"I{bits}": f"int{bits}", f"U{bits}": f"uint{bits}"}
    document["state"]["tensors"] = {
        name: {"dtype": names.get(one["dtype"], one["dtype"].lower()), "shape": one["shape"]}
        for name, one in header.items()
    }


def _replanned(certificate: Any) -> Any:
    """Renew the digest of a certificate's plan."""
    plan = {key: certificate[key] for key in ("epsilon", "delta", "events")}
    return certificate | {"plan_sha256": digest(plan)}


def bundle_folder(rng: Random, files: Files, folder: Path) -> None:
    """Write a bundle with something wrong in it; a table in it may be a private one."""
    files, what = dict(files), rng.random()
    schema = json.loads(files["schema.json"])
    if what < 0.25:
        files["schema.json"] = document_text(rng, schema, is_json=True)
    elif what < 0.5:
        certificate = changed(rng, json.loads(files["privacy.json"]))
        with contextlib.suppress(*CLUMSY):
            certificate = _replanned(certificate)
        files["privacy.json"] = as_json(rng, certificate)
    elif what < 0.6:
        manifest = json.loads(files["datapackage.json"])
        files["datapackage.json"] = document_text(rng, manifest, is_json=True)
    elif what < 0.72:
        private = csv_file(rng, schema)[1]
        files["data/synthetic.csv"] = rng.choice((private, _damaged_table(rng, files, ".csv")))
    elif what < 0.92:
        private = parquet_file(rng)
        damage = _damaged_table(rng, files, ".parquet")
        files["data/synthetic.parquet"] = rng.choice((private, damage, damage))
    if rng.random() < 0.85:
        _relist(files)
    _write(rng, files, folder, strange=what >= 0.92)


def _damaged_table(rng: Random, files: Files, suffix: str) -> bytes:
    """Damage the bundle's table, or put a canary into one of its cells."""
    content = files["data/synthetic" + suffix]
    if suffix == ".parquet" or rng.random() < 0.5:
        return damaged(rng, content)
    lines = [line.split(b",") for line in content.split(b"\n")]
    row = rng.choice(lines)
    row[rng.randrange(len(row))] = rng.choice(list(columns(rng).values()))[0].encode()
    return b"\n".join(map(b",".join, lines))


def _relist(files: Files) -> None:
    """Renew the sizes and hashes of the manifest."""
    with contextlib.suppress(*CLUMSY):
        manifest = json.loads(files["datapackage.json"])
        for item in manifest["resources"]:
            content = files[item["path"]]
            counted = "bytes" if "bytes" in item else "dpsynth:bytes"
            item[counted] = len(content)
            item["hash"] = "sha256:" + hashlib.sha256(content).hexdigest()
        files["datapackage.json"] = written(manifest)


def _write(rng: Random, files: Files, folder: Path, *, strange: bool) -> None:
    """Write files; with ``strange``, one is gone, no plain file, empty, huge or one too many."""
    name = rng.choice(sorted(files))
    if not strange:
        write_files(folder, files)
        return
    content = files.pop(name)
    write_files(folder, files)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    match rng.randrange(7):
        case 0:
            path.mkdir()
        case 1:
            path.symlink_to("/dev/zero")
        case 2:
            os.mkfifo(path)
        case 3:
            path.write_bytes(b"")
        case 4:
            path.write_bytes(content)
            (folder / "data").mkdir(exist_ok=True)
            (folder / rng.choice(("data/more.csv", "more.json", ".hidden"))).write_bytes(content)
        case 5:
            with path.open("wb") as file:  # a hole of many bytes, which takes no room
                file.write(content)
                file.truncate(rng.choice((2**27, 2**33)))
        case _:
            pass
