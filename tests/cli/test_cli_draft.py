"""``dpsynth schema draft`` as a person and as a script use it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..support.command_line import Cli
from ..support.hospital_dictionary import write_csv, write_workbook


def test_a_draft_goes_to_a_new_file_or_to_stdout(cli: Cli, tmp_path: Path) -> None:
    write_csv(tmp_path / "ward.csv")
    ended = cli("schema", "draft", "--from", "ward.csv")
    assert ended.code == 0 and ended.out.startswith("# A draft of `dpsynth schema draft`")
    assert "40 columns: 31 proposed, 4 with a TODO, 5 dropped" in ended.err
    saved = cli("schema", "draft", "--from", "ward.csv", "-o", "mine.schema.yaml", "--quiet")
    assert saved.code == 0 and saved.out == "wrote mine.schema.yaml\n" and saved.err == ""
    assert (tmp_path / "mine.schema.yaml").read_text() == ended.out
    again = cli("schema", "draft", "--from", "ward.csv", "-o", "mine.schema.yaml")
    assert again.code == 2 and "mine.schema.yaml exists" in again.err
    checked = cli("schema", "check", "mine.schema.yaml")
    assert checked.code == 2 and "this is a draft" in checked.err
    assert "dpsynth.bounds_basis: is a proposal" in checked.err and ": Alter, " in checked.err


def test_for_scripts(cli: Cli, tmp_path: Path) -> None:
    write_csv(tmp_path / "ward.csv")
    (tmp_path / "t.csv").write_text("CRP\tneu\nsecret\t1\n")
    ended = cli(
        *("schema", "draft", "--from", "ward.csv", "--from-header", "t.csv"),
        *("--delimiter", "\\t", "--json"),
    )
    assert ended.code == 0 and ended.err == ""
    assert ended.json["kind"] == "dpsynth.schema.draft"
    assert ended.json["only_in_header"] == ["neu"] and ended.json["proposed"] == ["CRP"]
    assert "secret" not in ended.out


def test_mistakes_in_the_command(cli: Cli) -> None:
    neither = cli("schema", "draft")
    assert neither.code == 2 and "--from-header" in neither.err
    long = cli("schema", "draft", "--from-header", "t.csv", "--delimiter", "::")
    assert long.code == 2 and "one character is expected" in long.err
    missing = cli("schema", "draft", "--from-header", "t.csv")
    assert missing.code == 2 and "t.csv does not exist; correct the path" in missing.err


@pytest.mark.parametrize(("library", "file"), [("openpyxl", "d.xlsx"), ("pyreadstat", "d.sav")])
def test_a_light_installation_says_what_to_install(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str, file: str
) -> None:
    write_workbook(tmp_path / file)
    monkeypatch.setitem(sys.modules, library, None)
    ended = cli("schema", "draft", "--from", file)
    assert ended.code == 2 and f"{library} is not installed" in ended.err
    assert "pip install 'dpsynth[full]'" in ended.err
