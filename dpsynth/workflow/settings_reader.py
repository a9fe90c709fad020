"""From a document to the values of `Settings`: every mistake is noted before any is reported."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpsynth._util.field_reader import FieldFindings, FieldReader
from dpsynth._util.messages import shown
from dpsynth._util.outside_names import outside_name
from dpsynth._util.written_files import read_plain, refusal
from dpsynth.errors import InputError
from dpsynth.models.registry import AUTO, model_names
from dpsynth.policy.limits import NAME
from dpsynth.tables import Reference, is_url
from dpsynth.workflow.setting_paths import ENDINGS, PATHS, REQUIRED, VERSION, beside, joined

MAX_SEED = 2**63

_EXPONENT = re.compile(r"\d+(\.\d*)?[eE][+-]?\d+")  # a number that YAML 1.1 takes for a text
_SECRET = re.compile(r"pass(word|phrase)?|secret|^key$", re.IGNORECASE)
_WANTED = {
    "schema": "the path of a schema, or the name of a shipped one",
    "data": "the path of the private table, or the URL of a database",
    "dataset": "the name under which the ledger counts what these patients have spent",
    "epsilon": "the privacy budget; it has no default",
    "delta": "the probability with which epsilon may not hold; it has no default",
    "output": "the folder of the bundle",
}


def read_document(path: str | Path) -> Any:
    """Parse a settings file, at most 1 MiB of YAML or JSON, without running anything in it.

    Raises:
        InputError: it is missing, too large, or not plain YAML or JSON.
    """
    return read_plain(path, "settings", subject="settings are", title=_title(str(Path(path))))


def read_settings(
    names: Sequence[str],
    document: object,
    source: str | None,
    folder: Path,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Read a document, and settings that take the place of its own.

    Args:
        names: of all settings.
        document: what YAML or JSON gave.
        source: what error messages call it; None if there is no file.
        folder: its relative paths are relative to it.
        options: other settings, by name, which win.

    Returns:
        The arguments of `Settings`.

    Raises:
        InputError: with every mistake, one a line, the file's first.
    """
    keys = ("dpsynth_run", *names)
    findings = FieldFindings()
    top = FieldReader(document, "", findings)
    _refuse_secrets(top)
    top.refuse_unknown([*keys, *filter(_SECRET.search, top.values)])
    if "dpsynth_run" not in top.values:
        top.mistake("dpsynth_run", f"is missing; write dpsynth_run: {VERSION}")
    elif type(version := top.values["dpsynth_run"]) is not int or version != VERSION:
        top.mistake("dpsynth_run", f"this dpsynth reads version {VERSION}, not {shown(version)}")
    values = joined(folder, _read(top, folder))
    fields = FieldReader(options, "", findings)
    fields.refuse_unknown(keys)
    given_values = joined(Path(), _read(fields, Path()))
    if "output" in given_values and "output" in values:
        for name, ending in ENDINGS.items():  # folders that are named after the output follow it
            if values.get(name) == beside(values["output"], ending):
                del values[name]
    if "about" in given_values:
        values.pop("about_file", None)
    values |= given_values
    for name in REQUIRED:
        if not (top.has(name) or fields.has(name)):
            message = f"is missing: {_WANTED[name]}"
            findings.gap(
                name, message + ("" if source is None else f"; write it, or give {_option(name)}")
            )
    if findings.everything:
        raise refusal(_title(source), findings.everything)
    return values


