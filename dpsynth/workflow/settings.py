"""The settings of a whole run, from a private table to a bundle: what ``dpsynth run`` takes.

They can be kept in ``dpsynth.yaml``, under version control beside the schema, so that a release can
be made again from what is written there. They are public facts and names of files: nothing in them
is computed from real rows, and no passphrase is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.field_reader import FieldFindings, FieldReader
from dpsynth._util.messages import shown
from dpsynth._util.outside_names import outside_name
from dpsynth._util.short_repr import short_repr
from dpsynth._util.written_files import read_plain, refusal
from dpsynth.errors import InputError, Problem
from dpsynth.models.registry import AUTO, model_names
from dpsynth.models.registry import DEFAULT as MODEL
from dpsynth.policy.limits import NAME
from dpsynth.tables import Reference, is_url

if TYPE_CHECKING:
    from dpsynth.bundle.format import About


FILE = "dpsynth.yaml"
HOLDOUT, CANARIES = 0.2, 1_000


@dataclass(frozen=True)
class Settings:
    """Everything that a run is told.

    Attributes:
        schema: its path, or the name of a shipped one; it describes the whole table.
        data: the private table: the path of a file or of a part of it, or the URL of a database. Of
            linked tables, what has all of them; see `dpsynth.tables.linked_sources`.
        dataset: the name under which the ledger counts what these patients have spent.
        epsilon: privacy budget of the fit.
        delta: the probability that the guarantee of epsilon may miss.
        output: the bundle to make.
        model: the generator's name; ``auto`` chooses one from public facts.
        holdout: share of the units that the fit does not see; 0 for none.
        opt_out: list of units that are left out of everything.
        rows: synthetic rows to draw; None for the public number of those that are fitted.
        seed: of the sampling, and public; None for a fresh one. Split and noise have no seed.
        evaluate_seed: of the evaluation's subsamples and splits.
        audit_seed: of the audit's people and coins.
        canaries: planted patients of the audit of the training.
        attacks: whether the table is attacked as well; it takes a holdout.
        purpose: a few words for the ledger.
        tier: the kind of purpose, where the policy names some.
        policy: file of a policy to keep, where the ledger has adopted none.
        publish_quality: share of the budget for public quality figures; None for none.
        gates: file of internal gates; None for those that come with dpsynth.
        rules: file of rules that people confirmed after the fit; what is drawn keeps them.
        work: folder of all that is kept between the stages; None for ``<output>.work``.
        internal: folder of evaluation and audit; None for ``<output>.internal``.
        accept: serious findings of the check that do not stop the run, such as ``hba1c:clipped``.
        about: what the office says in public about the release.
        about_file: the file that says it, if it was read from one; a settings file names it.
    """

    schema: str
    data: Path | str
    dataset: str
    epsilon: float
    delta: float
    output: Path
    model: str = MODEL
    holdout: float = HOLDOUT
    opt_out: Path | None = None
    rows: int | None = None
    seed: int | None = None
    evaluate_seed: int = 0
    audit_seed: int = 0
    canaries: int = CANARIES
    attacks: bool = True
    purpose: str = ""
    tier: str | None = None
    policy: Path | None = None
    publish_quality: float | None = None
    gates: Path | None = None
    rules: Path | None = None
    work: Path | None = None
    internal: Path | None = None
    accept: tuple[str, ...] = ()
    about: About | None = None
    about_file: Path | None = None

    def __repr__(self) -> str:
        """Name the order; the source may be the address of a database."""
        return short_repr(
            self,
            f"dataset {self.dataset}",
            f"epsilon {self.epsilon:g}",
            f"delta {self.delta:g}",
            f"model {self.model}",
            f"output {self.output}",
        )

    @classmethod
    def load(
        cls, path: str | Path, fallbacks: Mapping[str, Any] | None = None, **options: Any
    ) -> Self:
        """Read a file; relative paths in it are relative to it.

        Args:
            path: YAML or JSON, at most 1 MiB.
            fallbacks: settings that neither the file nor ``options`` gives.
            options: settings that take the place of the file's; relative paths among them are
                relative to the current folder.

        Raises:
            InputError: with every mistake, one a line.
        """
        document = read_document(path)
        named = set(document) if isinstance(document, Mapping) else set()
        last = {name: value for name, value in (fallbacks or {}).items() if name not in named}
        return cls(
            **read_settings(_names(), document, str(path), Path(path).parent, last | options)
        )

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Take settings without a file, checked as those of a file are.

        Raises:
            InputError: with every mistake, one a line.
        """
        document = {"dpsynth_run": VERSION}
        return cls(**read_settings(_names(), document, None, Path(), options))

    @property
    def work_folder(self) -> Path:
        """Where everything is kept between the stages."""
        return self.work or beside(self.output, ENDINGS["work"])

    @property
    def internal_folder(self) -> Path:
        """Where evaluation and audit go."""
        return self.internal or beside(self.output, ENDINGS["internal"])

    def resolved(self, *, model: str, rows: int, seed: int) -> Self:
        """Make what is left open explicit; what is told stays."""
        return replace(
            self,
            model=model,
            rows=rows if self.rows is None else self.rows,
            seed=seed if self.seed is None else self.seed,
            work=self.work_folder,
            internal=self.internal_folder,
        )

    def to_dict(self, folder: str | Path = ".") -> dict[str, Any]:
        """Write the document of a file in ``folder``; what is None is left out."""
        document: dict[str, Any] = {"dpsynth_run": VERSION}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "about" and self.about_file is not None:
                value = self.about_file  # so that its words can be changed in one place
            if value is None or value in ("", ()) or field.name == "about_file":
                continue
            if isinstance(value, Path):
                value = path_from(Path(folder), value)
            elif field.name == "data":
                value = source_from(Path(folder), value)
            elif field.name == "schema" and not is_shipped(value):
                value = path_from(Path(folder), Path(value))
            elif field.name == "about":
                value = value.to_dict()
            elif field.name == "accept":
                value = list(value)
            document[field.name] = value
        return document

    def written(self, folder: str | Path = ".") -> bytes:
        """Give the bytes of a YAML file in ``folder``."""
        from dpsynth._util.strict_yaml import yaml_text

        return yaml_text(self.to_dict(folder)).encode()

    def seed_in(self, path: str | Path) -> int | None:
        """Return the seed of a file that holds these settings, made explicit, but for their seed.

        So the seed that was drawn when they were written is the seed that is taken.
        """
        if not Path(path).is_file():
            return None
        saved = type(self).load(path)
        folder = Path(path).parent
        alike = replace(self, seed=saved.seed).to_dict(folder) == saved.to_dict(folder)
        return saved.seed if alike else None

    def save(self, path: str | Path) -> None:
        """Write a YAML file; one that holds other settings is not replaced.

        Raises:
            InputError: it exists, its name does not end in .yaml, or it cannot be written.
        """
        from dpsynth._util.whole_files import read_whole
        from dpsynth.errors import InputError
        from dpsynth.files import check_vacant, write_atomically

        path = Path(path)
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise InputError(f"{path}: settings are YAML; choose a name that ends in .yaml")
        content = self.written(path.parent)
        if path.is_file() and path.stat().st_size == len(content):
            if read_whole(path, largest=len(content)) == content:
                return
        check_vacant(path)
        write_atomically(path, content)


