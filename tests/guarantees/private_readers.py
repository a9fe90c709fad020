"""The registry of all that reads private rows: how it runs on small tables, and what it lets out.

Each verb and each generator that reads private rows has an entry, and the kind tests of
`test_every_private_reader.py` run over all of them. A new one needs an entry here:
`test_private_readers_are_registered.py` looks for calls of readers and of mechanisms in the code,
and refuses one that no entry reaches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth import Execution, fit
from dpsynth.assessment import audited_on_real, publish_quality
from dpsynth.ledger import Ledger, Use
from dpsynth.models import Preset, contrast_settings, presets, spec_of
from dpsynth.models.registry import LINKED, NAMES
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.stats import LinkageRequest, StatisticsRequest
from dpsynth.synthesis import record_sample
from dpsynth.tables import texts_of, write_table

from ..support import linked_rows, linked_tables, two_registers
from ..support.discovered_cohort import cohort_of, discovered_cohort
from ..support.labelled_ward import WARD
from ..support.labelled_ward import patients as ill_patients
from ..support.schema_fields import schema_field
from ..support.short_training import shorten_histories_most
from ..support.toy_package import install
from ..support.warehouse_tables import FIELDS as WAREHOUSE
from ..support.warehouse_tables import duckdb_table, schema_of

Patch = pytest.MonkeyPatch
Tables = Any  # a frame, or the frames of linked tables by name
LAST = "zzz"  # the key of who comes last
BUDGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5}


@dataclass(frozen=True)
class World:
    """Tables that have nothing in common, and a patient with a hundred times the rows allowed."""

    crowd: Tables
    stranger: Tables
    newcomer: Tables
    reordered: Tables = None

    def joined(self, tables: Tables) -> Tables:
        """The tables, and the newcomer behind all others."""
        if isinstance(tables, Mapping):
            return {
                name: pd.concat([table, self.newcomer[name]], ignore_index=True)
                for name, table in tables.items()
            }
        return pd.concat([tables, self.newcomer], ignore_index=True)


@dataclass(frozen=True)
class Office:
    """Where a run happens: a ledger, a folder, and what a test replaces for this run."""

    ledger: Ledger | None
    folder: Path
    patch: Patch
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class PrivateReader:
    """One way in which private rows are read.

    Attributes:
        name: in tests.
        run: reads tables in an office, and returns all that is let out.
        world: small tables for it.
        datasets: under which the ledger counts it; empty where none does.
        prepare: shortens it.
        looks: files in which rows are read before the charge, each with the reason.
        without: kinds of tests that it does not go through, each with the reason.
    """

    name: str
    run: Callable[[Tables, Office], dict[str, Any]]
    world: Callable[[], World]
    datasets: tuple[str, ...] = ("clinic",)
    prepare: Callable[[Patch], None] = lambda patch: None
    looks: Mapping[str, str] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)


# One table --------------------------------------------------------------------------------------

BASIS = {"bounds_basis": "protocol"}
FACTS: dict[str, Any] = {
    "version": 1,
    "max_rows": {"value": 2, "basis": "policy"},
    "population": {"value": 50, "basis": "report"},
    "rows": {"value": 60, "basis": "report"},
}
FIELDS: list[dict[str, Any]] = [
    {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
    {"name": "visited", "type": "datetime", "dpsynth": {"role": "order"}},
    schema_field("sex", "string", BASIS, enum=["F", "M"]),
    schema_field("ward", "string", BASIS, enum=["A", "B", "C"], required=True),
    schema_field("weight", "number", BASIS | {"step": 0.5}, minimum=30, maximum=200),
    schema_field("age", "integer", BASIS, minimum=18, maximum=99, required=True),
    schema_field("admitted", "date", BASIS, minimum="2015-01-01", maximum="2016-12-31"),
    {"name": "dead", "type": "boolean"},
]
CLINIC = Schema.from_dict({"name": "clinic", "fields": FIELDS, "dpsynth": FACTS})
IN_ORDER = Schema.from_dict(
    {"name": "clinic", "fields": FIELDS, "dpsynth": FACTS | {"keep": "window"}}
)


def visits(patients: int, *, most: int = 2, seed: int = 11, first: str = "p") -> pd.DataFrame:
    """Visits of so many patients."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(patients):
        for visit in range(int(rng.integers(1, most + 1))):
            day = f"201{5 + visit % 2}-{1 + number % 9:02}-{1 + visit % 28:02}"
            rows.append(
                {
                    "patient": f"{first}{number:03}",
                    "visited": f"{day}T{visit // 28 % 24:02}:30:00",
                    "sex": "FM"[rng.integers(2)],
                    "ward": "AB"[rng.integers(2)],
                    "weight": f"{rng.integers(80, 240) / 2:g}",
                    "age": str(rng.integers(20, 95)),
                    "admitted": day,
                    "dead": ["true", "false"][rng.integers(2)],
                }
            )
    return pd.DataFrame(rows)


