"""What a sampler needs of a run, whatever made it."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, TypeVar

import numpy.typing as npt

from dpsynth.schema import AnySchema, LinkedSchema, Schema

OfSchema = TypeVar("OfSchema", bound=AnySchema, covariant=True)


class FittedTo(Protocol[OfSchema]):
    """A fitted generator as plain data."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def schema(self) -> OfSchema:
        """Return the public facts that the generator was built from."""

    @property
    def model(self) -> str:
        """Return the generator's name."""

    @property
    def config(self) -> dict[str, Any]:
        """Return its own description, plain JSON values."""

    @property
    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what it learned, by name."""

    @property
    def certificate(self) -> dict[str, Any] | None:
        """Return the privacy certificate's document; None for a fit without privacy."""

    @property
    def stamps(self) -> tuple[str, ...]:
        """Return the reasons why it may not be released."""


Fitted = FittedTo[Schema]
"""Of one table; `Run` is one."""
FittedCohort = FittedTo[LinkedSchema]
"""Of linked tables; `CohortRun` is one."""
