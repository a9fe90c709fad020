"""P18: a schema document is data. Payloads in it do not run, and are refused in clear words."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsynth.errors import SchemaError
from dpsynth.schema import Schema

FIELDS = """\
fields:
  - {{name: age, type: integer, constraints: {{minimum: {0}, maximum: 99}},
     dpsynth: {{bounds_basis: form}}}}
dpsynth: {{version: 1, population: {{value: 9, basis: x}}, rows: {{value: 9, basis: x}}}}
"""
Load = Callable[[Path], Any]


def broken_load(path: Path) -> Any:
    """The broken twin: a loader that builds whatever a tag asks for."""
    return yaml.unsafe_load(path.read_text())


def payloads(marker: Path) -> dict[str, str]:
    """YAML tags that create the file ``marker``, if they run."""
    path = json.dumps(str(marker))
    return {
        "open": f'!!python/object/apply:builtins.open [{path}, "w"]',
        "mkdir": f"!!python/object/apply:os.mkdir [{path}]",
        "call": f'!!python/object/apply:subprocess.call [["touch", {path}]]',
    }


def runs(load: Load, folder: Path, kind: str) -> bool:
    """Whether loading a document with that payload creates the marker."""
    marker = folder / f"marker-{load.__name__}-{kind}"
    file = folder / f"{kind}.yaml"
    file.write_text(FIELDS.format(payloads(marker)[kind]))
    try:
        load(file)
    except (SchemaError, yaml.YAMLError, TypeError, ValueError):
        pass
    return marker.exists()


@pytest.mark.parametrize("kind", ["open", "mkdir", "call"])
def test_tags_do_not_run(tmp_path: Path, kind: str) -> None:
    assert runs(broken_load, tmp_path, kind)
    assert not runs(Schema.load, tmp_path, kind)
    with pytest.raises(SchemaError, match=r"line 2: tags are not read, 'tag:yaml\.org"):
        Schema.load(tmp_path / f"{kind}.yaml")


@pytest.mark.parametrize("kind", ["open", "mkdir", "call"])
def test_a_tag_that_slipped_through_is_not_built(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second line: the loader is a safe one, whatever the check of tags before it lets pass."""
    monkeypatch.setattr("dpsynth._util.strict_yaml._check_events", lambda text, source: None)
    assert not runs(Schema.load, tmp_path, kind)


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
def test_values_that_look_like_code_are_text(tmp_path: Path, suffix: str) -> None:
    marker = tmp_path / "marker"
    code = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    document: Any = yaml.safe_load(FIELDS.format(0))
    document["fields"][0]["constraints"]["minimum"] = code
    document["dpsynth"]["rules"] = [code, f"age < {code}", "age.__class__ == 3"]
    document["dpsynth"]["dialect"] = {"encoding": code}
    file = tmp_path / f"table{suffix}"
    file.write_text(json.dumps(document))  # JSON is YAML, too
    with pytest.raises(SchemaError) as caught:
        Schema.load(file)
    assert len(caught.value.problems) == 5
    assert not marker.exists()
    eval(compile(code, "twin", "eval"))  # the broken twin: what reading a rule by eval would do
    assert marker.exists()


def laughs(levels: int, merge: bool) -> str:
    """Nested aliases: ``levels`` lines stand for 10^levels values."""
    lines = ["l0: &l0 {a: 1}" if merge else "l0: &l0 [1]"]
    for level in range(1, levels):
        copies = ", ".join([f"*l{level - 1}"] * 10)
        body = f"{{<<: [{copies}], k{level}: 1}}" if merge else f"[{copies}]"
        lines.append(f"l{level}: &l{level} {body}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("merge", [False, True])
def test_aliases_do_not_explode(tmp_path: Path, merge: bool) -> None:
    file = tmp_path / "table.yaml"
    file.write_text(laughs(5, merge))
    assert len(json.dumps(broken_load(file))) < (2_000 if merge else 10**6)
    file.write_text(laughs(40, merge))
    begin = time.monotonic()
    with pytest.raises(SchemaError, match="stands for more than 200000 values"):
        Schema.load(file)
    assert time.monotonic() - begin < 5


def test_merges_would_explode_without_the_count() -> None:
    """The broken twin builds merges before it counts: its work grows tenfold with each line."""

    def work(levels: int) -> int:
        steps = 0

        class Counting(yaml.SafeLoader):
            def flatten_mapping(self, node: Any) -> None:
                nonlocal steps
                super().flatten_mapping(node)
                steps += len(node.value)

        yaml.load(laughs(levels, merge=True), Counting)
        return steps

    assert work(5) > 8 * work(4) > 64 * work(3)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".yaml", FIELDS.format("10, minimum: 20")),
        (".json", '{"fields": [], "dpsynth": {"version": 1, "version": 2}}'),
    ],
)
def test_a_key_that_occurs_twice_is_a_mistake(tmp_path: Path, suffix: str, text: str) -> None:
    file = tmp_path / f"table{suffix}"
    file.write_text(text)
    assert broken_load(file)["fields"] is not None  # the broken twin silently keeps the last one
    with pytest.raises(SchemaError, match="key '(minimum|version)' occurs twice"):
        Schema.load(file)


def test_the_document_without_a_payload_is_read(tmp_path: Path) -> None:
    file = tmp_path / "table.yaml"
    file.write_text(FIELDS.format(0))
    assert Schema.load(file).column("age").minimum == 0