def one_table() -> World:
    """Patients of wards A and B; a stranger in ward C; somebody with 200 visits, all different."""
    crowd = visits(40)
    other = {"sex": "", "ward": "C", "weight": "199.5", "age": "97", "dead": ""}
    stranger = visits(1, most=1, first="x").assign(**other)
    many = visits(200, most=1, seed=5).assign(patient=LAST, sex="F", ward="A")
    many["visited"] = [f"2015-0{1 + n // 28}-{1 + n % 28:02}T00:00:00" for n in range(len(many))]
    return World(crowd, stranger, many)


def in_any_order() -> World:
    """The same, and the crowd backwards; for a schema in which no order is declared."""
    world = one_table()
    return replace(world, reordered=world.crowd.iloc[::-1].reset_index(drop=True))


def shortened(patch: Patch) -> None:
    """Make generators of one table small and their training short."""
    settings = {"bins": 8, "one_way": 0.4, "training": 0.0, "components": 31, "mixture_steps": 4}
    training = {
        "training": 0.3,
        "masked": 23,
        "hidden": 19,
        "latent": 3,
        "warm_steps": 2,
        "sampling_rate": 0.3,
        "steps": 3,
        "learning_rate": 0.01,
        "anchor": 0.5,
        "rounds": 2,
        "settling_steps": 2,
    }

    def of(model: str, *_: Any) -> Preset:
        neural = model in NAMES and spec_of(model).neural
        chosen = settings | (training if neural else {})
        return Preset(**chosen | ({"latent": 0} if model == "autoregressive" else {}))

    patch.setattr(Preset, "of", of)
    for size in ("training.WARM_BATCH", "ctgan.WARM_BATCH", "ctgan.FAKES"):
        patch.setattr(f"dpsynth.models.generators.{size}", 50)
    patch.setattr("dpsynth.models.generators.ctgan.BATCH", 50)
    for module in ("warm_started", "ctgan"):
        patch.setattr(f"dpsynth.models.generators.{module}.REHEARSAL", 60)
    patch.setattr("dpsynth.models.generators.pair_settling.ROWS", 200)
    patch.setattr("dpsynth.models.marginals.initial_model.MAX_ROWS", 50)


def few_patients(patch: Patch) -> None:
    """Measure products and distances of all pairs before the pairs."""
    shortened(patch)
    patch.setattr(presets, "STEPS_OF_FEW", 3)
    patch.setattr(contrast_settings, "FEWEST_COLUMNS", 2)
    for bound in ("CLEAR", "NARROW"):
        patch.setattr(contrast_settings, bound, 1e-6)


def released(run: Any) -> dict[str, Any]:
    """All that a run holds."""
    return {
        "arrays": {
            name: (array.dtype.str, array.shape, array.tobytes())
            for name, array in run.arrays.items()
        },
        "config": run.config,
        "certificate": run.certificate,
        "stamps": run.stamps,
        "schema": run.schema.to_dict(),
    }


