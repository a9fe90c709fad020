"""Data dictionaries: CSV and workbooks, four languages, and what is wrong with bad ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth._util.strict_yaml import parse_yaml
from dpsynth.draft import draft_schema
from dpsynth.draft.drafts import read_entries
from dpsynth.draft.entry import Entry
from dpsynth.errors import InputError

from ..support.hospital_dictionary import NAMES, write_csv, write_workbook


def entries(path: Path, text: str, encoding: str = "utf-8") -> dict[str, Entry]:
    path.write_bytes(text.encode(encoding))
    return {column.name: column for column in read_entries(path, None, encoding).columns}


def fields(text: str) -> dict[str, dict[str, object]]:
    return {field["name"]: field for field in parse_yaml(text.encode(), "draft")["fields"]}


def test_a_hospital_s_dictionary_of_40_columns(tmp_path: Path) -> None:
    """What docs/schema.md says of such a dictionary: 31 columns proposed, 4 with a TODO."""
    draft = draft_schema(dictionary=write_csv(tmp_path / "ward.csv"))
    assert tuple(fields(draft.text)) == NAMES and len(NAMES) == 40
    assert (len(draft.proposed), len(draft.open), len(draft.dropped)) == (31, 4, 5)
    assert draft.dropped == ("FallNr", "Nachname", "Geb_Datum", "PLZ", "Bemerkung")
    columns = fields(draft.text)
    assert columns["Krea"]["constraints"] == {"minimum": 0.05, "maximum": 30}
    assert columns["Alter"]["constraints"] == {"minimum": 18, "maximum": 105}
    assert columns["Leukos"]["dpsynth"]["ucum"] == "10*9/L"  # type: ignore[index]
    assert columns["Geschlecht"]["constraints"] == {"enum": ["m", "w", "d"]}
    assert columns["Diabetes"]["trueValues"] == ["1"]
    assert columns["Aufnahmedatum"]["format"] == "%d.%m.%Y"


@pytest.mark.long
def test_a_workbook_gives_the_same_draft(tmp_path: Path) -> None:
    text = draft_schema(dictionary=write_csv(tmp_path / "ward.csv")).text
    book = draft_schema(dictionary=write_workbook(tmp_path / "ward.xlsx")).text
    assert book.replace("ward.xlsx", "ward.csv") == text
    named = draft_schema(dictionary=tmp_path / "ward.xlsx", sheet="Felder")
    assert named.text == book


def test_an_older_encoding_is_declared(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "ward.csv", "cp1252")
    with pytest.raises(InputError, match="line 2: this is not utf-8; add --encoding"):
        draft_schema(dictionary=path)
    assert "Körpergröße" in draft_schema(dictionary=path, encoding="cp1252").text


@pytest.mark.parametrize(
    "text",
    [
        "Variable,Type,Label,Unit,Minimum,Maximum\nx,decimal,X,kg,0.5,9\n",
        "Feldname;Datentyp;Bezeichnung;Einheit;Von;Bis;Untergrenze;Obergrenze\n"
        "x;Dezimalzahl;X;kg;;;0,5;9\n",
        "Nom de variable\tType\tLibellé\tUnité\tMinimum\tMaximum\nx\tdécimal\tX\tkg\t0,5\t9\n",
        "Campo|Tipo de dato|Etiqueta|Unidad|Mínimo|Máximo\nx|decimal|X|kg|0,5|9\n",
    ],
    ids=["en", "de", "fr", "es"],
)
def test_headings_in_four_languages(tmp_path: Path, text: str) -> None:
    (one,) = entries(tmp_path / "d.csv", text).values()
    assert (one.kind, one.label, one.unit) == ("number", "X", "kg")
    assert (one.minimum.replace(",", "."), one.maximum) == ("0.5", "9")


def test_values_ranges_and_missing_codes(tmp_path: Path) -> None:
    text = (
        "name;type;values;missing\n"
        "a;category;1=yes, definitely|2=no;\n"
        "b;integer;0-10;\n"
        "c;integer;-9 = unknown;\n"
        "d;number;;99\n"
        "e;;F, M, X;\n"
    )
    columns = entries(tmp_path / "d.csv", text)
    assert columns["a"].values == (("1", "yes, definitely"), ("2", "no"))
    assert (columns["b"].minimum, columns["b"].maximum) == ("0", "10")
    assert columns["c"].missing == ("-9",) and not columns["c"].values
    assert columns["d"].missing == ("99",)
    assert [code for code, _ in columns["e"].values] == ["F", "M", "X"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n1,2\n", "no heading for the names of the columns.*the first row has: a, b"),
        ("name,type\n", "no row follows the headings"),
        ("name,type\nage,integer\nsex,text\nage,number\n", "row 2 and row 4 have the same name"),
        ("name,type\na\x07b,text\n", "row 2 has a control character"),
        ("name,type\n\x00\n", "is not a text file"),
        ("name,type\n" + "x" * 40_000 + ",text\n", "longer than"),
        ("name,type\n" + "a," * 600 + "\n", "more than 20000 rows or 500 columns"),
    ],
)
def test_bad_dictionaries(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        draft_schema(dictionary=path)
    assert "\n" not in str(caught.value)


def test_other_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; correct the path"):
        draft_schema(dictionary=tmp_path / "none.csv")
    with pytest.raises(InputError, match="not a dictionary that can be read.*save it as .xlsx"):
        draft_schema(dictionary=tmp_path / "old.xls")
    with pytest.raises(InputError, match="'latin-7000' is not an encoding"):
        draft_schema(dictionary=write_csv(tmp_path / "d.csv"), encoding="latin-7000")
    with pytest.raises(InputError, match="has no sheets"):
        draft_schema(dictionary=tmp_path / "d.csv", sheet="Felder")
    with pytest.raises(InputError, match="with --from-header"):
        draft_schema()


def test_what_a_schema_cannot_hold_becomes_a_todo_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(
        "name;type;min;max;values\n"
        "a;integer;9;2;\n"
        "b;category;;;x=1|x=2\n"
        "c;number;1.000;5;\n"
        "crp_mg_l;number;1.000;5;\n"
    )
    draft = draft_schema(dictionary=path)
    assert draft.open == ("a", "b", "c", "crp_mg_l")
    assert "cannot be used: maximum is below minimum" in draft.text
    assert "cannot be used: 'x' repeats enum[0]" in draft.text
    assert "the document says 1.000, which is not one clear number" in draft.text


def test_a_header_and_a_dictionary(tmp_path: Path) -> None:
    write_csv(tmp_path / "ward.csv")
    (tmp_path / "t.csv").write_text("CRP;alter;neu\n")
    draft = draft_schema(header=tmp_path / "t.csv", dictionary=tmp_path / "ward.csv", delimiter=";")
    assert list(fields(draft.text)) == ["CRP", "alter", "neu"]
    assert draft.only_in_header == ("neu",) and len(draft.only_in_dictionary) == 38
    assert fields(draft.text)["alter"]["constraints"] == {"minimum": 18, "maximum": 105}


def test_a_stay_in_days_follows_from_its_dates(tmp_path: Path) -> None:
    """Modelled beside the dates it would contradict them; without them it is modelled."""
    text = draft_schema(dictionary=write_csv(tmp_path / "ward.csv")).text
    assert 'derived: "days(Aufnahmedatum, Entlassdatum)"' in text
    path = tmp_path / "stay.csv"
    path.write_text("name,type,unit\nlos,integer,days\nage,integer,years\n")
    assert "derived" not in draft_schema(dictionary=path).text
