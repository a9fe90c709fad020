"""A task: which column is to be told of public rows, by how many teachers; and its one event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpsynth._util.messages import did_you_mean, listed
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, Share, TeacherVotes
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Schema
from dpsynth.stats.axes import Axis
from dpsynth.stats.entries import check_keys, table_schema
from dpsynth.stats.labels.teachers import BEST, WAYS

EVENT = "votes of teachers"
MAX_CLASSES = 50
MAX_TEACHERS = 20_000
MAX_COUNTS = 1_000_000
"""Noisy counts: a quarter of a minute of noise."""
MAX_VOTES = 100_000_000
"""Votes of all teachers on all rows: 200 MB."""
USUAL_ASKED = 5_000
_UNITS_OF_A_TEACHER = 70  # about; a student gains more by many teachers than by good ones
_KEYS = ("schema", "label", "teachers", "asked", "vote")


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be labelled, and how; all of it is public.

    Attributes:
        schema: of the private table.
        codec: of the schema.
        axis: the label's classes: which of its codes is which class.
        teachers: among whom the patients are dealt.
        asked: how many public rows they vote on, the first ones.
        vote: whether a vote names the likeliest class (``best``), or one that is drawn (``drawn``).
    """

    schema: Schema
    codec: Codec
    axis: Axis
    teachers: int
    asked: int
    vote: str

    def __repr__(self) -> str:
        """Name the label and the schema."""
        return f"<Task of {self.axis.column} in schema {self.schema.name}>"

    @classmethod
    def of(
        cls,
        schema: Schema | str,
        label: str,
        *,
        asked: int,
        teachers: int | None = None,
        vote: str = BEST,
    ) -> Task:
        """Set a task.

        Args:
            schema: a schema, its path, or the name of a shipped one.
            label: the column to tell, with 2 to 50 declared values.
            asked: how many public rows teachers vote on.
            teachers: how many there are; as a rule, one for 70 of the declared population.
            vote: ``best`` or ``drawn``.

        Raises:
            InputError: one of them is wrong, or the votes would not fit in memory.

        Example:
            >>> task = Task.of("cardio", "cardio", asked=5000)
            >>> task.axis.labels, task.teachers
            (('0', '1'), 1000)
        """
        schema = table_schema(schema.to_dict() if isinstance(schema, Schema) else schema)
        if any(column.discovers for column in schema.modelled):
            raise InputError(
                "labels need declared codes; list them in the schema, and remove discover"
            )
        codec = Codec(schema)
        if label not in codec.names:
            raise InputError(
                f"the label must be a column of the schema{did_you_mean(label, codec.names)}"
            )
        if len(codec.names) < 2:
            raise InputError("the schema has no other column, by which a label could be told")
        axis = Axis.of(codec, label, None).known()
        if not 2 <= axis.size <= MAX_CLASSES:
            raise InputError(
                f"column '{label}' has {axis.size} values; a label has 2 to {MAX_CLASSES}"
            )
        if teachers is None:
            teachers = max(10, min(schema.population.value // _UNITS_OF_A_TEACHER, 5_000))
        if type(teachers) is not int or not 2 <= teachers <= MAX_TEACHERS:
            raise InputError(f"the number of teachers must be from 2 to {MAX_TEACHERS:,}")
        most = min(MAX_COUNTS // axis.size, MAX_VOTES // teachers)
        if type(asked) is not int or not 1 <= asked <= most:
            raise InputError(
                f"{teachers:,} teachers and {axis.size} classes can vote on 1 to {most:,} rows"
            )
        if vote not in WAYS:
            raise InputError(f"a vote is one of {listed(WAYS)}")
        return cls(schema, codec, axis, teachers, asked, vote)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Task:
        """Read a task back from ``to_dict``.

        Raises:
            InputError: it is not exactly a task.
        """
        check_keys(document, "the task", _KEYS, _KEYS)
        if not all(isinstance(document[key], str) for key in ("label", "vote")):
            raise InputError("the task's label and vote must be texts")
        if type(document["teachers"]) is not int:
            raise InputError("the task's teachers must be a whole number")
        return cls.of(
            table_schema(document["schema"]),
            document["label"],
            asked=document["asked"],
            teachers=document["teachers"],
            vote=document["vote"],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the task as JSON types."""
        return {
            "schema": self.schema.to_dict(),
            "label": self.axis.column,
            "teachers": self.teachers,
            "asked": self.asked,
            "vote": self.vote,
        }

    @property
    def label(self) -> str:
        """The column to tell."""
        return self.axis.column

    def shares(self) -> tuple[Share, ...]:
        """Return its one event, which has the whole budget."""
        votes = TeacherVotes(EVENT, self.teachers, self.asked, self.axis.size, UNDECIDED)
        return (Share(votes, 1.0),)

    def plan(self, epsilon: float, delta: float) -> PrivacyPlan:
        """Calibrate the noise.

        Raises:
            InputError: the budget cannot be met.
        """
        plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon, delta), self.shares())
        return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge
