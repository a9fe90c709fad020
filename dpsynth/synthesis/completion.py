"""Rows that the user begins, and the model completes; and how much a model knows of a condition.

The values that are given stay as they are, and the others are drawn given these. The rows hold
what the user wrote, who may have taken it from a patient. So they are not recorded as drawn from
the run, no release takes them, and the command writes them for their owner alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import counted
from dpsynth._util.messages import did_you_mean, shown
from dpsynth._util.whole_files import require_plain
from dpsynth.encoding import Kind, coder_of
from dpsynth.errors import InputError
from dpsynth.models import Conditional
from dpsynth.models.grain_settings import GRAINS
from dpsynth.models.registry import names_of
from dpsynth.synthesis.conditions import stands_alone
from dpsynth.synthesis.sampler import Fitted, FittedTo, Sampler, fitting_state

MAX_ROWS = 100_000
ROUNDS = 50  # draws of a row that breaks a rule of the schema
OPEN = -1  # a cell that is to be drawn


class Completion:
    """Rows with some cells given.

    Attributes:
        sampler: of the run.
        codes: of the given cells, `OPEN` for the others, ``[rows, columns]``.
        cells: the given columns, as they are.
    """

    def __init__(self, run: Fitted, rows: pd.DataFrame) -> None:
        """Check the given cells.

        Args:
            run: whose model completes them.
            rows: text; an empty cell is open, and so is a column that is not there.

        Raises:
            InputError: a column is not the schema's, or a cell is not a value of its column; the
                message holds no cell.
        """
        self.sampler = Sampler.of(run)
        codec = self.sampler.codec
        if not isinstance(self.sampler.generator, Conditional):
            able = ", ".join(names_of(lambda spec: spec.conditional))
            raise InputError(
                f"model '{self.sampler.generator.name}' cannot complete rows; choose one of {able}"
            )
        if not 0 < len(rows) <= MAX_ROWS:
            raise InputError(f"1 to {MAX_ROWS:,} rows can be completed, not {len(rows):,}")
        self.codes = np.full((len(rows), len(codec.names)), OPEN, dtype=np.int64)
        self.cells: dict[str, tuple[npt.NDArray[np.bool_], pd.Series[Any]]] = {}
        decimal = codec.published.dialect.decimal
        for name in rows.columns:
            if name not in codec.names or not stands_alone(name, codec):
                names = [column.name for column in codec.published.modelled]
                why = (
                    "it is not drawn by itself: a date with a gap or a calendar, the upper column "
                    "of an order, a formula, a condition, a status or several codes"
                    if name in names
                    else "it is not a column of the synthetic table"
                    f"{did_you_mean(str(name), names)}"
                )
                raise InputError(f"column {shown(name)} cannot be given: {why}")
            coder = coder_of(codec.schema.column(name), decimal)
            given = rows[name].fillna("").str.strip().ne("").to_numpy()
            kinds = coder.kinds(rows[name])
            wrong = np.flatnonzero(given & (kinds != Kind.VALID))
            if len(wrong):
                raise InputError(
                    f"{counted(len(wrong), 'cell')} of column {shown(name)} cannot be given, the "
                    f"first in row {wrong[0] + 1}: it is not within the bounds or categories"
                )
            codes, cells = coder.read(rows[name])
            self.codes[given, codec.names.index(name)] = codes[given]
            self.cells[str(name)] = given, cells

    @classmethod
    def read(cls, run: Fitted, path: str | Path) -> Completion:
        """Read the rows from a CSV file with a header, in UTF-8.

        Raises:
            InputError: it cannot be read, or as `Completion`.
        """
        dialect = run.schema.dialect
        require_plain(path)
        try:
            rows = pd.read_csv(
                path, dtype=str, keep_default_na=False, sep=dialect.delimiter, encoding="utf-8-sig"
            )
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError:  # also of pandas' parser and of decoding, which hold what they read
            raise InputError(f"{path} is not a CSV file in UTF-8") from None
        return cls(run, rows)

    def frame(self, *, seed: int) -> pd.DataFrame:
        """Return the rows, completed, in their order.

        Raises:
            InputError: by the rules of the schema, or by what was learned, a row cannot be
                completed; the message has its number.
        """
        rng = np.random.default_rng(seed)
        parts = [self._complete(rows, rng) for rows in self._alike()]
        return pd.concat(parts).sort_index()

    def _alike(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the places of rows whose given codes are the same."""
        _, group = np.unique(self.codes, axis=0, return_inverse=True)
        order = np.argsort(group.ravel(), kind="stable")
        yield from np.split(order, np.cumsum(np.bincount(group.ravel()))[:-1])

    def _complete(self, rows: npt.NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        codec, given = self.sampler.codec, self.codes[rows[0]]
        allowed = {
            place: np.arange(codec.sizes[place]) == code
            for place, code in enumerate(given.tolist())
            if code != OPEN
        }
        found = []
        with fitting_state(self.sampler.generator.name):
            generator = self.sampler.generator
            assert isinstance(generator, Conditional)
            law = generator.given(allowed)[0] if allowed else generator
            for _ in range(ROUNDS if law is not None else 0):
                codes = law.sample(len(rows), rng, even=False)  # type: ignore[union-attr]
                codes[:, list(allowed)] = given[list(allowed)]
                frame = self._kept(codec.decode(codes, rng).set_index(rows))
                holds = np.ones(len(rows), dtype=bool)
                for rule in self.sampler.rules:
                    holds &= rule.holds(frame)
                found.append(frame[holds])
                rows = rows[~holds]
                if not len(rows):
                    return pd.concat(found)
        raise InputError(
            f"row {rows[0] + 1} cannot be completed: by the schema's rules, or by what the model "
            "has learned, no row has these values"
        )

    def _kept(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Put the given cells back, where a code stands for several values."""
        for name, (given, cells) in self.cells.items():
            there = given[frame.index]
            frame[name] = frame[name].where(~there, cells.iloc[frame.index].set_axis(frame.index))
        return frame


@dataclass(frozen=True)
class Support:
    """What a run's model says of a condition; it follows from what was released.

    Attributes:
        share: of rows, or of patients of linked tables, that meet the condition.
        units: expected number of privacy units behind it, of the declared population.
        noise: standard deviation of the noise in a released count, in units; 0 if unknown.
        size: rows, or patients, that are drawn.
        proposals: effective number of those that the rows are chosen from; None where rows are not
            chosen among proposals, but drawn under the condition or left out.
        noun: what is drawn.
    """

    share: float
    units: float
    noise: float
    size: int = 0
    proposals: float | None = None
    noun: str = "rows"

    @classmethod
    def of(cls, sampler: Sampler, run: FittedTo[Any], size: int = 0) -> Support:
        """Ask a sampler with a condition, of which so many rows, or patients, will be drawn."""
        share = sampler.share()
        events = [] if run.certificate is None else run.certificate["events"]
        noise = [
            event["sigma"] / (event.get("unit_mass") or 1)
            for event in events
            if "sigma" in event and event["name"] != GRAINS  # of few cells, with noise of its own
        ]
        proposals = sampler.effective(size) if size else None
        units = share * run.schema.population.value
        return cls(share, units, max(noise, default=0.0), size, proposals, sampler.noun)

    @property
    def is_small(self) -> bool:
        """Whether noise of one count could hide, or make, all of these units."""
        return self.units < 3 * self.noise

    @property
    def words(self) -> str:
        """Say it in a line."""
        units = f"about {counted(round(self.units), 'unit')} of the population"
        if not self.is_small:
            return f"{self.share:.3g} of the {self.noun}, {units}"
        return (
            f"{self.share:.1g} of the {self.noun}, {units}: the noise of a count is "
            f"{self.noise:.0f}, so the model knows little about such {self.noun}"
        )

    @property
    def lines(self) -> list[str]:
        """Say it in the lines of a command: the condition, and the proposals if there are any."""
        found = [f"condition   {self.words}"]
        if self.proposals is None:
            return found
        number = f"{counted(self.size, 'row')} chosen among about {self.proposals:,.0f} effective"
        if self.proposals >= self.size:
            return [*found, f"proposals   {number} ones"]
        each = self.size / max(self.proposals, 1.0)
        advice = f"about {each:.1f} rows share each; loosen the condition, or draw fewer rows"
        return [*found, f"proposals   FEW: {number} ones, so {advice}"]

    def to_dict(self) -> dict[str, float | None]:
        """Return it for a document: share of the rows, units, noise and proposals."""
        return {
            "share": self.share,
            "units": self.units,
            "noise": self.noise,
            "proposals": self.proposals,
        }