def _read(part: FieldReader, folder: Path) -> dict[str, Any]:
    """Read what is there, each of its type and within its range."""
    values: dict[str, Any] = {name: _path(part, name) for name in PATHS if name != "data"}
    values["data"] = _data(part)
    values["schema"] = _line(part, "schema")
    values |= {name: _line(part, name) for name in ("purpose", "dataset", "tier")}
    for name in ("dataset", "tier"):
        if values[name] is not None and not NAME.fullmatch(values[name]):
            part.mistake(
                name,
                "a name has 1 to 64 letters, digits, '.', '_' and '-', and starts with a letter or "
                f"digit; {shown(values[name])} does not",
            )
    values["epsilon"] = _number(part, "epsilon", 0, None)
    values["delta"] = _number(part, "delta", 0, 1)
    values["publish_quality"] = _number(part, "publish_quality", 0, 1)
    values["holdout"] = _number(part, "holdout", 0, 1, least_allowed=True)
    values["model"] = part.choice("model", _models(part), "") or None
    values["rows"] = part.whole("rows", minimum=1)
    values["canaries"] = part.whole("canaries", minimum=1)
    for name in ("seed", "evaluate_seed", "audit_seed"):
        values[name] = _seed(part, name)
    values["accept"] = part.texts("accept")
    values["attacks"] = part.flag("attacks", True) if part.has("attacks") else None
    values |= _about(part, folder)
    return {name: value for name, value in values.items() if value is not None}


def _refuse_secrets(top: FieldReader) -> None:
    for key in filter(_SECRET.search, top.values):
        top.mistake(
            key,
            "no key and no passphrase belong to a run: sign the bundle once somebody has read the "
            "internal page (dpsynth sign)",
        )


def _line(part: FieldReader, key: str) -> str | None:
    """Read a text that is one line, as terminals and pages show it."""
    text = part.text(key)
    if text is not None and not text.isprintable():
        part.mistake(key, "the text has a line break or another character that cannot be shown")
    return text


def _path(part: FieldReader, key: str) -> Path | None:
    if isinstance(part.values.get(key), Path):
        part.values[key] = str(part.values[key])
    text = _line(part, key)
    return None if text is None else Path(text)


def _data(part: FieldReader) -> Path | str | None:
    """Read the path of a private table, or the URL of a database; a URL holds no password."""
    value = part.values.get("data")
    if not isinstance(value, str) or not is_url(value):
        return _path(part, "data")
    try:
        _ = Reference.of(value).place  # the file of a query is relative to a folder
    except InputError as error:
        part.mistake("data", str(error))
        return None
    return _line(part, "data")


def _number(
    part: FieldReader,
    key: str,
    minimum: float,
    maximum: float | None,
    *,
    least_allowed: bool = False,
) -> float | None:
    """Read a number within bounds; also one like 1e-5, which YAML takes for a text."""
    value = part.values.get(key)
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        part.values[key] = float(value)
    number = part.number(key)
    if number is None:
        return None
    inside = number >= minimum if least_allowed else number > minimum
    if not inside or (maximum is not None and number >= maximum):
        low = f"at least {minimum:g}" if least_allowed else f"above {minimum:g}"
        high = "" if maximum is None else f" and below {maximum:g}"
        part.mistake(key, f"a number {low}{high} is expected, not {shown(value)}")
    return float(number)


def _seed(part: FieldReader, key: str) -> int | None:
    """Read a seed; one of 63 bits has more digits than other whole numbers may have."""
    value = part.values.get(key)
    if value is None:
        return None
    if type(value) is not int or not 0 <= value < MAX_SEED:
        part.mistake(key, f"a whole number from 0, below 2^63, is expected, not {shown(value)}")
        return None
    return value


def _models(part: FieldReader) -> tuple[str, ...]:
    """List what ``model`` may be; the full name of an outside generator is looked up by the fit."""
    written = part.values.get("model")
    if isinstance(written, str) and outside_name(written) is not None:
        return (*model_names(), AUTO, written)
    return (*model_names(), AUTO)


def _about(part: FieldReader, folder: Path) -> dict[str, Any]:
    """Read what is said about the release, or the file that says it."""
    from dpsynth.bundle.format import About

    value = part.values.get("about")
    if not part.has("about") or isinstance(value, About):
        return {"about": value}
    try:
        if isinstance(value, str | Path):
            return {"about": About.load(folder / value), "about_file": folder / value}
        return {"about": About.from_dict(value, "about")}
    except InputError as error:
        part.mistake("about", str(error).removeprefix("about").lstrip(".: "))
        return {}


def _option(name: str) -> str:
    return name.upper() if name in ("schema", "data") else f"--{name}"


def _title(source: str | None) -> str:
    return "the settings have" if source is None else f"settings {source} have"
