"""What is fuzzed: for each kind of file a way to make a bad one, and everything that reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from fuzz_documents import document_text
from fuzz_folders import bundle_folder, run_folder
from fuzz_good import POLICY, Files, Good, documents, fewer_columns
from fuzz_ledgers import ledger_file
from fuzz_office import office_call
from fuzz_tables import csv_file, parquet_file, schema_document

from dpsynth import inspection
from dpsynth.bundle.evidence import evidence_by_folder, evidence_of
from dpsynth.bundle.verifier import verify
from dpsynth.cli import main
from dpsynth.encoding.codec import Codec
from dpsynth.encoding.cohort import read_cohort
from dpsynth.encoding.strict_table import check_table, typed_frames
from dpsynth.errors import DpsynthError
from dpsynth.ledger.balances import accounts
from dpsynth.ledger.evidence import verify_ledger
from dpsynth.ledger.ledger import Ledger
from dpsynth.policy.advice import allocation
from dpsynth.policy.policy import Policy, policy_lines
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.schema.schema import Schema
from dpsynth.synthesis import Run, run_digest
from dpsynth.synthesis.sample_log import read_samples
from dpsynth.synthesis.sampler import Sampler
from dpsynth.tables.table import open_table

Way = Callable[[], Any]


@dataclass(frozen=True)
class Target:
    """One kind of input.

    Attributes:
        name: of the kind.
        share: of all inputs; slow readers get fewer.
        make: writes a bad input into an empty folder, by the choices of a `Random`, and returns the
            ways of reading it.
    """

    name: str
    share: float
    make: Callable[[Random, Path], Sequence[Way]]


def targets(good: Good) -> tuple[Target, ...]:
    """Return all targets."""
    of_files = (
        Target("schema", 0.42, partial(_schema, documents())),
        Target("policy", 0.35, _policy),
        Target("csv", 0.10, _csv),
        Target("parquet", 0.06, _parquet),
        Target("run", 0.03, partial(_run, good.runs)),
        Target("bundle", 0.008, partial(_bundle, good.bundle)),
        Target("ledger", 0.02, partial(_ledger, good.ledger, good.runs)),
    )
    return (
        *of_files,
        Target("command", 0.012, partial(_command, of_files)),
        Target("office", 0.02, partial(_office, good)),
    )


def _office(good: Good, rng: Random, folder: Path) -> Sequence[Way]:
    return (partial(_tell, office_call(good, rng, folder), folder),)


def _schema(good: list[dict[str, Any]], rng: Random, folder: Path) -> Sequence[Way]:
    document = fewer_columns(rng, rng.choice(good))
    suffix = rng.choice((".json", ".json", ".yaml"))
    path = folder / f"mine.schema{suffix}"
    path.write_bytes(document_text(rng, document, is_json=suffix == ".json"))
    return (partial(_read_schema, path),)


def _read_schema(path: Path) -> None:
    """Read a schema, use it, and write it down: what was written is the same schema."""
    schema = Schema.load(path)
    assert Schema.from_dict(schema.to_dict()) == schema
    again = path.with_name("again.schema.yaml")
    schema.save(again)
    assert Schema.load(again).hash() == schema.hash()
    schema.to_table_schema()
    schema.require_complete()
    assert all(size > 0 for size in Codec(schema).sizes)


def _policy(rng: Random, folder: Path) -> Sequence[Way]:
    suffix = rng.choice((".json", ".yaml"))
    path = folder / f"office.policy{suffix}"
    path.write_bytes(document_text(rng, POLICY, is_json=suffix == ".json"))
    return (partial(_read_policy, path),)


def _read_policy(path: Path) -> None:
    policy = Policy.load(path)
    assert Policy.from_dict(policy.to_dict(), "again") == policy
    assert all(line.isprintable() for line in policy_lines(policy))
    if any(tier.releases_a_year for tier in policy.tiers):
        assert allocation(policy).lines()


def _csv(rng: Random, folder: Path) -> Sequence[Way]:
    document = schema_document(rng)
    suffix, content = csv_file(rng, document)
    return _table_ways(rng, document, folder / f"table{suffix}", content)


def _parquet(rng: Random, folder: Path) -> Sequence[Way]:
    return _table_ways(rng, schema_document(rng), folder / "table.parquet", parquet_file(rng))


def _table_ways(rng: Random, document: dict[str, Any], path: Path, content: bytes) -> Sequence[Way]:
    """Read a private table as `schema check` or `fit` do, and as if it were a synthetic one."""
    path.write_bytes(content)
    try:
        schema = Schema.from_dict(document)
    except DpsynthError:  # an encoding that no schema may have
        return (lambda: Schema.from_dict(document),)
    private = (
        lambda: inspection.check(path, schema),
        lambda: read_cohort(open_table(path, schema), Codec(schema), schema, SeededEntropy(1)),
    )
    synthetic = (lambda: check_table(path, schema), lambda: list(typed_frames(path, schema)))
    return rng.choice(private), rng.choice(synthetic)


def _run(good: dict[str, Files], rng: Random, folder: Path) -> Sequence[Way]:
    run_folder(rng, good[rng.choice(sorted(good))], folder)
    return (
        lambda: list(Sampler.of(Run.load(folder)).frames(5, seed=1)),
        lambda: read_samples(folder),
        lambda: run_digest(folder),
        lambda: evidence_of(folder),
    )


def _bundle(good: Files, rng: Random, folder: Path) -> Sequence[Way]:
    bundle_folder(rng, good, folder)
    return (lambda: verify(folder), lambda: evidence_of(folder))


def _ledger(good: bytes, runs: dict[str, Files], rng: Random, folder: Path) -> Sequence[Way]:
    place = folder / "ledger.sqlite"
    ledger_file(rng, good, place)
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_bytes(runs["independent"]["run.json"])
    ways = (
        lambda: verify_ledger(Ledger(place), evidence_by_folder([folder / "run"])),
        lambda: accounts(Ledger(place).state(), datetime.now(UTC), compose=False),
    )
    return (rng.choice(ways),)


def _command(of_files: Sequence[Target], rng: Random, folder: Path) -> Sequence[Way]:
    """Give a bad input to the command line: an exit code, and no error that nobody expected."""
    target = rng.choice(of_files)
    target.make(rng, folder)
    kind, words = target.name, list[Any]()
    if kind in ("csv", "parquet"):
        document = schema_document(rng)
        (folder / "clinic.schema.json").write_text(json.dumps(document))
        [table] = folder.glob("table*")
        words = ["schema", "check", folder / "clinic.schema.json", table]
    elif kind == "schema":
        [path] = folder.glob("mine*")
        words = rng.choice((["schema", "show", path], ["schema", "check", path, path]))
    elif kind == "policy":
        [path] = folder.glob("office*")
        words = ["ledger", "policy", path]
    elif kind == "run":
        words = ["sample", folder, "--rows", 5, "-o", folder / "out.csv"]
    elif kind == "bundle":
        words = ["verify", folder]
    else:
        words = ["ledger", *rng.choice((["show"], ["verify"], ["export", "-o", folder / "l.json"]))]
    words += ["--json"] * (rng.random() < 0.3 and words[:2] != ["schema", "show"])
    return (partial(_tell, words, folder),)


def _tell(words: list[Any], folder: Path) -> None:
    """Run a command with the ledger of a folder."""
    os.environ["DPSYNTH_LEDGER"] = str(folder / "ledger.sqlite")
    os.environ["DPSYNTH_USER"] = "fuzz"
    try:
        main(list(map(str, words)))
    except SystemExit as stop:
        assert stop.code in (0, 2, 3, 4, 5), f"exit code {stop.code} of {words[:2]}"
