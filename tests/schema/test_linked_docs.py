"""The example of docs/cohorts.md is a schema, of every kind of table."""

from __future__ import annotations

import re
from pathlib import Path

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.schema import LinkedSchema

PAGE = Path(__file__).parents[2] / "docs/cohorts.md"


def test_the_example_is_complete() -> None:
    [block] = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    schema = LinkedSchema.from_dict(parse_yaml(block.encode(), "docs/cohorts.md"))
    schema.require_complete()
    assert [table.kind for table in schema.children] == ["long", "once", "wide"]
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
