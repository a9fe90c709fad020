"""Linkage on disk: a request, its certificate and noisy numbers; all else follows from them.

Precision, recall and F1 by threshold, from noisy numbers of pairs: post-processing alone.

**Numbers.** From a threshold on, M pairs are matches and N are none; M_0 is that of the lowest
threshold. Numbers cannot rise with the threshold, so the noisy ones are replaced by the nearest
(least squares) that do not rise, and that are not negative.

**Figures.** Precision is M / (M + N), recall M / M_0, F1 is 2 M / (M + N + M_0): each a ratio of
two sums of the noisy numbers n, (u n) / (v n).

**Intervals** are those of Fieller (JRSS B 16, 1954): all shares s for which (u - s v) n is as near
0 as its noise permits. At the extract's own ratio that is noise alone, with the variance
sum (u_i - s v_i)^2 sigma_i^2, however small the numbers are. Where the lower sum may be 0, the
interval is all from 0 to 1. They are made from the numbers as they were drawn; where the figure
that does not rise lies outside of its interval, the interval is widened to it, so they hold at
least as often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from markupsafe import Markup

from dpsynth._util.arguments import path_of
from dpsynth._util.formatting import counted, figure, shown
from dpsynth._util.short_repr import short_repr
from dpsynth._util.strict_json import as_object, digest, texts, written
from dpsynth.certificate import Certificate
from dpsynth.errors import ArtifactError, DpsynthError
from dpsynth.privacy import Event, LinkCounts, counted_of
from dpsynth.privacy.answer_events import LINKAGE
from dpsynth.stats.claim import problems_of_claim
from dpsynth.stats.linkage.request import MATCHES, OTHERS, UNREVIEWED, LinkageRequest
from dpsynth.stats.package import (
    MANIFEST,
    ChargedStatistics,
    data_package,
    read_paid,
    require_same,
    save_files,
)
from dpsynth.stats.page import rendered
from dpsynth.stats.pictures import Curve, panel
from dpsynth.stats.results import normal_quantile

FORMAT, VERSION = "dpsynth-linkage", 1
DOCUMENT, MODEL = "linkage.json", LINKAGE
_KEYS = ("format", "version", "request", "certificate", "numbers", "stamps", "sha256")


@dataclass(frozen=True, eq=False, repr=False)
class Linkage:
    """Numbers of linked pairs of two registers, with the certificate of what they cost.

    Attributes:
        request: what was asked for.
        certificate: the privacy certificate; it names both registers and both charges.
        numbers: noisy numbers of pairs from each threshold on, by class: ``[thresholds]``.
        stamps: reasons why they may not be released, such as ``no-ledger``.
    """

    request: LinkageRequest
    certificate: Certificate
    numbers: Mapping[str, npt.NDArray[np.int64]]
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the registers and the cost."""
        return short_repr(self, " and ".join(self.request.names), repr(self.certificate))

    @property
    def events(self) -> dict[str, Event]:
        """The events of the certificate, by name."""
        return {event.name: event for event in self.certificate.events}

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return what is published: ``thresholds`` and ``bands``; see `figures.tables_of`."""
        return tables_of(self.request, self.numbers, self.events)

    @property
    def digest(self) -> str:
        """SHA-256 by which the ledger knows them."""
        return str(self._document()["sha256"])

    @property
    def charged(self) -> ChargedStatistics:
        """What a ledger asks of something that it charged."""
        return ChargedStatistics(self.certificate.to_dict(), self.stamps, self.digest)

    def _document(self) -> dict[str, Any]:
        document = {
            "format": FORMAT,
            "version": VERSION,
            "request": self.request.document,
            "certificate": self.certificate.to_dict(),
            "numbers": {name: part.tolist() for name, part in self.numbers.items()},
            "stamps": list(self.stamps),
        }
        return document | {"sha256": digest(document)}

    def files(self) -> dict[str, bytes]:
        """Return every file, by name."""
        request, tables = self.request, self.tables()
        found = {
            DOCUMENT: written(self._document()),
            "privacy.json": written(self.certificate.to_dict()),
            "schema-a.json": written(request.schemas[0].to_dict()),
            "schema-b.json": written(request.schemas[1].to_dict()),
            "report.html": linkage_page(request, self.certificate, self.stamps, tables),
        }
        for name, table in tables.items():
            found[f"{name}.csv"] = table.to_csv(index=False, lineterminator="\n").encode()
            found[f"{name}.json"] = written(self._described(name, table))
        named = {f"{name}.csv": table for name, table in tables.items()}
        title = {"title": f"Linkage: {request.title}"}
        return found | {MANIFEST: written(data_package(request.title, found, named) | title)}

    def _described(self, name: str, table: pd.DataFrame) -> dict[str, Any]:
        rows = table.astype(object).where(table.notna(), None)
        return {
            "name": name,
            "registers": list(self.request.names),
            "confidence": self.request.confidence,
            "intervals": "of the noise, about the figure of the candidate pairs that count",
            "events": [event.to_dict() for event in self.certificate.events],
            "columns": list(table.columns),
            "rows": [list(row) for row in rows.itertuples(index=False, name=None)],
        }

    def save(self, folder: str | Path) -> Path:
        """Write all files into a new folder, whole or not at all.

        Raises:
            InputError: the folder exists or cannot be written.
        """
        return save_files(self.files(), folder)

    @classmethod
    def load(cls, folder: str | Path) -> Linkage:
        """Read linkage from its folder, and check all that can be checked without a ledger.

        Raises:
            ArtifactError: a file is missing, damaged or changed, a number was not paid for, or the
                certificate claims less than the numbers cost, or names one register alone.
        """
        path = path_of(folder) / DOCUMENT
        document = read_paid(path, FORMAT, VERSION, _KEYS)
        try:
            request = LinkageRequest.from_dict(as_object(document["request"], f"{path}: request"))
        except DpsynthError as error:
            raise ArtifactError(f"{path}: {error}") from error
        certificate = Certificate.from_dict(document["certificate"], f"{path}: certificate")
        stamps = texts(document["stamps"], f"{path}: stamps")
        first, second = request.schemas
        shares = request.shares()
        why = request.own_records
        if why is None:
            raise ArtifactError(f"{path}: the request declares no own_records, which it needs")
        wrong = problems_of_claim(first, shares, MODEL, certificate, stamps, second, why)
        charged = certificate.ledger is not None
        if charged and certificate.is_joint != request.same_people:
            wrong.append("the charges are not those of people who are, or are not, in both")
        if wrong:
            raise ArtifactError(f"{path}: {wrong[0]}")
        numbers = _numbers(document["numbers"], request, f"{path}: numbers")
        found = cls(request, certificate, numbers, stamps)
        require_same(found.files(), path)
        return found


def _numbers(document: Any, request: LinkageRequest, place: str) -> dict[str, Any]:
    """Read the numbers that were paid for, all of them, and no number more."""
    stated = as_object(document, place)
    if set(stated) != set(request.classes):
        raise ArtifactError(f"{place}: there must be numbers of {', '.join(request.classes)}")
    for part in stated.values():
        if not isinstance(part, list) or len(part) != len(request.thresholds):
            raise ArtifactError(f"{place}: there must be a number for each threshold")
        if not all(type(one) is int and abs(one) < 2**62 for one in part):
            raise ArtifactError(f"{place}: there must be whole numbers alone")
    return {name: np.array(stated[name], dtype=np.int64) for name in request.classes}


def linkage_page(
    request: LinkageRequest,
    certificate: Certificate,
    stamps: Sequence[str],
    tables: Mapping[str, pd.DataFrame],
) -> bytes:
    """Return the page as HTML; it holds what the files beside it hold, and nothing else.

    Args:
        request: what was asked.
        certificate: of the numbers.
        stamps: reasons why they may not be released.
        tables: as `figures.tables_of` gives them.
    """
    return rendered(
        "linkage.html",
        certificate,
        stamps,
        title=request.title,
        names=[shown(name) for name in request.names],
        protected=protected_of(request, certificate),
        confidence=f"{100 * request.confidence:g} %",
        picture=_picture(tables["thresholds"]),
        noise=", ".join(
            f"{event.name} {figure(event.sigma)}"
            for event in certificate.events
            if isinstance(event, LinkCounts)
        ),
        tables=[_table(name, table) for name, table in tables.items()],
    ).encode()


def protected_of(request: LinkageRequest, certificate: Certificate) -> str:
    """Say whose presence the guarantee hides: the people of both registers."""
    people = [
        f"{counted_of(one.unit)} of {name} (column '{shown(one.unit.name or '')}')"
        for one, name in zip(certificate.registers, request.names, strict=True)
    ]
    matches = f"{request.cap_of_matches:,} {'match' if request.cap_of_matches == 1 else 'matches'}"
    caps = f"{matches} and {counted(request.cap_of_others, 'other pair')}"
    words = (
        f"The guarantee protects each {people[0]} and each {people[1]}, with all of their "
        f"candidate pairs together; at most {caps} of each record count at a threshold. "
    )
    if request.own_records is not None:
        words += (
            "The office declares that each pair follows from its own two records alone: whether "
            f"it is a candidate, its score and its review ({shown(request.own_records)}). "
        )
    if request.same_people:
        return words + "It covers a person who is in both registers, with both records."
    return words + (
        "It assumes that no person is in both registers, and nothing checks that: for whoever is, "
        "noise hides only half as much."
    )


def _picture(table: pd.DataFrame) -> Markup | None:
    """Draw precision, recall and F1 against the threshold."""
    x = table["threshold"].tolist()
    curves = []
    for name in RATIOS:
        known = table[name].notna()
        columns = [table.loc[known, label] for label in (name, f"{name}: lower", f"{name}: upper")]
        middle, low, high = (column.astype(float).tolist() for column in columns)
        if len(middle) > 1:
            curves.append(Curve(name, table.loc[known, "threshold"].tolist(), middle, low, high))
    if not curves:
        return None
    ends = [x[0], x[-1]] if len(x) > 8 else x
    ticks = [(one, f"{one:g}") for one in ends]
    title = "Precision, recall and F1 by threshold"
    return panel("linkage", title, curves, ticks, 1.0, before="from", percent=True)


def _table(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return a table for the page, an interval beside each figure."""
    plain = [str(name) for name in table if not str(name).endswith((": lower", ": upper"))]
    rows = []
    for _, row in table.iterrows():
        cells = []
        for column in plain:
            words = _words(row[column])
            if f"{column}: lower" in table:
                ends = (_words(row[f"{column}: {end}"]) for end in ("lower", "upper"))
                words = f"{words} ({' to '.join(ends)})"
            cells.append({"words": words, "number": not isinstance(row[column], str)})
        rows.append(cells)
    return {"name": name, "columns": plain, "rows": rows}


