"""Links from docs/ to the rest of the repository, for a site that holds docs/ alone.

On a code host such a link leads to the file. On the site it becomes a link to the public repository
if ``repo_url`` names one; else the name of the file, so that nothing leads nowhere. The fragment of
a link to code names a definition (``plan.py#PrivacyPlan``), and is shown with the path of the file.
A link to a file that does not exist is left as it is, and ``mkdocs build --strict`` refuses it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

ROOT = Path(__file__).parent
BRANCH = "blob/main/"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#\s]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)\s*?$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Rewrite the links of one page that lead out of docs/."""
    folder = Path(config["docs_dir"], page.file.src_uri).parent
    return rewritten(markdown, folder, Path(config["docs_dir"]), config["repo_url"])


def rewritten(markdown: str, folder: Path, docs: Path, repository: str | None) -> str:
    """Rewrite links that lead out of ``docs``, outside of fenced blocks.

    Args:
        markdown: of a page.
        folder: where the page lies.
        docs: the folder of all pages.
        repository: address of the public repository, if there is one.
    """

    def replaced(link: re.Match[str]) -> str:
        text, path, anchor = link[1], link[2], link[3] or ""
        target = Path(os.path.normpath(folder / path))
        if target.is_relative_to(docs) or not target.exists():
            return link[0]
        place = target.relative_to(ROOT).as_posix()
        if repository:
            return f"[{text}]({urljoin(repository.rstrip('/') + '/', BRANCH + place)}{anchor})"
        name = f"`{target.name}`{{ title='{place}{anchor}' }}"
        same = text.strip("`") in (place, path, target.name, target.stem)
        return name if same else f"{text} {name}"

    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_LINK.sub(replaced, markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(replaced, markdown[end:])])
