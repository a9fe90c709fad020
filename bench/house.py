"""Draw the rooms of dpsynth and their imports, from the contracts that hold them; write tables.

    python bench/house.py           # writes docs/house.svg, the tables of rooms and of
                                    # generators in docs/, and the paths of links to code whose
                                    # definition has moved
    python bench/house.py --check   # exit code 1 if one of them is out of date
    python bench/house.py --figures [checkout ...]  # what the house is judged by, one column each

The floors are the layers of the first contract in pyproject.toml; what a room decides is the first
line of its face, and the numbers are counted with the import graph that import-linter checks.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from html import escape
from pathlib import Path

import grimp
from doc_links import Links, pages
from house_figures import House

from dpsynth.models.registry import SPECS

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/house.svg"
WIDE, HIGH, GAP = 820, 46, 8
DATA = "data_schemas"  # no code


def floors() -> list[list[str]]:
    """Return the rooms from top to bottom, those of one floor together."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = next(one["layers"] for one in settings["contracts"] if one["id"] == "rooms")
    found = [[room.strip() for room in layer.split("|")] for layer in layers]
    return [[room for room in floor if room != DATA] for floor in found]


def decides(room: str) -> str:
    """Return what a room says of itself: the first line of its face, or of its only file."""
    folder = ROOT / (room if room in ("models", "eval") else f"dpsynth/{room}")
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text())) or ""
    return text.split("\n")[0].rstrip(".")


def imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports, at any level, for types or not."""
    graph = grimp.build_graph("dpsynth", cache_dir=None)
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules:
        parts = module.split(".")
        for other in graph.find_modules_directly_imported_by(module):
            there = other.split(".")
            if len(parts) > 1 and len(there) > 1 and parts[1] != there[1]:
                found[parts[1]].add(there[1])
    return found


def files(room: str) -> int:
    """Count the files of code of a room."""
    folder = ROOT / (room if room in ("models", "eval") else f"dpsynth/{room}")
    return sum(path.name != "__init__.py" for path in folder.rglob("*.py")) or 1


def picture() -> str:
    """Draw the floors, the highest first."""
    rows = floors()
    height = len(rows) * (HIGH + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" role="img" '
        'font-family="system-ui, sans-serif">',
        "<title>The rooms of dpsynth: each imports only from rooms below it</title>",
    ]
    for level, floor in enumerate(rows):
        width = (WIDE - GAP) / len(floor)
        for place, room in enumerate(floor):
            x, y = GAP + place * width, GAP + level * (HIGH + GAP)
            letters = int((width - 150) / 6.1)
            said = decides(room).split(": ", 1)[-1]
            said = said[0].lower() + said[1:]
            short = said if len(said) <= letters else said[: letters - 1].rsplit(" ", 1)[0] + " …"
            parts += [
                f'<rect x="{x:g}" y="{y}" width="{width - GAP:g}" height="{HIGH}" rx="6" '
                'fill="#eef4f3" stroke="#2f6f6a"/>',
                f'<text x="{x + 12:g}" y="{y + 28}" font-size="15" font-weight="600" '
                f'fill="#17403d">{room}</text>',
                f'<text x="{x + 132:g}" y="{y + 28}" font-size="12.5" fill="#333">'
                f"{escape(short)}</text>",
            ]
    return "\n".join([*parts, "</svg>", ""])


def table() -> str:
    """Return the rooms as a table: what each decides, its files, and what it imports."""
    rows = [room for floor in floors() for room in floor]
    known = imports()
    lines = ["| room | what it decides | files | imports |", "|---|---|---|---|"]
    for room in rows:
        below = [row for row in rows if row in known.get(room, ())]
        place = room if room in ("models", "eval") else f"dpsynth/{room}"
        place += "/__init__.py" if (ROOT / place).is_dir() else ".py"
        lines.append(
            f"| [`{room}`](../{place}) | {decides(room)} | {files(room)} | {', '.join(below)} |"
        )
    return "\n".join(lines) + "\n"


ABLE = {
    "a single table": lambda spec: spec.path,
    "linked tables": lambda spec: spec.histories,
    "`--checkpoints`": lambda spec: spec.resumable,
    "`--device`": lambda spec: spec.on_device,
    "`torchrun`": lambda spec: spec.on_ranks,
    "`--shards`": lambda spec: spec.in_shards,
    "`--in-warehouse`": lambda spec: spec.in_warehouse,
    "`--not-private`": lambda spec: spec.neural,
    "[rows under a condition](schema.md#rules)": lambda spec: spec.conditional,
}


def generators() -> str:
    """Return what each generator can do, as a table of the registry."""
    lines = [f"| model | {' | '.join(ABLE)} |", f"|---{'|---' * len(ABLE)}|"]
    for spec in SPECS:
        cells = ["yes" if able(spec) else "" for able in ABLE.values()]
        lines.append(f"| `{spec.name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


TABLES = {
    ROOT / "docs/architecture.md": ("rooms", table),
    ROOT / "docs/runbook.md": ("generators", generators),
}


def page(path: Path) -> str:
    """Return a page with its table as it should be."""
    name, made = TABLES[path]
    pattern = f"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->\n)"
    return re.sub(pattern, lambda _: made(), path.read_text(), count=1, flags=re.DOTALL)


def main() -> None:
    """Write both, or say which of them is out of date; or count."""
    if "--figures" in sys.argv[1:]:
        roots = [Path(one) for one in sys.argv[1:] if one != "--figures"] or [ROOT]
        columns = [House(root).counted() for root in roots]
        print("  ".join([f"{'':54}", *(f"{root.resolve().name:>10}" for root in roots)]))
        for name in columns[0]:
            print("  ".join([f"{name:54}", *(f"{column[name]:>10g}" for column in columns)]))
        return
    links, problems = Links(ROOT), []
    wanted = {path: path.read_text() for path in pages(ROOT)}
    wanted |= {PICTURE: picture()} | {path: page(path) for path in TABLES}
    for path in pages(ROOT):
        wanted[path], wrong = links.followed(path, wanted[path])
        problems += wrong
    stale = [path for path, text in wanted.items() if path.read_text() != text]
    if "--check" in sys.argv[1:]:
        problems += [f"{one.relative_to(ROOT)} is out of date: bench/house.py" for one in stale]
    else:
        for path in stale:
            path.write_text(wanted[path])
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