def _words(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return "unknown"
    return f"{cell:,.0f}" if float(cell).is_integer() and abs(cell) > 1 else f"{cell:g}"


Floats = npt.NDArray[np.float64]
Numbers = Mapping[str, npt.NDArray[np.int64]]
RATIOS = ("precision", "recall", "F1")
_DIGITS = 4  # of a ratio


def tables_of(
    request: LinkageRequest, numbers: Numbers, events: Mapping[str, Event]
) -> dict[str, pd.DataFrame]:
    """Make the tables of linkage from its noisy numbers.

    Args:
        request: what was asked.
        numbers: noisy, by class: ``[thresholds]``.
        events: that paid for them, by class.

    Returns:
        ``thresholds``: what is accepted from each threshold on, and how good that is; ``bands``:
        the pairs of each class between two thresholds. Each figure has its interval.
    """
    z = normal_quantile(request.confidence)
    sigma = {name: _sigma(events[name]) for name in request.classes}
    raw = {name: np.asarray(numbers[name], np.float64) for name in request.classes}
    smooth = {name: falling(values) for name, values in raw.items()}
    found: dict[str, Sequence[object]] = {"threshold": request.thresholds}
    sd = float(np.sqrt(sum(one**2 for one in sigma.values())))
    total = sum(raw.values(), np.zeros(len(request.thresholds)))
    found |= _counted("accepted", sum(smooth.values(), np.zeros(len(total))), total, sd, z)
    for name in request.classes:
        found |= _counted(name, smooth[name], raw[name], sigma[name], z)
    for place, name in enumerate(RATIOS):
        cells = [
            _ratio(_weights(place, t, len(total)), smooth, raw, sigma, z) for t in range(len(total))
        ]
        middle, low, high = zip(*cells, strict=True)
        found |= {name: middle, f"{name}: lower": low, f"{name}: upper": high}
    return {
        "thresholds": pd.DataFrame(found),
        "bands": _bands(request, raw, smooth, sigma, z),
    }


def falling(values: Floats) -> Floats:
    """Return the nearest numbers that do not rise, at least 0.

    >>> falling(np.array([10.0, 4.0, 6.0, -2.0])).tolist()
    [10.0, 5.0, 5.0, 0.0]
    """
    from sklearn.isotonic import isotonic_regression

    nearest = np.asarray(isotonic_regression(values, increasing=False), np.float64)
    return np.maximum(nearest, 0.0)


def fieller_of(
    top: Floats, bottom: Floats, numbers: Floats, sigmas: Floats, z: float
) -> tuple[float, float]:
    """Return the interval of a ratio of two sums of the same noisy numbers, within 0 and 1.

    Args:
        top: weights of the upper sum, ``[numbers]``.
        bottom: those of the lower one.
        numbers: noisy.
        sigmas: sd of the noise of each.
        z: standard deviations to each side.

    >>> ends = fieller_of(np.array([1.0, 0]), np.ones(2), np.array([90.0, 10]), np.full(2, 3.0), 2)
    >>> [round(end, 2) for end in ends]
    [0.85, 0.96]
    """
    spread = (z * sigmas) ** 2
    over, under = float(top @ numbers), float(bottom @ numbers)
    a = under**2 - float(bottom**2 @ spread)
    b = over * under - float((top * bottom) @ spread)
    c = over**2 - float(top**2 @ spread)
    if a <= 0:
        return 0.0, 1.0
    root = float(np.sqrt(max(b**2 - a * c, 0.0)))
    low, high = np.clip([(b - root) / a, (b + root) / a], 0.0, 1.0).tolist()
    return low, high


def _sigma(event: Event) -> float:
    assert isinstance(event, LinkCounts)
    return event.sigma


def _weights(figure: int, t: int, count: int) -> tuple[Floats, Floats]:
    """Return the weights of both sums of a figure, over all matches and then all other pairs."""
    top, bottom = np.zeros(2 * count), np.zeros(2 * count)
    top[t] += 2 if RATIOS[figure] == "F1" else 1
    if RATIOS[figure] != "recall":
        bottom[[t, count + t]] += 1
    if RATIOS[figure] != "precision":
        bottom[0] += 1
    return top, bottom


def _ratio(
    weights: tuple[Floats, Floats],
    smooth: Mapping[str, Floats],
    raw: Mapping[str, Floats],
    sigma: Mapping[str, float],
    z: float,
) -> tuple[float | None, float, float]:
    """Return a ratio with its interval; None where nothing is below the line."""
    top, bottom = weights
    values = np.concatenate([smooth[MATCHES], smooth[OTHERS]])
    noisy = np.concatenate([raw[MATCHES], raw[OTHERS]])
    half = len(values) // 2
    sigmas = np.repeat([sigma[MATCHES], sigma[OTHERS]], half)
    low, high = fieller_of(top, bottom, noisy, sigmas, z)
    under = float(bottom @ values)
    if under <= 0:
        return None, 0.0, 1.0
    ratio = min(float(top @ values) / under, 1.0)
    ends = min(low, ratio), max(high, ratio)
    return round(ratio, _DIGITS), _down(ends[0]), -_down(-ends[1])


def _down(value: float) -> float:
    """Round a share down; an upper end is rounded up, as the negative of this."""
    scaled = np.floor(value * 10**_DIGITS + 1e-9)
    return float(round(scaled / 10**_DIGITS, _DIGITS)) + 0.0


def _counted(
    name: str, values: Floats, raw: Floats, sd: float, z: float
) -> dict[str, Sequence[object]]:
    """Return columns of whole numbers with their intervals, from 0."""
    reach = float(np.ceil(z * sd))
    middle = np.rint(values)
    low = np.minimum(np.maximum(raw - reach, 0), middle)
    high = np.maximum(np.maximum(raw + reach, 0), middle)
    columns = zip((name, f"{name}: lower", f"{name}: upper"), (middle, low, high), strict=True)
    return {label: column.astype(np.int64).tolist() for label, column in columns}


def _bands(
    request: LinkageRequest,
    raw: Mapping[str, Floats],
    smooth: Mapping[str, Floats],
    sigma: Mapping[str, float],
    z: float,
) -> pd.DataFrame:
    """List the pairs between two thresholds, by class: differences of what was counted."""
    ends = [*(f"{one:g}" for one in request.thresholds[1:]), ""]
    frames = []
    for name in request.classes:
        drawn, nearest = (-np.diff(one[name], append=0.0) for one in (raw, smooth))
        sds = sigma[name] * np.sqrt([2.0] * (len(ends) - 1) + [1.0])
        rows = [
            _counted("pairs", nearest[[t]], drawn[[t]], float(sds[t]), z) for t in range(len(ends))
        ]
        columns = {label: [cell for row in rows for cell in row[label]] for label in rows[0]}
        places = {"from": [f"{one:g}" for one in request.thresholds], "below": ends}
        frames.append(pd.DataFrame(places | {"review": _REVIEW[name]} | columns))
    return pd.concat(frames, ignore_index=True)


_REVIEW = {MATCHES: "match", OTHERS: "no match", UNREVIEWED: "not reviewed"}
