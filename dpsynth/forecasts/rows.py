"""The rows that a forecast is made from: of public facts alone, or of an earlier release.

None of them belongs to a patient. A run without privacy, or one whose noise can be repeated from a
seed, is no release: forecasts from it would say something of its patients, so it is refused.

Of rows drawn from public facts alone, `Assumption` says how often each value occurs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.arguments import path_of
from dpsynth._util.strict_json import read_document
from dpsynth.bundle.format.layout import MANIFEST, PARQUET
from dpsynth.bundle.format.layout import SCHEMA as SCHEMA_FILE
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.models import Assumption, Domain
from dpsynth.models.assumed_shares import NAMES
from dpsynth.schema import Rule, Schema, is_linked
from dpsynth.synthesis import Run, Sampler
from dpsynth.synthesis.run import DOCUMENT
from dpsynth.tables import as_written, open_synthetic

Codes = npt.NDArray[np.uint16]

POOL = 100_000  # rows that are drawn from an earlier run, once
DRAWS = 20  # rounds in which rows that keep the rules are sought
TRIED = 300  # rows by which the commonest category is chosen
MAX_LEVELS = 12  # categories among which
UNSAFE = ("not-private", "seeded-entropy")


class ForecastRows(Protocol):
    """Rows that belong to no patient."""

    @property
    def name(self) -> str:
        """Say what they are assumed to be, in a word."""

    def rows(self, count: int, rng: np.random.Generator) -> Codes:
        """Draw so many independent rows of codes, ``[rows, columns]``."""


@dataclass(frozen=True)
class EarlierRows:
    """Rows of an earlier release, drawn again and again.

    Attributes:
        name: of the folder.
        pool: codes of its rows under the schema of the forecast.
    """

    name: str
    pool: Codes

    def rows(self, count: int, rng: np.random.Generator) -> Codes:
        """Draw rows with replacement."""
        return self.pool[rng.integers(len(self.pool), size=count)]


@dataclass(frozen=True)
class RuledRows:
    """Assumed rows that keep the schema's rules.

    Attributes:
        assumption: gives rows that need not keep them.
        codec: decodes them.
        rules: the schema's.
    """

    assumption: Assumption
    codec: Codec
    rules: tuple[Rule, ...]

    @property
    def name(self) -> str:
        """The assumption's name."""
        return self.assumption.name

    def rows(self, count: int, rng: np.random.Generator) -> Codes:
        """Draw rows; those that break a rule are drawn again, in up to `DRAWS` rounds.

        Where too few keep the rules, the ones that do are repeated; where none does, all are taken.
        """
        drawn = self.assumption.rows(count, rng)
        if not self.rules:
            return drawn
        kept = [self.lawful(drawn, rng)]
        for _ in range(DRAWS):
            if (found := sum(map(len, kept))) >= count:
                break
            batch = min(POOL, max(1000, 2 * (count - found)))
            kept.append(self.lawful(self.assumption.rows(batch, rng), rng))
        pool = np.concatenate(kept)
        if not len(pool):
            return drawn
        if len(pool) < count:
            pool = np.concatenate([pool, pool[rng.integers(len(pool), size=count - len(pool))]])
        return pool[:count]

    def lawful(self, codes: Codes, rng: np.random.Generator) -> Codes:
        """Return the rows that keep every rule."""
        frame = self.codec.decode(codes, rng)
        holds = np.ones(len(frame), dtype=bool)
        for rule in self.rules:
            holds &= np.asarray(rule.holds(frame))
        return codes[holds]


def assumed(schema: Schema, codec: Codec) -> list[ForecastRows]:
    """Return what is assumed where only public facts are known; the first is the forecast."""
    domain = Domain.of(schema, codec)
    nullable = tuple(column.nullable for column in codec.schema.modelled)
    assumptions = (Assumption.of(name, domain, nullable) for name in NAMES)
    return [
        RuledRows(_with_lawful_levels(one, codec, schema.rules), codec, schema.rules)
        for one in assumptions
    ]


def _with_lawful_levels(
    assumption: Assumption, codec: Codec, rules: tuple[Rule, ...]
) -> Assumption:
    """Let the category be the commonest with which most rows keep the rules.

    A rule such as ``insulin != "No" implies treated`` says which category it takes for usual; the
    order in which a schema lists categories says nothing of it.
    """
    named = {name for rule in rules for name in rule.columns}
    for place, name in enumerate(codec.names):
        own = assumption.shares[place]
        if name not in named or codec.cells[place] or np.ptp(own) < 1e-9:
            continue
        first = int(np.argmax(own))
        best, most = assumption, -1
        for level in range(min(len(own), MAX_LEVELS)):
            swapped = own.copy()
            swapped[[first, level]] = own[[level, first]]
            tried = assumption.with_shares(place, swapped)
            rng = np.random.default_rng(0)
            drawn = tried.rows(TRIED, rng)
            kept = len(RuledRows(tried, codec, rules).lawful(drawn, rng))
            if kept > most:
                best, most = tried, kept
        assumption = best
    return assumption


def earlier(folder: str | Path, schema: Schema, *, seed: int) -> EarlierRows:
    """Read the rows of an earlier run or bundle.

    Args:
        folder: a run, or a bundle of one table.
        schema: of the forecast; its columns must be those of the release, by name and type.
        seed: of the draw from a run.

    Raises:
        InputError: the folder is neither, is of linked tables or other columns, or its run may not
            be released.
        ArtifactError: it is damaged.
    """
    place = path_of(folder, "the folder of a run or a bundle")
    if (place / DOCUMENT).is_file():
        run = Run.load(place)
        if not isinstance(run.schema, Schema):
            raise _linked(folder)
        if unsafe := [stamp for stamp in run.stamps if stamp in UNSAFE]:
            raise InputError(
                f"{folder} is stamped {', '.join(unsafe)}, so a forecast from it could reveal its "
                "patients; name a run or bundle that may be released"
            )
        _require_same_columns(folder, run.schema, schema)
        frames = list(Sampler.of(run, plain=True).frames(POOL, seed=seed))
        cells = pd.concat(frames, ignore_index=True)
    elif (place / MANIFEST).is_file() and (place / SCHEMA_FILE).is_file():
        document = read_document(place / SCHEMA_FILE)
        if is_linked(document):
            raise _linked(folder)
        declared = Schema.from_dict(document, source=str(place / SCHEMA_FILE))
        _require_same_columns(folder, declared, schema)
        table = open_synthetic(place / PARQUET, declared)
        cells = pd.concat(list(table.chunks()), ignore_index=True)
    else:
        raise InputError(f"{folder} is neither a run nor a bundle; name the folder of one")
    codec = Codec(as_written(schema))
    read = open_synthetic(cells, schema).chunks()
    return EarlierRows(place.name, np.concatenate([codec.encode(chunk) for chunk in read]))


def _require_same_columns(folder: str | Path, theirs: Schema, ours: Schema) -> None:
    """Refuse a release whose columns are not those of the forecast."""
    released = {column.name: column.type for column in theirs.modelled}
    for column in ours.modelled:
        if released.get(column.name) != column.type:
            how = "of another type" if column.name in released else "missing there"
            raise InputError(
                f"{folder} is a release of schema {theirs.name}, and column '{column.name}' of "
                f"schema {ours.name} is {how}; name a release with the same columns"
            )


def _linked(folder: str | Path) -> InputError:
    return InputError(f"{folder} is of linked tables; name a release of a single table")
