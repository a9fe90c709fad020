"""Dictionaries are read by what stands in their columns, not by the first heading that matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_schema


def drafted(tmp_path: Path, text: str) -> dict[str, dict]:
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8")
    document = parse_yaml(draft_schema(dictionary=path).text.encode(), "draft")
    return {field["name"]: field for field in document["fields"]}


def test_the_column_of_names_has_no_blanks(tmp_path: Path) -> None:
    fields = drafted(
        tmp_path,
        "modelvar,variable,colname,vartype,range/categories,definition\n"
        "outcome,State at end,state,categorical,0 = censored / 1 = event,Last contact\n"
        "predictor,Age,age_y,numeric,18-105,Years\n"
        "predictor,Heart failure,hf,binary,FALSE/TRUE,code I50\n",
    )
    assert list(fields) == ["state", "age_y", "hf"]
    assert fields["state"]["constraints"] == {"enum": [0, 1]}
    assert fields["age_y"]["constraints"] == {"minimum": 18, "maximum": 105}
    assert (fields["hf"]["type"], fields["hf"]["trueValues"]) == ("boolean", ["TRUE"])


def test_the_column_of_types_has_words_for_types(tmp_path: Path) -> None:
    fields = drafted(
        tmp_path,
        "Column Name,Description,Type,Data Type\nrooms,Rooms,Main Data,integer\n"
        "area,Region,Main Data,string\n",
    )
    assert [one["type"] for one in fields.values()] == ["integer", "string"]


def test_a_list_as_numpy_prints_it(tmp_path: Path) -> None:
    fields = drafted(
        tmp_path,
        "variable,type,values\n"
        "risk,Categorical,\"['low' 'N/A - benign'\n 'relapse <12 months' nan]\"\n"
        'grade,Categorical,"[1 2 3]"\nodd,Categorical,"[\'a\' "\n',
    )
    assert fields["risk"]["constraints"]["enum"] == ["low", "N/A - benign", "relapse <12 months"]
    assert fields["grade"]["constraints"]["enum"] == [1, 2, 3]


def test_an_unknown_word_for_a_type_loses_nothing(tmp_path: Path) -> None:
    fields = drafted(
        tmp_path,
        "Variable;Type;Min;Max;Unit;Values\n"
        "a;weirdtype;0;50;mg/dL;\nb;weirdtype;;;;1=x|2=y\nc;weirdtype;;;;\n",
    )
    assert fields["a"]["type"] == "number" and fields["a"]["dpsynth"]["ucum"] == "mg/dL"
    assert fields["a"]["constraints"] == {"minimum": 0, "maximum": 50}
    assert fields["b"]["constraints"] == {"enum": [1, 2]} and fields["c"]["type"] == "TODO"


@pytest.mark.parametrize(
    ("type_", "form"),
    [
        ("date and time", ""),
        ("date", "YYYY-MM-DD HH:MM"),
        ("date", "TT.MM.JJJJ HH:MM"),
        ("", "DD/MM/YYYY HH:MM"),
        ("data e hora", ""),
    ],
)
def test_a_datetime_stays_one(tmp_path: Path, type_: str, form: str) -> None:
    fields = drafted(tmp_path, f"Variable;Type;Format\nadmission_date;{type_};{form}\nx;int;\n")
    assert fields["admission_date"]["type"] == "datetime"


@pytest.mark.parametrize(
    "head",
    [
        "Naam variabele;Omschrijving;Gegevenstype;Eenheid",
        "Nome variabile;Descrizione;Tipo di dato;Unità di misura",
        "Nazwa zmiennej;Opis;Typ danych;Jednostka",
        "Nome da variável;Descrição;Tipo de dados;Unidade",
        "Variabelnamn;Beskrivning;Datatyp;Enhet",
    ],
)
def test_headings_of_dictionaries_in_other_languages(tmp_path: Path, head: str) -> None:
    fields = drafted(tmp_path, f"{head}\nx17;Something;numeric;kg\n")
    assert fields["x17"]["title"] == "Something" and fields["x17"]["dpsynth"]["ucum"] == "kg"
