"""How the pages of reports are rendered: one environment, and the pictures that a page collects."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from markupsafe import Markup

from dpsynth._util.strict_json import json_text
from dpsynth.eval.report.formatting import shown


@dataclass
class _Drawings:
    """The pictures of a page, in the order in which the templates place them."""

    specs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, spec: dict[str, Any]) -> int:
        self.specs.append(spec)
        return len(self.specs) - 1

    def json(self) -> Markup:
        """Return the specs as JSON that no text can end early."""
        text = json_text(self.specs, indent=None, separators=(",", ":"))
        for mark in "<>&":
            text = text.replace(mark, f"\\u{ord(mark):04x}")
        return Markup(text)


def render(template: str, **values: Any) -> str:
    """Fill a template of this folder; it also gets ``drawings``, which collects its pictures."""
    return str(_environment().get_template(template).render(drawings=_Drawings(), **values))


@cache
def _environment() -> Any:
    from dpsynth._util.html import environment, said

    env = environment(__package__)
    env.filters |= {
        "said_plain": shown,
        "shown": shown,
        "cell": lambda cell: cell if isinstance(cell, Markup) else said(cell),
        "kind": lambda block: type(block).__name__,
        "anchor": _anchor,
    }
    env.globals |= {"plotly": _plotly}
    return env


def _anchor(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"-{ord(match[0]):x}-", key)


@cache
def _plotly() -> Markup:
    """Return the text of plotly's script; it holds nothing that ends a script early."""
    from plotly.offline import get_plotlyjs

    text = get_plotlyjs()
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        raise ValueError("this version of plotly cannot be put into a page; install another")
    return Markup(text)
