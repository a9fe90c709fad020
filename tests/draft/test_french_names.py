"""An extract of a French intensive care unit: names, units in the header, O/N, 14h05."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import Draft, draft_schema

HEADER = (
    "IPP;N° séjour;Nom d'usage;Entrée réa;Sortie réa;PAM min (mmHg);Lactates (mmol/L);"
    "Ventilation (O/N);Diagnostic (CIM-10)\n"
)
DICTIONARY = """\
Nom de la variable;Libellé;Type;Valeurs manquantes;Minimum;Maximum
IPP;Identifiant du patient;texte;;;
N° séjour;Numéro du séjour;texte;;;
Nom d'usage;Nom du patient;texte;;;
Entrée réa;Entrée;date et heure JJ/MM/AAAA HHhMM;;01/01/2019;31/12/2021
Sortie réa;Sortie;date et heure JJ/MM/AAAA à HH h MM;;01/01/2019;31/12/2021
PAM min (mmHg);PAM;entier;NR;0;200
Lactates (mmol/L);Lactates;décimal;NR, NF;0;30
Ventilation (O/N);Ventilation;O/N;NR;;
Diagnostic (CIM-10);Diagnostic;code CIM-10;;;
"""


def fields(draft: Draft) -> dict[str, dict[str, object]]:
    document = parse_yaml(draft.text.encode(), "draft")
    assert isinstance(document, dict)
    return {str(one["name"]): one for one in document["fields"]}


@pytest.mark.long
def test_by_the_header_alone(tmp_path: Path) -> None:
    (tmp_path / "rea.csv").write_bytes(HEADER.encode("latin-1"))
    draft = draft_schema(header=tmp_path / "rea.csv", delimiter=";", encoding="latin-1")
    found = fields(draft)
    assert draft.dropped == ("N° séjour", "Nom d'usage")
    assert found["PAM min (mmHg)"]["dpsynth"]["ucum"] == "mm[Hg]"  # type: ignore[index]
    ventilation = found["Ventilation (O/N)"]
    assert (ventilation["trueValues"], ventilation["falseValues"]) == (["O"], ["N"])
    assert "proposal: header of rea.csv, its name: confirm" in draft.text
    assert "codes: TODO  # which national version?" in draft.text


def test_by_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "dico.csv").write_bytes(DICTIONARY.encode("latin-1"))
    found = fields(draft_schema(dictionary=tmp_path / "dico.csv", encoding="latin-1"))
    entry, leave = found["Entrée réa"], found["Sortie réa"]
    assert (entry["type"], entry["format"]) == ("datetime", "%d/%m/%Y %Hh%M")
    assert leave["format"] == "%d/%m/%Y à %H h %M"
    assert leave["dpsynth"]["after"] == "Entrée réa"  # type: ignore[index]
    assert found["Nom d'usage"]["dpsynth"] == {"role": "drop"}
    assert found["Ventilation (O/N)"]["trueValues"] == ["O"]
    assert found["Ventilation (O/N)"]["missingValues"] == ["", "NR"]
    assert found["PAM min (mmHg)"]["constraints"] == {"minimum": 0, "maximum": 200}


def test_a_name_of_two_letters_that_mean_no_truth_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("sex (M/F);on/off\n")
    draft = draft_schema(header=tmp_path / "t.csv", delimiter=";")
    assert "boolean" not in str(fields(draft)["sex (M/F)"]["type"])
