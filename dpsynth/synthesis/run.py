"""A run: what a fit learned, on disk as JSON and plain arrays; tables are drawn from it alone.

A run folder holds ``run.json`` (schema, model, configuration, certificate, stamps, and the digest
of itself and of the arrays) and ``state.safetensors`` (the arrays). Nothing in it can execute, and
nothing in it is a row, a time, a machine or the state of a random generator. Drawing a table adds
``samples.json`` (see `samples`), drawing replicates ``replicates.json`` (`replicate_files`).

The digests catch damage, not malice: whoever edits a run can renew them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import TypeVar

from dpsynth._util.arguments import path_of
from dpsynth._util.messages import plain
from dpsynth._util.strict_json import (
    as_object,
    bytes_digest,
    check_format,
    check_keys,
    digest,
    read_document,
    read_plain_bytes,
    text,
    texts,
    whole,
    written,
)
from dpsynth.certificate import AddedRule, Certificate, bounds_of, with_rules
from dpsynth.errors import ArtifactError, InputError, SchemaError
from dpsynth.files import atomic_folder, write_private
from dpsynth.privacy.plan import STAMP
from dpsynth.schema import (
    AnySchema,
    LinkedSchema,
    Schema,
    any_from_dict,
    require_consistent_tables,
)

if TYPE_CHECKING:
    import pandas as pd


OfSchema = TypeVar("OfSchema", bound=AnySchema, default=Any)

FORMAT, VERSION = "dpsynth-run", 1
DOCUMENT, STATE = "run.json", "state.safetensors"
MAX_STATE = 4 * 2**30  # bytes
DTYPES = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
    | {"float16", "float32", "float64"}
)

_KEYS = (
    "format",
    "version",
    "model",
    "schema",
    "config",
    "certificate",
    "stamps",
    "state",
    "sha256",
)


@dataclass(frozen=True, eq=False, repr=False)
class Run(Generic[OfSchema]):
    """What a fit learned, of one table or of linked ones, as its schema says.

    Attributes:
        schema: the public facts that the generator was built from.
        model: the generator's name when the fit was charged; see `generator`.
        config: the generator's own description, plain JSON values.
        arrays: what it learned, by name.
        certificate: the privacy certificate's document; None for a fit without privacy, which is
            stamped ``not-private``.
        stamps: reasons why this run may not be released, such as ``no-ledger``.

    >>> import dpsynth
    >>> from dpsynth.tables import simulate
    >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
    >>> fitted = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
    >>> folder = fitted.save("run")
    >>> Run.load(folder).sample(5, seed=1).shape
    (5, 15)
    """

    schema: OfSchema
    model: str
    config: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    certificate: dict[str, Any] | None
    stamps: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Name the schema, the generator and the cost; the arrays would fill pages."""
        if self.certificate is None:
            cost = "not private"
        else:
            cost = f"epsilon {self.certificate['epsilon']:g}, delta {self.certificate['delta']:g}"
        stamps = "".join(f", {stamp}" for stamp in self.stamps if stamp != "not-private")
        kind, schema = type(self).__name__, self.schema.name
        return f"<{kind} of schema {schema}: model {self.generator}, {cost}{stamps}>"

    def save(self, folder: str | Path) -> Path:
        """Write the run into a new folder, whole or not at all.

        The run of a fit without privacy is for its owner alone.

        Raises:
            InputError: the folder exists or cannot be written, or an array is not plain numbers.
        """
        state = self._state()
        private = self.certificate is None
        write = write_private if private else Path.write_bytes
        with atomic_folder(folder, private=private) as temporary:
            write(temporary / STATE, state)
            write(temporary / DOCUMENT, written(self._document(state)))
        return Path(folder)

    def kept_to(self, rules: Sequence[AddedRule], source: str = "rules") -> Self:
        """Return the same run, whose draws also keep rules that people added after the fit.

        Args:
            rules: as `dpsynth.synthesis.read_rules` gives them.
            source: what a mistake in one is said to be in.

        Raises:
            SchemaError: one cannot be read, or contradicts the others.
        """
        schema = with_rules(self.schema, tuple(rules), source)
        if schema is not self.schema:
            require_consistent_tables(schema)
        return replace(self, schema=schema)

    @property
    def generator(self) -> str:
        """Name of the generator that it is of."""
        return self.model

    @property
    def digest(self) -> str:
        """SHA-256 by which the run is known, saved or not: what its ``run.json`` ends with."""
        return str(self._document(self._state())["sha256"])

    def _state(self) -> bytes:
        from safetensors.numpy import save

        for name, array in self.arrays.items():
            if array.dtype.name not in DTYPES:
                raise InputError(f"array '{name}' has type {array.dtype}; a run keeps numbers only")
        return save({name: np.asarray(a, order="C") for name, a in sorted(self.arrays.items())})

    def _document(self, state: bytes) -> dict[str, Any]:
        """Describe the run; the last key is the digest of all others."""
        tensors = {
            name: {"dtype": array.dtype.name, "shape": list(array.shape)}
            for name, array in sorted(self.arrays.items())
        }
        document = {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model,
            "schema": self.schema.to_dict(),
            "config": self.config,
            "certificate": self.certificate,
            "stamps": list(self.stamps),
            "state": {"file": STATE, "sha256": bytes_digest(state), "tensors": tensors},
        }
        return document | {"sha256": digest(document)}

    @staticmethod
    def load(folder: str | Path) -> Run:
        """Read a run, whatever its schema is of; nothing in it is executed.

        Raises:
            ArtifactError: a file is missing, damaged, foreign, or of another version.
        """
        folder = path_of(folder, "the folder of a run")
        if not folder.is_dir():
            raise ArtifactError(f"{folder} is not a run folder: it does not exist")
        place = str(folder / DOCUMENT)
        document = read_document(folder / DOCUMENT)
        check_format(document, place, FORMAT, VERSION)
        check_keys(document, place, _KEYS)
        claimed = document.pop("sha256")
        if claimed != digest(document):
            raise ArtifactError(f"{place} is damaged: its content does not fit its SHA-256")
        schema = schema_in(document["schema"], place)
        model = text(document["model"], f"{place}: model")
        stamps = texts(document["stamps"], f"{place}: stamps")
        return Run(
            schema=schema,
            model=model,
            config=as_object(document["config"], f"{place}: config"),
            arrays=_read_arrays(folder, document["state"], f"{place}: state"),
            certificate=_certificate(document["certificate"], schema, model, stamps, place),
            stamps=stamps,
        )

    @overload
    def sample(
        self: Run[Schema],
        size: int | None = None,
        *,
        seed: int | None = None,
        where: str | None = None,
        plain: bool = False,
        balance: str | None = None,
    ) -> pd.DataFrame: ...

    @overload
    def sample(
        self: Run[LinkedSchema],
        size: int | None = None,
        *,
        seed: int | None = None,
        where: str | None = None,
        plain: bool = False,
        balance: str | None = None,
    ) -> dict[str, pd.DataFrame]: ...

    def sample(
        self,
        size: int | None = None,
        *,
        seed: int | None = None,
        where: str | None = None,
        plain: bool = False,
        balance: str | None = None,
    ) -> Any:
        """Draw synthetic rows, or patients, in memory.

        Args:
            size: how many: rows of one table, patients of linked ones; default: as many as the
                schema declares.
            seed: public seed of the draw; default: a new one.
            where: draw only rows that meet this condition, or patients whose row in the table of
                patients meets it, in the language of the schema's rules and of ``dpsynth sample
                --where``. A missing value meets none.
            plain: draw independent rows, or patients; otherwise they are spread more evenly than
                chance.
            balance: draw the categories of this column in equal numbers, of linked tables a column
                of the table of patients.

        Returns:
            A frame; of linked tables, a frame for each table by its name, with keys that agree.

        Raises:
            InputError: size or seed are out of range, the condition cannot be read or names a
                column that is not in the synthetic table, or almost nothing meets it, or the
                schema's rules.

        >>> import dpsynth
        >>> from dpsynth.tables import simulate, simulate_cohort
        >>> budget = {"epsilon": 3, "delta": 1e-6, "dataset": "example", "without_ledger": True}
        >>> run = dpsynth.fit(simulate(200, seed=1), "demo", model="independent", **budget)
        >>> old = run.sample(5, seed=1, where="age >= 60 and sex in ('female', 'male')")
        >>> bool((old["age"] >= 60).all())
        True
        >>> run = dpsynth.fit(simulate_cohort(300, seed=1), "clinic", **budget)
        >>> cohort = run.sample(5, seed=1)
        >>> list(cohort), len(cohort["patients"])
        (['patients', 'visits', 'labs', 'events'], 5)
        """
        from dpsynth.synthesis.sampler import sample

        drawn: Any = sample
        return drawn(self, size, seed=seed, where=where, plain=plain, balance=balance)

    @overload
    def replicates(
        self: Run[Schema], m: int, size: int | None = None, *, seed: int | None = None
    ) -> list[pd.DataFrame]: ...

    @overload
    def replicates(
        self: Run[LinkedSchema], m: int, size: int | None = None, *, seed: int | None = None
    ) -> list[dict[str, pd.DataFrame]]: ...

    def replicates(self, m: int, size: int | None = None, *, seed: int | None = None) -> Any:
        """Draw m tables, or cohorts, each from a refitted generator, for standard errors that hold.

        See `synthesis.replicates` for what they are, and `eval.combine` for their use.

        Raises:
            InputError: m, size or seed are out of range, or the run was fitted without privacy.
        """
        from dpsynth.synthesis.replicates import replicates

        drawn: Any = replicates
        return drawn(self, m, size, seed=seed)


def run_digest(folder: Path) -> str:
    """Give the digest by which a run is known: that of its ``run.json``, state included."""
    return text(read_document(folder / DOCUMENT).get("sha256"), str(folder / DOCUMENT))


def _certificate(
    document: Any, schema: AnySchema, model: str, stamps: tuple[str, ...], place: str
) -> dict[str, Any] | None:
    """Read the certificate; a run lacks it if it is stamped as not private, and only then."""
    if (document is None) != (STAMP in stamps):
        raise ArtifactError(f"{place}: a run has either a certificate or the stamp '{STAMP}'")
    if document is None:
        return None
    certificate = Certificate.from_dict(document, f"{place}: certificate")
    of_schema = (certificate.schema_sha256, certificate.tables)
    if certificate.model != model or of_schema != (schema.hash(), bounds_of(schema)):
        raise ArtifactError(f"{place}: the certificate is about another schema or model")
    if certificate.overrides or certificate.added_rules:
        raise ArtifactError(
            f"{place}: a run has no overrides and no added rules; they belong to a release"
        )
    return certificate.to_dict()


def schema_in(document: Any, place: str) -> AnySchema:
    """Read the schema in a run's document, whichever it is; an `ArtifactError` if it is damaged."""
    try:
        return any_from_dict(as_object(document, f"{place}: schema"), source=place)
    except SchemaError as error:
        raise ArtifactError(f"{place} is damaged: {error}") from error


def _read_arrays(folder: Path, described: Any, place: str) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays that ``run.json`` describes, and only if they are exactly those."""
    check_keys(described, place, ("file", "sha256", "tensors"))
    if described["file"] != STATE:
        raise ArtifactError(f"{place}.file is not '{STATE}'")
    tensors = _described_tensors(described["tensors"], f"{place}.tensors")
    path = folder / STATE
    content = read_plain_bytes(path, largest=MAX_STATE)
    if bytes_digest(content) != described["sha256"]:
        raise ArtifactError(f"{path} is damaged: its content does not fit its SHA-256 in run.json")
    arrays = _parsed_arrays(content, path)
    shapes = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    if shapes != tensors:
        raise ArtifactError(f"{path} does not hold the arrays that run.json describes")
    return arrays


def _described_tensors(value: Any, place: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Read the names, types and shapes of the arrays."""
    tensors = {}
    for name, tensor in as_object(value, place).items():
        entry = f"{place}.{plain(name)}"
        check_keys(tensor, entry, ("dtype", "shape"))
        dtype = text(tensor["dtype"], f"{entry}.dtype")
        if dtype not in DTYPES or not isinstance(tensor["shape"], list):
            raise ArtifactError(f"{entry} is not a plain array of numbers")
        shape = tuple(whole(n, f"{entry}.shape", minimum=0) for n in tensor["shape"])
        tensors[name] = (dtype, shape)
    return tensors


def _parsed_arrays(content: bytes, path: Path) -> dict[str, npt.NDArray[Any]]:
    """Parse safetensors: a length, a JSON header, raw numbers; there is no code in the format."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return dict(load(content))
    except (SafetensorError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        raise ArtifactError(f"{path} is not a safetensors file, so it was not read") from error
