"""How every page is rendered: escaped, strict about names, and no text as it is."""

from __future__ import annotations

from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dpsynth._util.formatting import shown


def environment(package: str) -> Environment:
    """Return the environment of a package's folder ``templates``, and of what pages share.

    Text is escaped, its invisible characters are named, and a name that is not given is an error.
    ``said`` is a filter for names, which keep their own direction of writing.
    """
    templates = Environment(
        loader=ChoiceLoader(
            [PackageLoader(package, "templates"), PackageLoader("dpsynth._util", "templates")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    templates.filters["said"] = said
    return templates


def said(text: object) -> Markup:
    """Set a text apart, so that letters of another direction do not turn what is around it."""
    return Markup("<bdi>{}</bdi>").format(shown(str(text)))


def _finalize(value: Any) -> Any:
    """Let no text of a person onto the page as it is, whatever the template does with it."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value