def _names() -> list[str]:
    """List the settings that a document may state."""
    return [field.name for field in fields(Settings) if field.name != "about_file"]


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


def mistakes_of(document: object, folder: Path, **options: Any) -> tuple[Problem, ...]:
    """List every mistake of a document and what it lacks, with ``options`` as in `Settings.load`.

    Relative paths in it are relative to the folder.
    """
    try:
        read_settings(_names(), document, None, folder, options)
    except InputError as error:
        parts = (item.partition(": ") for item in error.items)
        return tuple(Problem(place, message) for place, _, message in parts)
    return ()


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
        reference = Reference.of(value) if "#" in value else Reference.of_parts(value)
        _ = reference and reference.place  # the file of a query is relative to a folder
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


VERSION = 1
ENDINGS = {"work": ".work", "internal": ".internal"}  # of folders beside the bundle
REQUIRED = ("schema", "data", "dataset", "epsilon", "delta", "output")
PATHS = ("data", "output", "opt_out", "policy", "gates", "rules", "work", "internal")


def is_shipped(schema: str) -> bool:
    """Whether a schema is named by the name of a shipped one, and not by its path.

    >>> is_shipped("cardio"), is_shipped("cardio.schema.yaml"), is_shipped("mine/cardio")
    (True, False, False)
    """
    return not Path(schema).suffix and Path(schema).name == schema


def joined(folder: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose relative paths are relative to a folder."""
    paths = dict(values)
    for name in PATHS:
        if isinstance(paths.get(name), Path):
            paths[name] = folder / paths[name]
    if isinstance(paths.get("data"), str):  # the URL of a database, maybe with a query's file
        url, sign, query = paths["data"].partition("#@")
        paths["data"] = url + sign + (str(folder / query) if sign else "")
    schema = paths.get("schema")
    if schema is not None and not is_shipped(schema):
        paths["schema"] = str(folder / schema)
    return paths


def source_from(folder: Path, source: str) -> str:
    """Write the URL of a database; the file of a query as seen from a folder."""
    url, sign, query = source.partition("#@")
    return url + sign + (path_from(folder, Path(query)) if sign else "")


def beside(output: Path, ending: str) -> Path:
    """Name a folder after the bundle."""
    return output.with_name(output.name + ending)


def path_from(folder: Path, path: Path) -> str:
    """Write a path as seen from a folder; one that was named from the root stays so, outside it."""
    whole, start = Path(os.path.abspath(path)), Path(os.path.abspath(folder))
    if path.is_absolute() and start not in whole.parents:
        return str(path)
    return Path(os.path.relpath(whole, start)).as_posix()
