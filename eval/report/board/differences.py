"""The worst columns and relations, in plain words with a small picture.

A column whose mean or outer values are far off comes first: its bins may look right.

Figures of different kinds are put in one order by how many times they reach a limit: the distance
of a column beyond its reference, the share beyond the ends of the source, the share that is
missing, rows that break a rule, and the difference of a correlation. No column comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dpsynth.eval.report import sparklines
from dpsynth.eval.report.board.figures import beyond, listing, part, single_columns
from dpsynth.eval.report.board.means import off_columns
from dpsynth.eval.report.board.uses import COLUMNS, CORRELATIONS
from dpsynth.eval.report.formatting import figure, percent, shown, with_unit

Details = Mapping[str, Any]

SHOWN, MEANS_SHOWN = 5, 3
TAIL, MISSING, RULE = 0.05, 0.05, 0.01  # differences of shares that are as bad as a column's limit


@dataclass(frozen=True)
class Difference:
    """One way in which the table differs from the real rows.

    Attributes:
        kind: ``mean``, ``column``, ``end``, ``missing``, ``rule`` or ``relation``.
        title: the column or columns, or the rule.
        columns: names of the columns.
        score: times its limit; from 1 it makes the table unfit for analyses of these columns.
        sentence: what differs, with both figures.
        picture: the same, small.
    """

    kind: str
    title: str
    columns: tuple[str, ...]
    score: float
    sentence: str
    picture: Markup

    def to_dict(self) -> dict[str, Any]:
        """Give it in JSON types, without its picture."""
        return {
            "kind": self.kind,
            "title": self.title,
            "columns": list(self.columns),
            "score": round(self.score, 3),
            "sentence": self.sentence,
        }


def differences(document: Details, count: int = SHOWN) -> list[Difference]:
    """Return the worst differences, the worst first; only what is worse than real people."""
    known = [*_columns(document), *_ends(document), *_missing(document), *_rules(document)]
    known += _relations(document)
    first = sorted(_means(document), key=lambda one: -one.score)
    chosen: list[Difference] = []
    shown_columns: set[str] = set()
    for one in [*first[:MEANS_SHOWN], *sorted(known, key=lambda one: -one.score)]:
        if len(chosen) < count and one.score > 0 and not shown_columns & set(one.columns):
            chosen.append(one)
            shown_columns |= set(one.columns)
    return chosen


def _means(document: Details) -> Iterator[Difference]:
    columns = {str(c["name"]): c for c in single_columns(document)}
    for one in off_columns(document):
        whole = columns.get(one.name) or {}
        real, synthetic = whole.get("source"), whole.get("synthetic")
        picture = Markup("")
        if real and synthetic and len(real) == len(synthetic):
            picture = sparklines.outline(real, synthetic, joined=True)
        if one.unfit:
            yield Difference("mean", one.title, (one.name,), one.score, one.sentence, picture)


def _columns(document: Details) -> Iterator[Difference]:
    for column in single_columns(document):
        source, synthetic = column.get("source"), column.get("synthetic")
        away = beyond(column["tvd"]) if column.get("tvd") else None
        if away is None or not source or not synthetic or len(source) != len(synthetic):
            continue
        label, real, made = _span(column)
        where = f"are “{label}”"
        if column.get("kind") == "numeric":
            spans = " to " in label and not label.startswith("up to ")
            where = f"lie from {label}" if spans else f"lie {label}"
            if not spans and not label.startswith(("from ", "up to ")):
                where = f"are {label}"
        sentence = f"{percent(made)} of the synthetic values {where}; {percent(real)} of the real."
        yield Difference(
            "column",
            _title(column),
            (str(column["name"]),),
            away / COLUMNS[1],
            sentence,
            sparklines.outline(source, synthetic, joined=column.get("kind") == "numeric"),
        )


def _span(column: Details) -> tuple[str, float, float]:
    """Return the bins side by side (or the one category) that hold most of what is too much.

    >>> bins = {"kind": "numeric", "bins": ["1 to 2", "3 to 4", "5 to 6"]}
    >>> _span(bins | {"source": [0.6, 0.2, 0.2], "synthetic": [0.2, 0.4, 0.4]})
    ('3 to 6', 0.4, 0.8)
    """
    source, synthetic = column["source"], column["synthetic"]
    labels = [str(one) for one in column["bins"]]
    excess = [drawn - real for real, drawn in zip(source, synthetic, strict=True)]
    if column.get("kind") != "numeric":
        place = max(range(len(excess)), key=lambda k: abs(excess[k]))
        return shown(labels[place]), float(source[place]), float(synthetic[place])
    best, first, last, begin, total = excess[0], 0, 0, 0, 0.0
    for place, value in enumerate(excess):
        if total <= 0:
            begin, total = place, 0.0
        total += value
        if total > best:
            best, first, last = total, begin, place
    label = labels[first] if first == last else _joined(labels[first], labels[last])
    inside = slice(first, last + 1)
    return shown(label), round(sum(source[inside]), 9), round(sum(synthetic[inside]), 9)


def _joined(first: str, last: str) -> str:
    """Name the bins from one to another.

    >>> _joined("1 to 2", "5 to 6"), _joined("up to 9", "12"), _joined("3 to 4", "from 90")
    ('1 to 6', 'up to 12', 'from 3')
    """
    low = "" if first.startswith("up to ") else first.split(" to ")[0]
    high = "" if last.startswith("from ") else last.split(" to ")[-1]
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}"


def _ends(document: Details) -> Iterator[Difference]:
    titles = {str(c["name"]): c for c in part(document, "fidelity").get("columns") or []}
    for tail in part(document, "fidelity").get("tails") or []:
        source, synthetic = tail.get("source"), tail.get("synthetic")
        if source is None or synthetic is None:
            continue
        holdout = tail.get("holdout")
        away = abs(synthetic - source) - (abs(holdout - source) if holdout is not None else 0.0)
        side = "below its first" if tail.get("tail") == "low" else "above its 99th"
        column = str(tail["column"])
        sentence = (
            f"{percent(synthetic)} of the synthetic values are {side} real percentile; "
            f"{percent(source)} of the real ones."
        )
        whole = titles.get(column) or {}
        real, made = whole.get("source"), whole.get("synthetic")
        if real and made and len(real) == len(made):
            picture = sparklines.outline(real, made, joined=True)
        else:
            top = 1.2 * max(source, synthetic, 0.01)
            picture = sparklines.shares(source, synthetic, holdout, maximum=top)
        title = f"{_title(titles.get(column) or {'name': column})}: its end"
        yield Difference("end", title, (column,), away / TAIL, sentence, picture)


def _missing(document: Details) -> Iterator[Difference]:
    for column in part(document, "fidelity").get("columns") or []:
        shares = column.get("missing") or {}
        source, synthetic, holdout = (shares.get(n) for n in ("source", "synthetic", "holdout"))
        if source is None or synthetic is None:
            continue
        away = abs(synthetic - source) - (abs(holdout - source) if holdout is not None else 0.0)
        sentence = (
            f"It is missing in {percent(synthetic)} of the synthetic rows; in {percent(source)} of "
            "the real ones."
        )
        maximum = 1.2 * max(source, synthetic, 0.01)
        picture = sparklines.shares(source, synthetic, holdout, maximum=maximum)
        title, name = f"{_title(column)}: missing", str(column["name"])
        yield Difference("missing", title, (name,), away / MISSING, sentence, picture)


def _rules(document: Details) -> Iterator[Difference]:
    for rule in listing(document, "rules"):
        source, synthetic = rule.get("source") or 0.0, rule.get("synthetic") or 0.0
        text = shown(rule.get("plain") or rule.get("text") or rule.get("rule") or "")
        sentence = f"{percent(synthetic)} of the synthetic rows break the rule; "
        sentence += f"{percent(source)} of the real ones."
        picture = sparklines.shares(
            source, synthetic, rule.get("holdout"), maximum=1.2 * max(source, synthetic, 0.01)
        )
        away = (synthetic - source) / RULE
        yield Difference("rule", f"Rule: {text}", (), away, sentence, picture)


def _relations(document: Details) -> Iterator[Difference]:
    correlation = (part(document, "fidelity").get("pairs") or {}).get("correlation") or {}
    names: Sequence[Any] = correlation.get("names") or []
    titles = {str(c["name"]): _title(c) for c in part(document, "fidelity").get("columns") or []}
    real, made = correlation.get("source") or [], correlation.get("synthetic") or []
    if len(real) != len(names) or len(made) != len(names):
        return
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            source, synthetic = real[i][j], made[i][j]
            if source is None or synthetic is None:
                continue
            away = abs(synthetic - source) - CORRELATIONS[0]
            both = [titles.get(str(one)) or shown(one) for one in (second, first)]
            sentence = (
                f"Their correlation is {figure(float(synthetic), 2)} in the synthetic table; "
                f"{figure(float(source), 2)} in the real rows."
            )
            yield Difference(
                "relation",
                f"{both[0]} with {both[1]}",
                (str(second), str(first)),
                away / CORRELATIONS[1],
                sentence,
                sparklines.shares(source, synthetic, minimum=-1.0, maximum=1.0),
            )


def _title(column: Details) -> str:
    return with_unit(str(column.get("title") or column["name"]), column.get("unit"))
