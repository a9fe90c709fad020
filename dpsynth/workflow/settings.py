"""The settings of a whole run, from a private table to a bundle: what ``dpsynth run`` takes.

They can be kept in ``dpsynth.yaml``, under version control beside the schema, so that a release can
be made again from what is written there. They are public facts and names of files: nothing in them
is computed from real rows, and no passphrase is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dpsynth._util.short_repr import short_repr
from dpsynth.models.registry import DEFAULT as MODEL
from dpsynth.workflow.setting_paths import (
    ENDINGS,
    VERSION,
    beside,
    is_shipped,
    path_from,
    source_from,
)
from dpsynth.workflow.settings_reader import read_document, read_settings

if TYPE_CHECKING:
    from dpsynth.bundle.format import About

FILE = "dpsynth.yaml"
HOLDOUT, CANARIES = 0.2, 1_000


@dataclass(frozen=True)
class Settings:
    """Everything that a run is told.

    Attributes:
        schema: its path, or the name of a shipped one; it describes the whole table.
        data: the private table: the path of a file or of a part of it, or the URL of a database.
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
