"""What a draft takes from the words of a messy dictionary, and from a file's first bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_schema
from dpsynth.errors import SchemaError
from dpsynth.schema import Schema

HEAD = "Variable;Etiqueta;Tipo;Unidad;Valores;Mínimo;Máximo;Formato;Perdidos\n"


def drafted(tmp_path: Path, *rows: str) -> dict[str, dict]:
    path = tmp_path / "d.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    text = draft_schema(dictionary=path).text
    return {field["name"]: field for field in parse_yaml(text.encode(), "draft")["fields"]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_byte_order_mark_names_the_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "t.tsv").write_bytes("edad\tpeso\n1\t2\n".encode(encoding))
    (tmp_path / "d.csv").write_bytes(f"{HEAD}edad;Edad;entero;a;;0;110;;\n".encode(encoding))
    draft = draft_schema(header=tmp_path / "t.tsv", dictionary=tmp_path / "d.csv")
    assert draft.only_in_header == ("peso",) and "title: Edad" in draft.text
    assert ('encoding: "utf-16"' in draft.text) == (encoding == "utf-16")


def test_a_short_file_without_a_mark_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\n")
    assert draft_schema(header=tmp_path / "t.csv", encoding="latin-1").open == ("ï",)


def test_a_bound_that_names_a_day_is_that_day_from_start_to_end(tmp_path: Path) -> None:
    days = "01/01/2023;31/12/2024;DD/MM/AAAA HH:MM"
    draft = drafted(
        tmp_path,
        f"a;Llegada;fecha y hora;;;{days};",
        "b;Otra;fecha y hora;;;pronto;;DD/MM/AAAA HH:MM;",
    )
    limits = {"minimum": "2023-01-01T00:00:00", "maximum": "2024-12-31T23:59:00"}
    assert draft["a"]["constraints"] == limits and draft["a"]["title"] == "Llegada"
    assert draft["a"]["dpsynth"]["calendar"] == ["hour"]
    assert draft["b"]["title"] == "Otra" and draft["b"]["format"] == "%d/%m/%Y %H:%M"
    assert set(draft["b"]["constraints"].values()) == {"TODO"}


@pytest.mark.parametrize(
    ("label", "unit", "ucum"),
    [
        ("Troponina I", "ng/L", "ng/L"),
        ("Frecuencia cardíaca", "lpm", "/min"),
        ("Cosa", "bpm", "/min"),
        ("Leucocitos", "/µL", "/uL"),
        ("Beta-hCG", "UI/L", "[IU]/L"),
        ("Cosa", "mUI/mL", "m[IU]/mL"),
        ("Cosa", "lpm", "TODO"),
        ("Cosa (mg/dl)", "", "mg/dL"),
        ("Cosa (ver unidad_cosa)", "", None),
    ],
)
def test_units_of_a_dictionary(tmp_path: Path, label: str, unit: str, ucum: str | None) -> None:
    (field,) = drafted(tmp_path, f"x;{label};decimal;{unit};;0;9;;").values()
    assert field["dpsynth"].get("ucum") == ucum


@pytest.mark.parametrize(
    ("label", "codes"),
    [
        ("Diagnóstico CIE-10-ES", {"system": "ICD-10-CM", "rollup": "chapter"}),
        ("Nebendiagnose ICD-10-GM", {"system": "ICD-10-GM", "rollup": "chapter"}),
        ("ICD10GM", {"system": "ICD-10-GM", "rollup": "chapter"}),
        ("Fármaco (ATC)", {"system": "ATC", "rollup": "level-2"}),
        ("Diagnostic relié CIM-10", "TODO"),
    ],
)
def test_code_systems_in_a_label(tmp_path: Path, label: str, codes: object) -> None:
    (field,) = drafted(tmp_path, f"x;{label};código;;;;;;").values()
    assert field["type"] == "string" and field["dpsynth"]["codes"] == codes


def test_cells_of_several_codes(tmp_path: Path) -> None:
    several = {"separator": "|", "most": "TODO"}
    for label, codes in (
        ("Nebendiagnosen ICD-10-GM, getrennt durch |", {"several": several}),
        ("Fármacos (ATC) separados por comas", {"several": several | {"separator": ","}}),
        (
            "Secondary diagnoses, ICD-10-CM, separated by semicolons",
            {"several": several | {"separator": ";"}},
        ),
        ("ATC codes separated by ward", {}),
    ):
        (field,) = drafted(tmp_path, f"x;{label};código;;;;;;").values()
        assert {k: v for k, v in field["dpsynth"]["codes"].items() if k == "several"} == codes


PATIENT, EPISODE = "id_paciente;Paciente;texto;;;;;;", "num_episodio;Episodio;entero;;;;;;"


def test_the_number_of_a_stay_is_dropped_beside_the_patient_s(tmp_path: Path) -> None:
    both = drafted(tmp_path, PATIENT, EPISODE, "sexo;Sexo;texto;;;;;;")
    assert both["num_episodio"]["dpsynth"] == {"role": "drop"}
    assert both["id_paciente"]["dpsynth"] == {"role": "TODO"}  # a person says what is protected
    alone = drafted(tmp_path, EPISODE, "sexo;Sexo;texto;;;;;;")
    assert alone["num_episodio"]["dpsynth"] == {"role": "TODO"}
    two = drafted(tmp_path, PATIENT, "nhc;Historia;texto;;;;;;", EPISODE, "sexo;Sexo;texto;;;;;;")
    assert two["num_episodio"]["dpsynth"] == {"role": "TODO"}


SIZES = ("peso;Peso;decimal;kg;;;;;", "talla;Talla;decimal;cm;;;;;")


def test_the_body_mass_index_follows_from_weight_and_height(tmp_path: Path) -> None:
    index = "imc;Índice de masa corporal;decimal;kg/m2;;;;;"
    assert (
        drafted(tmp_path, *SIZES, index)["imc"]["dpsynth"]["derived"] == "peso / (talla / 100) ^ 2"
    )
    assert "derived" not in drafted(tmp_path, SIZES[0], index)["imc"]["dpsynth"]
    again = drafted(tmp_path, *SIZES, "body_height;Otra talla;decimal;cm;;;;;", index)
    assert "derived" not in again["imc"]["dpsynth"]


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("fecha_llegada", "fecha_salida"),
        ("date_arrivee", "date_depart"),
        ("tratamiento_inicio", "tratamiento_fin"),
        ("beginn_therapie", "ende_therapie"),
        ("arrival_time", "departure_time"),
        ("data_ricovero", "data_dimissione"),
    ],
)
def test_pairs_of_dates_by_their_names(tmp_path: Path, first: str, last: str) -> None:
    draft = drafted(tmp_path, f"{last};;fecha y hora;;;;;;", f"{first};;fecha y hora;;;;;;")
    facts = draft[last]["dpsynth"]
    assert (facts["after"], facts["longest"], facts["unit"]) == (first, "TODO", "h")
    assert "after" not in draft[first]["dpsynth"] and "calendar" not in facts


def test_names_that_are_no_pair(tmp_path: Path) -> None:
    names = ("fecha_llegada", "hora_salida", "llegada_salida", "inicio_a", "fin_b")
    draft = drafted(tmp_path, *(f"{name};;fecha y hora;;;;;;" for name in names))
    assert not any("after" in one["dpsynth"] for one in draft.values())


def test_the_gaps_of_a_draft_are_one_line_for_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(HEAD + PATIENT + "\n" + "".join(f"n{i};N;entero;;;0;9;;\n" for i in range(30)))
    draft = draft_schema(dictionary=path)
    with pytest.raises(SchemaError) as refused:
        Schema.from_dict(parse_yaml(draft.text.encode(), "draft")).require_complete()
    lines = [str(problem) for problem in refused.value.problems]
    (proposals,) = [line for line in lines if "is a proposal" in line]
    assert proposals.startswith("dpsynth.bounds_basis: ") and ": n0, n1, n2," in proposals
    assert "and 24 more" in proposals
    assert not any("enum" in line for line in lines)  # the key has a role to fill first


def test_values_do_not_hide_whom_a_column_names(tmp_path: Path) -> None:
    """A list of doctors, or bounds of record numbers, make no column harmless."""
    path = tmp_path / "dictionary.csv"
    path.write_text(
        "Variable,Type,Label,Values\n"
        "dob,date,Date of birth,DD/MM/YYYY\n"
        "mrn,integer,Medical record number,1-999999\n"
        'physician,text,Treating physician,"Dr A; Dr B; Dr C"\n'
        'ward,text,Ward,"A; B"\n'
    )
    document = parse_yaml(draft_schema(dictionary=path).text.encode(), "draft")
    roles = {one["name"]: one["dpsynth"].get("role") for one in document["fields"]}
    assert roles == {"dob": "drop", "mrn": "TODO", "physician": "TODO", "ward": None}
    fields = {one["name"]: one for one in document["fields"]}
    assert fields["physician"]["constraints"] == {"enum": ["Dr A", "Dr B", "Dr C"]}


def test_headings_that_are_not_used_are_told(tmp_path: Path) -> None:
    path = tmp_path / "dictionary.csv"
    path.write_text("Variable,Type,Mín.,Valor máx,Ud.,Zuständig\nalter,integer,0,120,a,Meier\n")
    made = draft_schema(dictionary=path)
    assert made.unused_headings == ("Zuständig",)
    [field] = parse_yaml(made.text.encode(), "draft")["fields"]
    assert field["constraints"] == {"minimum": 0, "maximum": 120}
    assert field["dpsynth"]["ucum"] == "a"
