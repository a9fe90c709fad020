"""Sections of a page that a program writes, between two marks; the rest of the page stays."""

from __future__ import annotations

from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    """Return the comments around the section of a name."""
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def replace_section(text: str, body: str, name: str) -> str:
    """Put a body between the marks; without marks, after the first heading's paragraph.

    Raises:
        ValueError: one mark stands without the other, or they stand in the wrong order.
    """
    opened, closed = marks(name)
    marked = f"{opened}\n\n{body}\n\n{closed}"
    start, end = text.find(opened), text.find(closed)
    if start >= 0 and end > start:
        return text[:start] + marked + text[end + len(closed) :]
    if start >= 0 or end >= 0:
        raise ValueError(f"the marks {opened} and {closed} do not enclose a section")
    blocks = text.rstrip("\n").split("\n\n")
    heading = next((i for i, block in enumerate(blocks) if block.startswith("#")), -1)
    after = heading + 1
    if after < len(blocks) and not blocks[after].startswith("#"):
        after += 1  # the heading's paragraph
    return "\n\n".join([*blocks[:after], marked, *blocks[after:]]) + "\n"


def write_section(page: Path, body: str, name: str) -> None:
    """Replace the section of a name in a page, whole or not at all."""
    from dpsynth.files.atomic import atomic_file

    text = replace_section(page.read_text(), body, name)
    with atomic_file(page) as part:
        part.write_text(text)
