"""A request of answers: its events, what to expect of them, its tables, and its page.

Each kind of answers (statistics, labels, linkage, counts of perturbed answers) has a class of
requests. All that tells it from other kinds stands there; `dpsynth.stats.answers` does the rest
alike for all kinds, and lists them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd

from dpsynth.certificate import Certificate
from dpsynth.privacy import Event, PrivacyBudget, PrivacyPlan, Share
from dpsynth.schema import AnySchema

Numbers = Mapping[str, Any]
"""What was paid for: noisy whole numbers by name, as arrays."""

SEEDED, NO_LEDGER = "seeded-entropy", "no-ledger"
"""Stamps: reasons why answers may not be released."""

WHAT_IF = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets that `what_if` tries where none are given."""


@dataclass(frozen=True)
class Kind:
    """What a kind of answers is called.

    Attributes:
        name: in certificates, ledgers, policies and results of commands.
        noun: in messages, such as ``the labels``.
        title: before the title of a page.
        document: the file that holds what was paid for; all other files follow from it.
        form: the format of this document.
        keys: of this document, beside those of all kinds.
    """

    name: str
    noun: str
    title: str
    document: str
    form: str
    keys: tuple[str, ...]

    @property
    def template(self) -> str:
        """The template of its page."""
        return f"{self.name}.html"


@dataclass(frozen=True, eq=False)
class Result:
    """A table of answers.

    Attributes:
        name: of the statistic, or of the table.
        table: its cells, with values and intervals.
        stem: of its files.
        gain: by how much agreement with other tables of counts has cut the variance of the noise
            (0 to 1); 0 where there were no others.
        facts: figures of the table as a whole, such as those of a test.
    """

    name: str
    table: pd.DataFrame
    stem: str
    gain: float = 0.0
    facts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PrecisionPreview:
    """How far the figures of a request will be off under a plan, from public facts alone.

    Attributes:
        values: in JSON types.
        lines: the same in words.
    """

    values: dict[str, Any]
    lines: list[str]


class AnswerRequest(ABC):
    """What was asked; all of it is public."""

    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is about, for the page and the Data Package."""

    @property
    def schemas(self) -> tuple[AnySchema, ...]:
        """The schemas of what is protected: one, two of linked registers, or none."""
        return ()

    def payers(self) -> tuple[str, ...]:
        """Name whose datasets are charged, where that is more than one."""
        return ()

    @classmethod
    @abstractmethod
    def read(cls, document: Mapping[str, Any], path: Path) -> Self:
        """Read a request back from the document of answers.

        Args:
            document: its keys have been checked.
            path: of the document, for messages, and for files beside it.

        Raises:
            DpsynthError: it is not exactly a request.
        """

    def problems(self, certificate: Certificate | None, stamps: Sequence[str]) -> list[str]:
        """Say what is wrong with a certificate or stamps, beside what is compared for all kinds."""
        return []

    @abstractmethod
    def numbers(
        self, document: Mapping[str, Any], events: Mapping[str, Event], path: Path
    ) -> Numbers:
        """Read the numbers that were paid for, all of them, and no number more.

        Raises:
            ArtifactError: there are others, or one follows from the rest and does not.
        """

    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """Return the request as keys of the document."""

    @abstractmethod
    def paid(self, numbers: Numbers) -> dict[str, Any]:
        """Return the numbers as keys of the document."""

    @abstractmethod
    def results(self, numbers: Numbers, events: Mapping[str, Event]) -> tuple[Result, ...]:
        """Make the tables from the numbers alone."""

    def described(self, result: Result, events: Mapping[str, Event]) -> dict[str, Any] | None:
        """Return what the JSON file of a table says above its cells; None where there is none."""
        return None

    @abstractmethod
    def page(
        self, numbers: Numbers, certificate: Certificate | None, results: Sequence[Result]
    ) -> dict[str, object]:
        """Return what the template of the page needs, beside what all kinds give it."""

    @abstractmethod
    def summary(self, results: Sequence[Result]) -> tuple[dict[str, Any], str]:
        """Say in JSON types and in a few words how much was answered."""

    @abstractmethod
    def checked(self, certificate: Certificate | None, files: int) -> list[str]:
        """Say what was checked of a folder of so many files, a sentence each."""


class ChargedRequest(AnswerRequest):
    """What was asked of private rows: a ledger is charged, and a certificate states the cost."""

    @abstractmethod
    def shares(self, certificate: Certificate | None = None) -> tuple[Share, ...]:
        """Return the events that the budget pays for, without noise, and the part of each.

        Args:
            certificate: of the answers, where they are there: of plans that would do, the one that
                it is about.
        """

    def plan(self, epsilon: float, delta: float) -> PrivacyPlan:
        """Calibrate the noise of all events together, before any data.

        Raises:
            InputError: the budget cannot be met.
        """
        plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon, delta), self.shares())
        return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge

    @abstractmethod
    def expected(self, plan: PrivacyPlan) -> PrecisionPreview:
        """Say how far its figures will be off, from public facts alone."""

    @abstractmethod
    def cost(self, plan: PrivacyPlan) -> tuple[dict[str, Any], list[str]]:
        """Say what a plan costs, beside its composed epsilon."""

    @property
    def own_records(self) -> str | None:
        """Of pairs of two registers, why each follows from its own two records alone."""
        return None

    def checked(self, certificate: Certificate | None, files: int) -> list[str]:
        """Say that all follows from what was paid for, and that this was enough."""
        assert certificate is not None
        return [
            f"all {files} files follow from the request and its noisy answers",
            f"the certificate's events are those of the request, and compose to at most epsilon "
            f"{certificate.epsilon:g} at delta {certificate.delta:g}",
        ]

    def foreseen(self, tried: Mapping[float, PrecisionPreview]) -> tuple[dict[str, Any], list[str]]:
        """Say what to expect at each budget, as values and as lines."""
        lines = []
        for epsilon, preview in tried.items():
            lines += [f"epsilon {epsilon:g}", *[f"  {line}" for line in preview.lines]]
        return {"epsilons": {f"{one:g}": tried[one].values for one in tried}}, lines


def what_if(
    request: ChargedRequest, *, delta: float, epsilons: Sequence[float] = WHAT_IF
) -> dict[float, PrecisionPreview]:
    """Say how precise answers would be at several budgets; nothing is read or charged.

    Raises:
        InputError: a budget cannot be met.

    Example:
        >>> from dpsynth.stats import StatisticsRequest
        >>> request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> list(what_if(request, delta=1e-7, epsilons=(0.5, 1.0)))
        [0.5, 1.0]
    """
    return {epsilon: request.expected(request.plan(epsilon, delta)) for epsilon in epsilons}


def file_stem(name: str) -> str:
    """Make a name that a data package, or a file, may have.

    >>> file_stem("Patients by sex & age")
    'patients-by-sex-age'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "statistic"
