"""Which subject a run has: its schema says."""

from __future__ import annotations

from dpsynth.schema import AnySchema, LinkedSchema
from dpsynth.workflow.subjects.linked_tables import LinkedTables
from dpsynth.workflow.subjects.one_table import OneTable
from dpsynth.workflow.subjects.subject import Subject


def subject_of(schema: AnySchema) -> Subject:
    """Return the subject of a run with this schema."""
    return LinkedTables(schema) if isinstance(schema, LinkedSchema) else OneTable(schema)
