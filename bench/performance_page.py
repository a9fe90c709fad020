"""Put the figures of performance.json into docs/performance.md, between its two marks.

python bench/performance.py && python bench/performance_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- figures -->", "<!-- /figures -->"
TITLES = {
    "start": "Cold start",
    "codec": "Codec",
    "step": "A private step",
    "fits": "Fits",
    "sampling": "Drawing rows",
    "workers": "Several processes",
    "cluster": "A cluster",
    "evaluation": "Evaluation and audit",
}


def tables(document: dict[str, Any]) -> str:
    """Return a table for each part that was measured."""
    lines = [f"Measured on {document['machine']}.", ""]
    for part, title in TITLES.items():
        if (found := document["parts"].get(part)) is None:
            continue
        quick = ", with `--quick`" if found["quick"] else ""
        lines += [f"**{title}**{quick}", "", "| what | value | beside | its value | ratio |"]
        lines += ["|---|---:|---|---:|---:|"]
        for one in found["figures"]:
            value, other = (f"{number(one[key])} {one['unit']}" for key in ("value", "other"))
            ratio = f"{one['ratio']:.2f}"
            lines.append(f"| {one['what']} | {value} | {one['beside']} | {other} | {ratio} |")
        lines.append("")
    return "\n".join(lines)


def number(value: float) -> str:
    """Write three digits of a number, and no powers of ten."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    """Write the page anew."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    made = tables(json.loads((HERE / "performance.json").read_text()))
    PAGE.write_text(f"{before}{BEGIN}\n{made}{END}{after}")


if __name__ == "__main__":
    main()
