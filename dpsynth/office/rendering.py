"""How pages of an office are rendered: escaped, with one style sheet, and every form signed."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment
from markupsafe import Markup, escape

from dpsynth._util.html import environment


@cache
def _templates() -> Environment:
    templates = environment("dpsynth.office")
    templates.filters["typed"] = typed
    templates.filters["command"] = command
    templates.globals["newline"] = "\n"
    return templates


def typed(text: object) -> Markup:
    """Escape what stands in a field of a form, and change nothing else: it comes back."""
    return Markup(escape(text))


def command(text: str) -> Markup:
    """Set a command line apart."""
    return Markup("<code>{}</code>").format(text)


def render(template: str, **values: Any) -> str:
    """Render a page."""
    return _templates().get_template(template).render(**values)


@cache
def style() -> str:
    """Return the style sheet: that of all pages, then what forms need."""
    return render("all.css")
