"""Write what quality.py measured into docs/benchmarks.md, and draw docs/quality.svg.

usage: quality_report.py [--show] [--work DIR] [--delta 1e-5] [--docs DIR]

Replaces what stands between the marks of the section and nothing else. With --show the section is
printed, and no file is written.
"""

from __future__ import annotations

import argparse
import csv
import math
import textwrap
from collections.abc import Mapping
from pathlib import Path

from pages import write_section
from quality_results import (
    BOOTSTRAP,
    CEILING,
    GAP,
    SCORES,
    SECONDS,
    TRAIN_TEST,
    Cell,
    Group,
    Line,
    Mean,
    floors,
    read_lines,
    summary,
)
from quality_targets import Pick, Verdict, judged, picked

HERE = Path(__file__).parent
PICTURE = "quality.svg"
SEEDS = 3  # that a target is a mean of
NAMES = {"tvd1": "TVD1", "tvd2": "TVD2", "tvd3": "TVD3", "tstr_hgb": "TSTR", "c2st_auc": "C2ST"}
NAMES |= {"fit_s": "fit s", "sample_s": "sample s", GAP: "TSTR below real"}
REAL_IN_BINS = "real rows in its bins"
FLOORS = {TRAIN_TEST: "test rows", BOOTSTRAP: "bootstrap of training rows"}
NOTHING = "–"
MEASURES = """
Each generator learns from the scorer's training split and draws as many rows as that split has.
TVD1, TVD2 and TVD3 are the mean total variation distances of one, two and three columns to the
training rows. TSTR is the AUROC of gradient boosting that was trained on synthetic rows and tested
on real ones. C2ST is the AUC of a classifier that tells synthetic from real rows (.5: it cannot).
The tables show means over the seeds, ± half their range. The noise is never seeded, so a repeat
gives other figures. For a table with more than 1 / delta units, the fit uses a tenth of delta.
Seconds are of one thread, with other work on the machine. The last two lines of each table are
references from real rows: first the test rows, with the TSTR of a model trained on the real
training rows, then a bootstrap of the training rows, scored as if it were synthetic. The `tvae`
lines were measured before settling was added; [tvae](#tvae) has the current figures.
"""
READING = """
In all panels, lower is better. Below the dashed line, a synthetic table is closer to the training
rows than the test rows are. The dotted line is the bootstrap. Bars show half the range over the
seeds.
"""
IN_BINS = """
"Real rows in its bins" ([ceiling.py](../bench/ceiling.py)) are the training rows, cut into the bins
of a fit by `auto` and drawn within these bins again: the best that any generator could do with
these bins.
"""
PEERS = """
We made one fit of each on one core and scored it with the same scorer on the same split: rows as
units, delta 1e-5 ([bench/peers.csv](../bench/peers.csv)). We cut the training of the deep
generators to fit into 15 minutes, so they could do better. With one fit each, differences in TSTR
below .03 mean little.
"""


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a CSV file with a header, less its lines that start with #."""
    with path.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def paragraph(text: str) -> str:
    """Set text in lines of a hundred characters."""
    return textwrap.fill(
        " ".join(text.split()), 100, break_long_words=False, break_on_hyphens=False
    )


def title(table: str, unit: str) -> str:
    """Name a table and what its privacy protects."""
    kept = ", at most 5 rows each" if unit == "patient" else ""
    return f"{table}, {unit}s as units{kept}"


def number(measure: str, value: float) -> str:
    """Format a measure: TVD with four decimals, AUROC with three, seconds with one."""
    decimals = 1 if measure in SECONDS else (4 if measure.startswith("tvd") else 3)
    text = f"{value:.{decimals}f}"
    return text if measure in SECONDS else text.replace("0.", ".", 1)


def spread(measure: str, mean: Mean | None, seeds: int) -> str:
    """Format a mean, with half its range where there are several seeds."""
    if mean is None:
        return NOTHING
    text = number(measure, mean.value)
    return f"{text} ± {number(measure, mean.half_range)}" if seeds > 1 else text


