"""Value labels of SAS files: they are in a format catalogue beside the file."""

from __future__ import annotations

from pathlib import Path

import pyreadstat
import pytest

from dpsynth.draft import draft_schema
from dpsynth.draft.drafts import read_entries
from dpsynth.draft.entry import Entry
from dpsynth.errors import InputError

from ..support.command_line import Cli
from ..support.sas_files import DOUBLE, STRING, write_catalog, write_sas

FORMATS: dict[str, dict[float | str, str]] = {
    "SEXF": {1.0: "männlich", 2.0: "weiblich"},
    "$WARD": {"C": "Cardiology", "S": "Surgery"},
    "AGEF": {-9.0: "unknown"},
    "UNUSED": {1.0: "nobody"},
}


def sas_file(folder: Path) -> Path:
    """Write a file whose columns are shown by formats, some with a width."""
    variables = [
        ("sex", DOUBLE, "SEXF8."),
        ("ward", STRING, "$ward"),
        ("age", DOUBLE, "AGEF."),
        ("admitted", DOUBLE, "DATE9."),
        ("risk", DOUBLE, "RISKF."),
        ("weight", DOUBLE, "8.1"),
    ]
    rows = [(1.0, "C", 4711.0, 20000.0, 1.0, 71.5), (2.0, "secret", 5222.0, 20001.0, 2.0, 80.0)]
    return write_sas(folder / "stays.sas7bdat", variables, rows)


def entries(path: Path, catalog: Path | None = None) -> dict[str, Entry]:
    found = read_entries(path, None, "utf-8", catalog=catalog)
    return {column.name: column for column in found.columns}


def test_a_catalogue_gives_labels_by_the_names_of_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sas_file(tmp_path)
    catalog = write_catalog(tmp_path / "other.sas7bcat", FORMATS)
    bare = entries(path)
    assert not any(one.values for one in bare.values())
    assert "SAS format SEXF, whose labels are in no catalogue" in bare["sex"].remark
    asked = []
    real = pyreadstat.read_sas7bdat

    def spied(*arguments: object, **options: object) -> object:
        asked.append(options)
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(pyreadstat, "read_sas7bdat", spied)
    found = entries(path, catalog)
    assert asked == [{"metadataonly": True}]
    assert found["sex"].values == (("1", "männlich"), ("2", "weiblich"))
    assert found["ward"].values == (("C", "Cardiology"), ("S", "Surgery"))
    assert len(found["age"].reasons) == 1 and found["age"].reasons[0][1] == ("-9",)
    assert not found["age"].values and not found["age"].missing
    assert found["admitted"].kind == "date" and not found["admitted"].remark
    assert "RISKF, whose labels are in no catalogue" in found["risk"].remark
    assert not found["weight"].remark
    draft = draft_schema(dictionary=path, catalog=catalog)
    assert draft.catalog == "other.sas7bcat"
    assert "with the format catalogue other.sas7bcat, column sex, 2 values" in draft.text
    assert not any(cell in draft.text for cell in ("secret", "4711", "5222", "nobody"))


@pytest.mark.parametrize("name", ["stays.sas7bcat", "formats.sas7bcat", "FORMATS.SAS7BCAT"])
def test_one_catalogue_beside_the_file_is_used_and_named(
    command_line: Cli, tmp_path: Path, name: str
) -> None:
    path = sas_file(tmp_path)
    write_catalog(tmp_path / name, FORMATS)
    write_catalog(tmp_path / "another.sas7bcat", {"SEXF": {1.0: "wrong"}})
    shown = command_line("schema", "draft", "--from", str(path))
    assert shown.code == 0 and "label: weiblich" in shown.out and "wrong" not in shown.out
    assert f"value labels from the format catalogue {name}, found beside the file" in shown.err
    asked = command_line("schema", "draft", "--from", str(path), "--json")
    assert asked.json["catalog"] == name


def test_two_catalogues_beside_the_file_are_not_guessed(command_line: Cli, tmp_path: Path) -> None:
    path = sas_file(tmp_path)
    for name in ("stays.sas7bcat", "formats.sas7bcat"):
        write_catalog(tmp_path / name, FORMATS)
    shown = command_line("schema", "draft", "--from", str(path))
    assert shown.code == 2
    assert "formats.sas7bcat, stays.sas7bcat; name the right one with --catalog" in shown.err
    chosen = command_line(
        *("schema", "draft", "--from", str(path), "--catalog", str(tmp_path / "formats.sas7bcat")),
        "--json",
    )
    assert chosen.code == 0 and chosen.json["catalog"] == "formats.sas7bcat"


def test_what_is_no_catalogue_is_refused(tmp_path: Path) -> None:
    path = sas_file(tmp_path)
    damaged = tmp_path / "damaged.sas7bcat"
    damaged.write_bytes(b"SAS " * 400)
    with pytest.raises(InputError, match="cannot be read as a format catalogue of SAS"):
        draft_schema(dictionary=path, catalog=damaged)
    with pytest.raises(InputError, match="none.sas7bcat does not exist"):
        draft_schema(dictionary=path, catalog=tmp_path / "none.sas7bcat")
    with pytest.raises(InputError, match="is not a format catalogue of SAS"):
        draft_schema(dictionary=path, catalog=path)
    other = tmp_path / "dictionary.csv"
    other.write_text("name,type\nage,integer\n")
    with pytest.raises(InputError, match="is not a .sas7bdat file; leave out --catalog"):
        draft_schema(dictionary=other, catalog=damaged)
    with pytest.raises(InputError, match="is not a .sas7bdat file; leave out --catalog"):
        draft_schema(dictionary=tmp_path / "t.sav", catalog=damaged)
    with pytest.raises(InputError, match="with --from"):
        draft_schema(header=other, catalog=damaged)
