"""Links from pages to files of code: each bears the definition that it means.

``[plan](../dpsynth/privacy/plan.py#PrivacyPlan)`` leads to the definition ``PrivacyPlan``, wherever
it lies. After a move, `python bench/house.py` finds it by its name and writes the new path. A link
to a whole room leads to its face, which needs no definition, and a link to a test to its file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mutant_places import PACKAGES, Definition, definitions, names_in

FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+\.py)(?:#([^)\s]*))?\)")


def pages(root: Path) -> list[Path]:
    """Return the pages of a checkout: those of its root, of docs/ and of bench/."""
    found = (root.glob("*.md"), (root / "docs").rglob("*.md"), (root / "bench").glob("*.md"))
    return sorted(page for some in found for page in some)


@dataclass(frozen=True)
class Links:
    """The links of pages to files of code below a folder, which has the packages."""

    root: Path

    @cached_property
    def places(self) -> Mapping[str, tuple[Definition, ...]]:
        """The definitions of all packages, by name."""
        return definitions(self.root)

    def followed(self, page: Path, text: str) -> tuple[str, list[str]]:
        """Return the text of a page with the paths of today, and what is wrong with its links."""
        parts, problems, end = [], [], 0
        for link in _outside_fences(text):
            line = f"{page.relative_to(self.root)}:{text.count(chr(10), 0, link.start()) + 1}"
            now, problem = self._followed(page, link)
            parts += [text[end : link.start()], now]
            problems += [f"{line}: {link[0]}: {problem}"] if problem else []
            end = link.end()
        return "".join([*parts, text[end:]]), problems

    def _followed(self, page: Path, link: re.Match[str]) -> tuple[str, str | None]:
        label, path, name = link.groups()
        old = Path(os.path.relpath(page.parent / path, self.root))
        old = Path(*old.parts[1:]) if old.parts[:2] in _LINKED else old  # dpsynth/models is a link
        if old.parts[0] not in PACKAGES or old.name == "__init__.py":
            return link[0], None
        if old.parent == Path("dpsynth") and (self.root / old).is_file():  # a room of one file
            return link[0], None
        if not name:
            return link[0], "name the definition that it means, as in plan.py#PrivacyPlan"
        file = self.root / old
        if file.is_file() and name in names_in(file.read_text()):
            return link[0], None
        files = sorted({place.file for place in self.places.get(name, ())})
        if len(files) != 1:
            there = f"it is in {', '.join(files)}" if files else "no file defines it"
            return link[0], f"{old} does not define {name}, and {there}; correct the link by hand"
        new = Path(files[0])
        for depth in range(1, len(old.parts) + 1):  # a label that is the path, or the end of it
            if label.strip("`") == Path(*old.parts[-depth:]).as_posix():
                label = label.replace(label.strip("`"), Path(*new.parts[-depth:]).as_posix())
                break
        return f"[{label}]({os.path.relpath(self.root / new, page.parent)}#{name})", None


_LINKED = [("dpsynth", package) for package in PACKAGES if package != "dpsynth"]


def _outside_fences(text: str) -> Iterator[re.Match[str]]:
    quoted = [(fence.start(), fence.end()) for fence in FENCE.finditer(text)]
    for link in LINK.finditer(text):
        if not any(start <= link.start() < end for start, end in quoted):
            yield link