def table_of(head: list[str], rows: list[list[str]], *, words: int = 2) -> str:
    """Return a Markdown table; all columns after so many of words are figures."""
    lines = [head, ["---"] * words + ["---:"] * (len(head) - words), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def measured(
    cells: Mapping[Group, Cell],
    real: Mapping[tuple[str, str], Mapping[str, float]],
    table: str,
    unit: str,
) -> str:
    """Return the table of one table and unit: generators by epsilon, then real rows."""
    rows, last = [], math.nan
    for group in sorted((g for g in cells if g[:2] == (table, unit)), key=lambda g: (g[3], g[2])):
        cell, (_, _, model, epsilon) = cells[group], group
        name = model if cell.chosen == (model,) else f"{model} ({', '.join(cell.chosen)})"
        name = REAL_IN_BINS if model == CEILING else name
        figures = [spread(m, cell.means.get(m), cell.seeds) for m in (*SCORES, *SECONDS)]
        rows.append(["" if epsilon == last else f"{epsilon:g}", name, str(cell.seeds), *figures])
        last = epsilon
    for floor, name in FLOORS.items():
        if (table, floor) in real:
            values = real[table, floor]
            figures = [number(m, values[m]) if m in values else NOTHING for m in SCORES]
            rows.append(["real", name, "", *figures, "", ""])
    head = ["epsilon", "model", "seeds", *(NAMES[m] for m in (*SCORES, *SECONDS))]
    return table_of(head, rows)


def verdicts_table(verdicts: list[Verdict]) -> str:
    """Return the table of targets, one line for each table, unit and epsilon."""
    measures = list(dict.fromkeys(verdict.measure for verdict in verdicts))
    rows = []
    for case in dict.fromkeys(verdict.case for verdict in verdicts):
        here = {verdict.measure: verdict for verdict in verdicts if verdict.case == case}
        first = next(iter(here.values()))
        figures = [str(here.get(measure, "")) for measure in measures]
        table, unit, epsilon = case
        words = [f"{table}, {unit}s", f"{epsilon:g}", first.model or NOTHING, str(first.seeds)]
        rows.append([*words, *figures])
    head = ["table, units", "epsilon", "model", "seeds", *(NAMES[m] for m in measures)]
    return table_of(head, rows, words=3)


def peers_table(peers: list[dict[str, str]]) -> str:
    """Return the table of what other packages score."""
    scores = [[row[m].replace("0.", ".", 1) for m in SCORES] for row in peers]
    rows = [
        [row["peer"], row["epsilon"], *figures, row["fit_s"]]
        for row, figures in zip(peers, scores, strict=True)
    ]
    return table_of(["package", "epsilon", *(NAMES[m] for m in SCORES), "fit s"], rows)


def section(
    lines: list[Line],
    targets: list[dict[str, str]],
    peers: list[dict[str, str]],
    *,
    delta: float,
    pick: Pick,
) -> str:
    """Return the section's text without its marks."""
    cells, real = summary(lines, delta=delta), floors(lines)
    code = ", ".join(sorted({f"`{line['commit'] or 'unknown'}`" for line in lines}))
    verdicts = judged(cells, targets, pick)
    ceilings = any(group[2] == CEILING for group in cells)
    small = f"{delta:g}".replace("e-0", "e-")
    parts = [
        "## Quality",
        paragraph(f"`make quality` (code at {code}; delta {small}). {MEASURES}"),
        f"![Error against epsilon for each table and generator]({PICTURE})",
        paragraph(f"{READING} {IN_BINS if ceilings else ''}"),
        "### Targets",
        paragraph(
            f"{sum(v.met for v in verdicts)} of {len(verdicts)} targets are met "
            "([bench/targets.csv](../bench/targets.csv)). Each target applies to the mean over "
            f"{SEEDS} seeds of `--model auto`. Where `auto` was not run, it applies to the "
            "generator that `auto` chooses."
        ),
        verdicts_table(verdicts),
    ]
    cases = {group[:2] for group in cells}
    for case in dict.fromkeys((row["table"], row["unit"]) for row in targets):
        if case in cases:
            parts += [f"### {title(*case)}", measured(cells, real, *case)]
    for case in sorted(cases - {(row["table"], row["unit"]) for row in targets}):
        parts += [f"### {title(*case)}", measured(cells, real, *case)]
    parts += ["### Other packages on cardio", paragraph(PEERS), peers_table(peers)]
    return "\n\n".join(parts)


def main() -> None:
    """Write the section and the picture, or print the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("build/quality"))
    parser.add_argument("--docs", type=Path, default=HERE.parent / "docs")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--show", action="store_true", help="print the section, write nothing")
    chosen = parser.parse_args()
    lines = read_lines(chosen.work / "results.jsonl")
    if not summary(lines, delta=chosen.delta):
        print(f"nothing to report: {chosen.work / 'results.jsonl'} holds no fit")
        return
    peers = read_csv(HERE / "peers.csv")
    body = section(
        lines,
        read_csv(HERE / "targets.csv"),
        peers,
        delta=chosen.delta,
        pick=picked(chosen.work / "tables", chosen.delta),
    )
    if chosen.show:
        print(body)
        return
    from quality_figure import draw

    draw(lines, peers, chosen.docs / PICTURE, delta=chosen.delta)
    write_section(chosen.docs / "benchmarks.md", body, "quality")


if __name__ == "__main__":
    main()