def told(office: Office) -> tuple[list[Any], dict[str, Any]]:
    """What a verb is given beside its data, and what it says of its progress."""
    progress: list[Any] = []
    settings = {"ledger": office.ledger, "without_ledger": office.ledger is None}
    return progress, settings | {"progress": lambda stage, part: progress.append((stage, part))}


def fitted(model: str, schema: Schema, tables: Tables, office: Office, **more: Any) -> Any:
    """Fit one table."""
    progress, settings = told(office)
    run = fit(tables, schema, dataset=office.datasets[0], model=model, **BUDGET, **settings, **more)
    return released(run) | {"progress": progress}


def in_shards(schema: Schema, tables: Tables, office: Office) -> dict[str, Any]:
    """Fit from a file that is kept in shards on the disk."""
    tables.to_csv(office.folder / "clinic.csv", index=False)
    where = office.folder / "shards"
    where.mkdir(exist_ok=True)
    source = str(office.folder / "clinic.csv")
    there = Execution(shards=where)
    return fitted("autoregressive", schema, source, office, execution=there)  # type: ignore[no-any-return]


TOY = """
import numpy as np
import torch
from torch import nn

from dpsynth.models import Spending


class Network(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding, self.last = nn.Embedding(64, 3), nn.Linear(3 * size, 1)
        for p in self.parameters():
            p.data = torch.linspace(-1.0, 1.0, p.numel()).reshape(p.shape)

    def forward(self, rows):
        return self.last(self.embedding(rows).flatten(1))[:, 0].square()


class Toy:
    def __init__(self, domain):
        self.domain = domain

    @classmethod
    def spending(cls, domain, budget):
        return Spending(columns=0.3, pairs=0.2, training=0.5, sampling_rate=0.3, steps=3)

    def fit(self, mechanisms):
        columns = mechanisms.count_columns(bins=4)
        self.sizes = list(columns.sizes)
        self.pairs = mechanisms.count_pairs([(1, 2), (1, 3)])
        self.network = Network(len(self.sizes))
        mechanisms.train(self.network, learning_rate=0.02)

    def sample(self, rows, rng):
        return np.stack([rng.integers(0, size, rows) for size in self.sizes], axis=1)

    def config(self):
        return {"sizes": self.sizes}

    def arrays(self):
        kept = {name: p.detach().numpy() for name, p in self.network.named_parameters()}
        return kept | {f"pair{n}": pair for n, pair in enumerate(self.pairs)}

    @classmethod
    def restore(cls, domain, config, arrays):
        toy = cls(domain)
        toy.sizes, toy.pairs = config["sizes"], [arrays["pair0"], arrays["pair1"]]
        toy.network = Network(len(toy.sizes))
        return toy
"""


def outside(tables: Tables, office: Office) -> Any:
    """Fit a generator of another package, whose network is trained through Opacus."""
    if not (office.folder / "packages").exists():
        install(office.folder / "packages", office.patch, TOY)
    return fitted("toy", IN_ORDER, tables, office)


# Codes that nobody declared -----------------------------------------------------------------------

CODES = {"discover": True, "pattern": "[A-Z][0-9]{3}"}
DISCOVERED = Schema.from_dict(
    {
        "name": "clinic",
        "fields": [*FIELDS, {"name": "device", "type": "string", "dpsynth": {"codes": CODES}}],
        "dpsynth": FACTS,
    }
)


