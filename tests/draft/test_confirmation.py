"""A draft is no schema before a person has confirmed every proposal and filled every TODO."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpsynth._util.field_reader import PROPOSAL
from dpsynth.draft import draft_schema
from dpsynth.draft.entry import Entry
from dpsynth.draft.proposal import propose
from dpsynth.errors import SchemaError
from dpsynth.schema import Schema

from ..support.hospital_dictionary import write_csv
from ..support.schema_fields import schema_field

FACTS = "{value: 900, basis: annual report}"


def saved(folder: Path, text: str) -> Path:
    path = folder / "mine.schema.yaml"
    path.write_text(text)
    return path


def draft_text(folder: Path) -> str:
    (folder / "t.csv").write_text("pat_nr,age,hba1c_%,sex\n")
    return draft_schema(header=folder / "t.csv").text


def filled(text: str) -> str:
    """Do what the head of a draft asks for, but for proposals and `draft: true`."""
    text = text.replace("{value: TODO, basis: TODO}", FACTS)
    text = text.replace("role: TODO", "role: unit").replace("{enum: TODO}", "{enum: [F, M]}")
    return text.replace("bounds_basis: TODO", "bounds_basis: admission form")


def test_a_draft_loads_and_lists_what_is_open(tmp_path: Path) -> None:
    schema = Schema.load(saved(tmp_path, draft_text(tmp_path)))
    assert schema.draft and schema.column("age").maximum == 120
    with pytest.raises(SchemaError) as caught:
        schema.require_complete()
    message = str(caught.value)
    assert "dpsynth.bounds_basis: is a proposal" in message and ": age, " in message
    assert "'pat_nr'.dpsynth.role: is still TODO" in message
    assert "population.value: is still TODO" in message


def test_removing_draft_does_not_confirm(tmp_path: Path) -> None:
    text = filled(draft_text(tmp_path))
    undrafted = re.sub(r"\n  draft: true.*", "", text)
    with pytest.raises(SchemaError) as caught:
        Schema.load(saved(tmp_path, undrafted))
    assert len(caught.value.problems) == 2
    assert all("is a proposal" in problem.message for problem in caught.value.problems)
    confirmed = undrafted.replace(PROPOSAL, "confirmed by A. Nyqvist:")
    schema = Schema.load(saved(tmp_path, confirmed))
    assert not schema.draft and schema.unit.column == "pat_nr"
    basis = schema.column("hba1c_%").bounds_basis
    assert basis is not None and basis.startswith("confirmed by A. Nyqvist: haemoglobin A1c, LOINC")


@pytest.mark.parametrize("basis", ["proposal: x", "Proposal: x", "  PROPOSAL: x"])
def test_every_spelling_of_a_proposal_counts(basis: str) -> None:
    field = schema_field("x", "integer", basis, minimum=0, maximum=9)
    size = {"value": 100, "basis": "report"}
    table = {"version": 1, "population": size, "rows": size}
    with pytest.raises(SchemaError, match="is a proposal"):
        Schema.from_dict({"fields": [field], "dpsynth": table})
    Schema.from_dict({"fields": [field], "dpsynth": table | {"draft": True}})


def test_every_kind_of_field_has_to_be_confirmed() -> None:
    """Whatever is proposed has a basis that is a proposal, or a TODO; dropped columns have none."""
    cases = [
        Entry("age"),
        Entry("x", values=(("a", ""), ("b", ""))),
        Entry("x", kind="boolean", values=(("1", "ja"), ("0", "nein"))),
        Entry("x", kind="boolean"),
        Entry("x", kind="date", format="default", minimum="2019-01-01", maximum="2020-01-01"),
        Entry("x", kind="integer", minimum="0", maximum="9"),
        Entry("x", kind="number"),
        Entry("x", kind="string"),
        Entry("x", kind="key"),
        Entry("icd10"),
        Entry("death"),
        Entry("x"),
    ]
    for entry in cases:
        proposal = propose(entry, "dictionary d.csv")
        basis = str(proposal.document["dpsynth"].get("bounds_basis", "TODO"))
        assert proposal.is_open or basis.startswith(PROPOSAL), entry
        assert not (proposal.is_open and basis.startswith(PROPOSAL) and "unit" in entry.name)
    assert propose(Entry("first_name"), "h").document["dpsynth"] == {"role": "drop"}
    assert propose(Entry("x", identifying=True), "h").document["dpsynth"] == {"role": "drop"}


def test_two_dates_point_at_their_interval(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("aufnahmedatum,entlassdatum\n")
    text = draft_schema(header=tmp_path / "t.csv").text
    assert re.search(r"after: aufnahmedatum\b", text) and "longest: TODO" in text
    Schema.load(saved(tmp_path, text))


def test_a_dictionary_of_40_columns_becomes_a_schema(tmp_path: Path) -> None:
    """What is left to a person after a draft: 7 columns, 3 facts of the table, and 29 sentences."""
    text = draft_schema(dictionary=write_csv(tmp_path / "ward.csv")).text
    written = {
        "PatNr": {"role: TODO": "role: unit"},
        "FallNr": {"role: TODO": "role: drop"},
        "Entlassdatum": {
            "{minimum: TODO, maximum: TODO}": '{minimum: "01.01.2019", maximum: "31.03.2024"}',
            "longest: TODO": "longest: 90",
        },
        "Fachabteilung": {"{enum: TODO}": "{enum: [Kardiologie, Pneumologie]}"},
        "Hauptdiagnose": {"codes: TODO": "codes: {system: ICD-9-CM, rollup: chapter}"},
        "Nebendiagnose_1": {"codes: TODO": "codes: {system: ICD-9-CM, rollup: chapter}"},
        "Verstorben": {
            "trueValues: TODO": "trueValues: [ja]",
            "falseValues: TODO": "falseValues: [nein]",
        },
    }
    for name, changes in written.items():
        start = text.index(f"- name: {name}\n")
        end = text.find("- name:", start + 1)
        field = text[start:end].replace("bounds_basis: TODO", "bounds_basis: manual of the ward")
        for old, new in changes.items():
            field = field.replace(old, new)
        text = text[:start] + field + text[end:]
    text = text.replace("{value: TODO, basis: TODO}", FACTS).replace(PROPOSAL, "confirmed by me:")
    assert text.count("confirmed by me:") == 29
    schema = Schema.load(saved(tmp_path, re.sub(r"\n  draft: true.*", "", text)))
    schema.require_complete()
    assert len(schema.modelled) == 34 and schema.unit.column == "PatNr"


def test_a_header_of_nothing_but_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("vorname,nachname,adresse\n")
    with pytest.raises(SchemaError, match="no column is left to model"):
        draft_schema(header=tmp_path / "t.csv")