def with_codes() -> World:
    """The clinic, with devices; the newcomer has a hundred that nobody else has."""
    world = one_table()
    crowd = world.crowd.assign(
        device=["A001", "B002", "", "C003"] * (len(world.crowd) // 4)
        + (["A001"] * (len(world.crowd) % 4))
    )
    devices = [f"Z{number:03}" for number in range(len(world.newcomer))]
    return World(
        crowd,
        world.stranger.assign(device="X999"),
        world.newcomer.assign(device=devices),
        crowd.iloc[::-1].reset_index(drop=True),
    )


KEYS = [{"name": "devices", "count": "patients", "by": ["device"]}]
FEW_COUNTS = [{"name": "people", "count": "patients"}]


# Rows that stay in a warehouse --------------------------------------------------------------------

STAYING = schema_of(("sex", "age"))
STORED = {"key": "text"} | {name: WAREHOUSE[name][0] for name in ("sex", "age")}


def staying() -> World:
    """Stays of patients; rows of the newcomer are alike, since the database draws which count."""

    def stays(count: int, seed: int) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        rows = [
            [f"p{n:03}", "FM"[n % 2], str(20 + n)]
            for n in range(count)
            for _ in range(int(rng.integers(1, 4)))
        ]
        return pd.DataFrame(rows, columns=[*STORED])

    alone = stays(1, 1).iloc[:1].assign(key="x", sex="M", age="99")
    many = pd.concat([stays(1, 1).iloc[:1].assign(key=LAST, age="77")] * 300, ignore_index=True)
    return World(stays(40, 2), alone, many)


def stored(tables: Tables, office: Office) -> str:
    """Write a table into a database."""
    return duckdb_table(office.folder / "stays.duckdb", STORED, tables.values.tolist())


def fitted_there(tables: Tables, office: Office) -> Any:
    """Fit rows that stay in their warehouse."""
    there = Execution(in_warehouse=True)
    return fitted("independent", STAYING, stored(tables, office), office, execution=there)


STAYING_ENTRIES: list[dict[str, Any]] = [
    {"name": "all", "count": "patients"},
    {"name": "rows", "count": "rows", "by": ["sex"]},
    {"name": "age", "mean": "age", "per": "patient"},
    {"name": "commonest", "top": "sex", "most": 1},
]


def answered_there(tables: Tables, office: Office) -> Any:
    """Answer a request about rows that stay in their warehouse."""
    source = stored(tables, office)
    return statistics(STAYING, STAYING_ENTRIES, source, office, in_warehouse=True)


# Linked tables ------------------------------------------------------------------------------------

WARDS = LinkedSchema.from_dict(linked_tables.package())


def linked() -> World:
    """Patients with rows in four tables; one alone; and one with hundreds of rows in each."""
    rng = np.random.default_rng(4)

    def frames(keys: list[str]) -> Any:
        rows: dict[str, list[Any]] = {}
        for key in keys:
            for name, own in linked_rows.patient_rows(key, rng).items():
                rows.setdefault(name, []).extend(own)
        return linked_rows.frames(rows)

    crowd, stranger, newcomer = (
        frames([f"p{number:03}" for number in range(40)]),
        frames(["x"]),
        frames([LAST]),
    )
    crowd["patients"]["sex"] = ["F", "M", "M", "F"] * 10
    stranger["patients"]["sex"], newcomer["patients"]["sex"] = "M", "F"
    for name, table in newcomer.items():
        if name != "patients":
            newcomer[name] = pd.concat([table] * 200, ignore_index=True)
    return World(crowd, stranger, newcomer)


FEW_WARDS = LinkedSchema.from_dict(
    linked_tables.package()
    | {"resources": [linked_tables.package()["resources"][n] for n in (0, 3)]}
)


def few_tables() -> World:
    """Patients and their visits alone, which networks learn."""

    def fewer(tables: Any) -> Any:
        return {name: tables[name] for name in ("patients", "visits")}

    world = linked()
    return World(fewer(world.crowd), fewer(world.stranger), fewer(world.newcomer))


def fitted_cohort(model: str, schema: LinkedSchema, tables: Tables, office: Office) -> Any:
    """Fit linked tables."""
    progress, settings = told(office)
    run = fit(tables, schema, dataset=office.datasets[0], model=model, **BUDGET, **settings)
    return released(run) | {"progress": progress}


def _in_one_file(document: dict[str, Any]) -> dict[str, Any]:
    """Say in each resource which rows of one file are its own."""
    for table in document["resources"]:
        form = {"name": "form", "type": "string"}
        table["schema"]["fields"] = [*table["schema"]["fields"], form]
        table["dpsynth"] = table.get("dpsynth", {}) | {"rows_where": {"form": table["name"]}}
    return document


IN_ONE_FILE = LinkedSchema.from_dict(_in_one_file(linked_tables.package()))


def one_file() -> World:
    """The linked tables one below another, as some programs export them."""

    def joined(tables: Any) -> pd.DataFrame:
        frames = [
            table.apply(lambda cells: pd.Series(texts_of(cells).to_pylist(), dtype=object)).assign(
                form=name
            )
            for name, table in tables.items()
        ]
        whole = pd.concat(frames, ignore_index=True).astype(object)
        return whole.where(whole.notna(), None)

    world = linked()
    return World(joined(world.crowd), joined(world.stranger), joined(world.newcomer))


LINKED_CODES = discovered_cohort(("stays",), patients=40)


def linked_codes() -> World:
    """Patients with devices and codes of their stays; one has more codes than may count."""

    def tables(count: int, letter: str, many: int) -> Any:
        codes = [[f"{letter}{letter}{n % 3:03}", f"{letter}B{n % 2:03}"] for n in range(count)]
        if many:
            codes = [[f"{letter}{letter}{n:03}" for n in range(many)]]
        return cohort_of([f"{letter}D{n % 2:03}" for n in range(count)], {"stays": codes})

    def named(frames: Any, key: str) -> Any:
        return {name: frame.assign(id=key) for name, frame in frames.items()}

    return World(
        tables(40, "A", 0), named(tables(1, "X", 0), "x"), named(tables(1, "Z", 300), LAST)
    )


# Statistics ---------------------------------------------------------------------------------------

AGES = {"age": [40, 65]}
ENTRIES: list[dict[str, Any]] = [
    {"name": "people", "count": "patients"},
    {"name": "rows", "count": "rows", "by": ["sex", AGES]},
    {"name": "patients", "count": "patients", "by": ["sex", AGES]},
    {"name": "dead", "proportion": {"dead": ["True"]}, "by": ["sex"]},
    {"name": "weight", "mean": "weight", "by": [AGES], "per": "patient"},
    {"name": "weights", "mean": "weight", "by": ["sex"]},
    {"name": "spread", "variance": "weight"},
    {"name": "quarters", "quantiles": "age", "by": ["sex"]},
    {"name": "commonest", "top": "ward", "most": 2},
    {"name": "months", "count": "patients", "by": [{"admitted": "month"}], "smooth": True},
    {"name": "beds", "occupancy": {"from": "admitted", "for": "age"}, "period": "month"},
    {"name": "curve", "survival": {"time": "age", "event": "dead", "of": ["True"]}, "cuts": [50]},
    {"name": "apart", "compare": "weight", "between": {"sex": ["F", "M"]}},
    {"name": "related", "independence": ["sex", "dead"]},
]


def statistics(
    schema: Any, entries: list[dict[str, Any]], tables: Tables, office: Office, **more: Any
) -> Any:
    """Answer a request."""
    _, settings = told(office)
    settings.pop("progress")
    document = {"schema": schema.to_dict(), "statistics": entries}
    found = dpsynth.statistics(
        tables,
        StatisticsRequest.from_dict(document),
        dataset=office.datasets[0],
        **BUDGET,
        **settings,
        **more,
    )
    return {"answers": {n: [a.tolist() for a in one] for n, one in found.numbers.items()}} | {
        "files": found.files()
    }


LINKED_ENTRIES: list[dict[str, Any]] = [
    {"name": "people", "count": "patients", "by": ["sex"]},
    {"name": "visits", "count": "rows", "table": "visits", "by": ["sex", "ward"]},
    {"name": "visitors", "count": "patients", "table": "visits", "by": ["ward"]},
    {"name": "pressure", "mean": "sbp", "table": "visits", "by": ["sex"], "per": "patient"},
    {"name": "drugs", "proportion": {"drug": ["x"]}, "table": "orders"},
    {"name": "quarters", "quantiles": "sbp", "table": "visits", "shares": [0.5]},
    {"name": "commonest", "top": "ward", "table": "visits", "most": 1},
]


# Labels, linkage, figures, reports ----------------------------------------------------------------


def ill_world() -> World:
    """Patients of a ward; one who is unlike them."""
    stranger = ill_patients(1, 3).assign(age="99", sex="f", ill="no")
    return World(ill_patients(60, 1), stranger, ill_patients(1, 7).assign(age="3", ill="yes"))


def labels(vote: str, tables: Tables, office: Office) -> Any:
    """Label public rows."""
    _, settings = told(office)
    settings.pop("progress")
    queries = ill_patients(9, 2, label=False)
    found = dpsynth.labels(
        tables,
        queries,
        WARD,
        "ill",
        dataset=office.datasets[0],
        teachers=5,
        vote=vote,
        **BUDGET,
        **settings,
    )
    return {"votes": found.numbers["votes"].tolist(), "files": found.files()}


def pairs_world() -> World:
    """Candidate pairs; one pair alone; and a record with a hundred pairs."""
    crowd = two_registers.pairs(30)
    many = two_registers.pairs(100, seed=3).iloc[:100].assign(birth_id=LAST, match="1")
    many["score"] = "0.95"
    alone = two_registers.pairs(1, seed=4).iloc[:1].assign(birth_id="x", case_id="y")
    return World(crowd, alone, many, crowd.iloc[::-1].reset_index(drop=True))


def linkage(tables: Tables, office: Office, **changes: Any) -> Any:
    """Count pairs of two registers."""
    _, settings = told(office)
    settings.pop("progress")
    asked = LinkageRequest.from_dict(two_registers.request(**changes))
    first, second = office.datasets
    found = dpsynth.linkage(tables, asked, dataset_a=first, dataset_b=second, **BUDGET, **settings)
    return {"files": found.files()}


def quality(tables: Tables, office: Office) -> Any:
    """Fit, draw, and spend a share of the plan on public figures."""
    assert office.ledger is not None
    run = fitted_for_quality(tables, office)
    write_table([run.sample(60, seed=1)], office.folder / "drawn.parquet", CLINIC)
    record_sample(office.folder / "run", office.folder / "drawn.parquet", size=60, seed=1)
    found = publish_quality(
        office.folder / "run", office.folder / "drawn.parquet", tables, ledger=office.ledger
    )
    return {"figures": found.to_dict(), **released(run)}


def fitted_for_quality(tables: Tables, office: Office) -> Any:
    """Fit a run that sets a share aside."""
    return fit(
        tables,
        CLINIC,
        dataset=office.datasets[0],
        model="independent",
        publish_quality=0.3,
        output=office.folder / "run",
        ledger=office.ledger,
        **BUDGET,
    )


@functools.cache
def audited_run() -> Any:
    """A run of made-up patients, whose training is attacked."""
    made_up = visits(30, seed=3)
    return fit(
        made_up, CLINIC, dataset="clinic", model="independent", without_ledger=True, **BUDGET
    )


def audited_world() -> World:
    """One table; the run is there before."""
    audited_run()
    return one_table()


def audited(tables: Tables, office: Office) -> Any:
    """Attack the training among real rows, by a fit that is charged."""
    assert office.ledger is not None
    use = Use(office.datasets[0])
    return asdict(
        audited_on_real(audited_run(), tables, use, ledger=office.ledger, count=50, seed=1)
    )


PEOPLE = Schema.from_dict(
    {
        "name": "people",
        "fields": [
            schema_field("sex", "string", BASIS, enum=["F", "M"]),
            schema_field("ward", "string", BASIS, enum=[f"w{n}" for n in range(30)]),
        ],
        "dpsynth": {"version": 1, "population": FACTS["population"], "rows": FACTS["rows"]},
    }
)


def people() -> World:
    """One row of each person."""
    rng = np.random.default_rng(2)
    crowd = pd.DataFrame(
        {"sex": ["F", "M", ""] * 10, "ward": [f"w{n}" for n in rng.integers(0, 30, 30)]}
    )
    return World(crowd, crowd.iloc[:1].assign(sex="M"), crowd.iloc[:1].assign(sex="", ward="w29"))


def perturbed(tables: Tables, office: Office) -> Any:
    """Randomise each person's answers."""
    found = dpsynth.perturb(tables, PEOPLE, ["sex", "ward"], epsilon=2.0)
    return {"rows": found.csv(), "settings": found.settings.to_dict()}


NETWORKS_THAT_DRAW = {
    "ctgan": "which columns its critic is asked about is drawn for each batch",
}


def _without(name: str) -> dict[str, str]:
    return {"drawn parts": NETWORKS_THAT_DRAW[name]} if name in NETWORKS_THAT_DRAW else {}


def flat(model: str, schema: Schema = IN_ORDER) -> PrivateReader:
    """The entry of a generator of one table."""
    run = partial(fitted, model, schema)
    return PrivateReader(
        f"fit of {model}", run, one_table, prepare=shortened, without=_without(model)
    )


def histories(model: str) -> PrivateReader:
    """The entry of a generator of linked tables; networks learn fewer of them."""
    schema, world = (WARDS, linked) if model == "cohort" else (FEW_WARDS, few_tables)
    return PrivateReader(
        f"fit of {model}, linked tables",
        partial(fitted_cohort, model, schema),
        world,
        prepare=shorten_histories_most,
        without=_without(f"{model}, linked tables"),
    )


REGISTERS = ("births", "cancers")
READERS: tuple[PrivateReader, ...] = (
    *(flat(name) for name in NAMES),
    PrivateReader("fit", partial(fitted, "independent", CLINIC), in_any_order, prepare=shortened),
    replace(flat("mixture"), name="fit of mixture, few patients", prepare=few_patients),
    PrivateReader(
        "fit with discovered codes",
        partial(fitted, "independent", DISCOVERED),
        with_codes,
        prepare=shortened,
    ),
    PrivateReader("fit in shards", partial(in_shards, CLINIC), one_table, prepare=shortened),
    PrivateReader("fit in a warehouse", fitted_there, staying, prepare=shortened),
    PrivateReader("fit of another package", outside, one_table, prepare=shortened),
    *(histories(name) for name in LINKED),
    PrivateReader(
        "fit of linked tables in one file",
        partial(fitted_cohort, "cohort", IN_ONE_FILE),
        one_file,
        prepare=shorten_histories_most,
    ),
    PrivateReader(
        "fit with discovered codes, linked tables",
        partial(fitted_cohort, "cohort", LINKED_CODES),
        linked_codes,
        prepare=shorten_histories_most,
    ),
    PrivateReader("statistics", partial(statistics, CLINIC, ENTRIES), in_any_order),
    PrivateReader("few counts", partial(statistics, CLINIC, FEW_COUNTS), in_any_order),
    PrivateReader("counts of undeclared keys", partial(statistics, DISCOVERED, KEYS), with_codes),
    PrivateReader("statistics, linked tables", partial(statistics, WARDS, LINKED_ENTRIES), linked),
    PrivateReader("statistics in a warehouse", answered_there, staying),
    *(
        PrivateReader(f"labels by {vote} votes", partial(labels, vote), ill_world)
        for vote in ("best", "drawn")
    ),
    PrivateReader("linkage", partial(linkage, same_people=False), pairs_world, REGISTERS),
    PrivateReader(
        "published quality",
        quality,
        in_any_order,
        prepare=shortened,
        looks={
            "dpsynth/assessment/published_quality.py": "a table that cannot be read costs nothing"
        },
    ),
    PrivateReader("audit among real rows", audited, audited_world),
    PrivateReader(
        "perturbed answers",
        perturbed,
        people,
        (),
        without=dict.fromkeys(
            ("passing", "capped", "apart"),
            "each report is private by itself: it is let out, one for each person",
        ),
    ),
)
"""Every way in which private rows are read, and something of them is let out."""
