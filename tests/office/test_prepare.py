"""Who prepares a release sees no row: from headings to a finished schema and settings, by forms."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsynth.ledger import Ledger, adopt
from dpsynth.office import Gate, Prepare
from dpsynth.policy import Policy
from dpsynth.schema import load_any
from dpsynth.workflow import Settings

from ..support import hospital_dictionary, messy_exports
from .visitor import HOST, Visitor, words

SECRET = "Geheimnis-4711"
HEADINGS = "Patientennummer;Alter;Geschlecht;Hb (g/dl);verstorben\n"
EVERY_PAGE = ("/", "/draft", "/columns", "/tables", "/settings", "/budget", "/finish")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "release").mkdir()
    return tmp_path / "release"


@pytest.fixture
def enter(folder: Path) -> Callable[..., Visitor]:
    def visit(**options: Any) -> Visitor:
        gate = Gate((HOST,))
        return Visitor(Prepare.of(folder, gate, **options), gate)

    return visit


@pytest.fixture
def extract(tmp_path: Path) -> Path:
    """A table whose rows would be noticed anywhere: they are no text, and name a secret."""
    path = tmp_path / "Auszug.csv"
    rows = f"{SECRET};\xff{SECRET};1;2;3\n".encode("latin-1") * 50
    path.write_bytes(HEADINGS.encode() + rows)
    return path


@pytest.fixture
def drafted(enter: Callable[..., Visitor], extract: Path) -> Visitor:
    visitor = enter()
    made = visitor.post("/draft", {"sign": visitor.gate.sign, "table": str(extract)})
    assert made.status_code == 200 and "No row was read" in made.text
    return visitor


def schema_of(folder: Path) -> Path:
    return next(path for path in folder.glob("*.yaml") if path.name != "dpsynth.yaml")


def at(place: str) -> str:
    return f"/column?at={place.replace('/', '%2F')}"


def finish_columns(visitor: Visitor) -> None:
    """Fill in what the draft of the extract asks."""
    key = visitor.fill(at("fields/0"), "/column", dpsynth__role=["unit"])
    assert key.status_code == 200
    sex = {"constraints__enum": "1 = männlich\n2 = weiblich", "dpsynth__bounds_basis": "Formular"}
    assert visitor.fill(at("fields/2"), "/column", type="integer", **sex).status_code == 200
    died = {"trueValues": "ja", "falseValues": "nein", "dpsynth__bounds_basis": "Formular"}
    role = {"dpsynth__role": ["target"]}
    assert visitor.fill(at("fields/4"), "/column", **died, **role).status_code == 200
    assert visitor.fill("/columns", "/confirm", by="A. Nyqvist", all="1").status_code == 200
    sizes = {"population__value": "12000", "population__basis": "annual report"}
    sizes |= {"rows__value": "14000", "rows__basis": "annual report"}
    sizes |= {"max_rows__value": "3", "max_rows__basis": "protocol"}
    assert visitor.fill("/table?at=dpsynth", "/table", **sizes).status_code == 200


# the whole way -----------------------------------------------------------------------------------


def test_from_headings_to_a_folder_that_can_be_run(
    drafted: Visitor, folder: Path, extract: Path
) -> None:
    extract.unlink()  # nothing later needs it
    visitor = drafted
    first = words(visitor.get("/").text)
    assert "3 open, 2 proposed" in first and "still missing in dpsynth.yaml" in first.lower()
    finish_columns(visitor)
    finish = visitor.get("/finish")
    assert "Everything is filled in and confirmed" in finish.text
    assert "The schema is finished" not in visitor.get("/budget").text
    assert visitor.fill("/finish", "/finish").status_code == 200
    names = {"dataset": "ward", "output": "bundle", "holdout": "0.25", "about__title": "Ward"}
    assert visitor.fill("/settings", "/settings", **names).status_code == 200
    budget = words(visitor.get("/budget?epsilon=3&delta=1e-6").text)
    assert "carries about" in budget and "3 (shown below)" in budget
    chosen = visitor.fill("/budget?epsilon=3&delta=1e-6", "/budget")
    assert chosen.status_code == 200 and "dpsynth office run" in words(chosen.text)
    schema = load_any(schema_of(folder))
    schema.require_complete()
    assert schema.unit.column == "Patientennummer" and schema.population.value == 12000
    assert schema.to_dict()["fields"][2]["categories"][1] == {"value": 2, "label": "weiblich"}
    settings = Settings.load(folder / "dpsynth.yaml", data="extract.csv")
    assert (settings.epsilon, settings.delta, settings.dataset) == (3.0, 1e-6, "ward")
    assert settings.holdout == 0.25 and settings.about is not None
    assert settings.about.title == "Ward" and Path(settings.schema).name == schema_of(folder).name


def test_no_row_stands_on_a_page_or_in_a_file(
    drafted: Visitor, folder: Path, extract: Path, tmp_path: Path
) -> None:
    assert SECRET.encode() in extract.read_bytes()
    finish_columns(drafted)
    for page in (*EVERY_PAGE, at("fields/1"), "/table?at=dpsynth"):
        drafted.get(page)
    assert len(drafted.seen) > 15 and not any(SECRET in page for page in drafted.seen)
    others = [path for path in tmp_path.rglob("*") if path.is_file() and path != extract]
    assert others and not any(SECRET.encode() in path.read_bytes() for path in others)


def test_a_table_is_read_up_to_its_headings(enter: Callable[..., Visitor], extract: Path) -> None:
    """The rows are more than any memory holds, so no step can have read them."""
    os.truncate(extract, 2**42)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert extract.stat().st_size > memory
    visitor = enter()
    made = visitor.post("/draft", {"sign": visitor.gate.sign, "table": str(extract)})
    assert made.status_code == 200
    finish_columns(visitor)
    for page in EVERY_PAGE:
        assert visitor.get(page).status_code == 200


def test_nothing_of_the_running_role_is_shown(
    drafted: Visitor, folder: Path, tmp_path: Path
) -> None:
    finish_columns(drafted)
    drafted.fill("/settings", "/settings", dataset="ward", output="bundle")
    for name in ("bundle.work", "bundle.internal", "bundle.office"):
        (folder / name).mkdir()
        (folder / name / "stages.json").write_text(json.dumps({"rows": SECRET}))
    settings = folder / "dpsynth.yaml"
    settings.write_text(settings.read_text() + f"data: postgresql://u:p@{SECRET}/db\n")
    start = len(drafted.seen)
    for page in EVERY_PAGE:
        assert drafted.get(page).status_code in (200, 400)
    renamed = drafted.fill("/settings", "/settings", dataset="ward2")
    assert renamed.status_code == 200, words(renamed.text)
    assert not any(SECRET in page for page in drafted.seen[start:])
    assert SECRET in settings.read_text()  # what somebody else wrote stays


# drafts ------------------------------------------------------------------------------------------


def test_an_uploaded_dictionary_is_kept_nowhere(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    path = hospital_dictionary.write_workbook(tmp_path / "d.xlsx")
    visitor = enter()
    sign = {"sign": visitor.gate.sign}
    extract = {"upload": ("Auszug.csv", f"a;b\n{SECRET};1\n".encode())}
    refused = visitor.post("/draft", sign, files=extract)
    assert refused.status_code == 400 and "No draft was made" in refused.text
    assert SECRET not in refused.text and "Auszug.csv" in refused.text
    assert list(folder.iterdir()) == []
    upload = {"upload": ("../../Satz März.xlsx", path.read_bytes())}
    made = visitor.post("/draft", sign, files=upload)
    assert made.status_code == 200, words(made.text)
    assert [one.name for one in folder.iterdir()] == ["Satz-M-rz.schema.yaml"]
    assert "Satz März.xlsx" in schema_of(folder).read_text()
    again = visitor.post("/draft", sign, files=upload)
    assert again.status_code == 400 and "has a schema already" in again.text


def test_what_cannot_be_drafted_is_named(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    visitor = enter(header="nowhere.csv")
    assert 'value="nowhere.csv"' in visitor.get("/draft").text
    wrong = (
        ({}, "name a table"),
        ({"table": "nowhere.csv"}, "nowhere.csv"),
        ({"table": str(tmp_path / "x.csv"), "delimiter": ";;"}, "one character"),
        ({"table": str(tmp_path / "x.csv"), "header_row": "0"}, "a number from 1"),
        ({"table": str(tmp_path / "x.csv"), "name": "a/b"}, "letters, digits"),
    )
    (tmp_path / "x.csv").write_text(HEADINGS)
    for given, sentence in wrong:
        answer = visitor.post("/draft", {"sign": visitor.gate.sign, **given})
        assert answer.status_code == 400 and sentence in words(answer.text), given
    assert list(folder.iterdir()) == []


def test_pages_without_a_schema_say_what_to_do(enter: Callable[..., Visitor]) -> None:
    visitor = enter()
    for page in ("/columns", "/tables", "/finish", at("fields/0")):
        answer = visitor.get(page)
        assert answer.status_code == 400 and "make a draft first" in answer.text
    assert "There is no schema yet" in visitor.get("/").text


def test_two_schemas_are_told_apart_by_the_settings(drafted: Visitor, folder: Path) -> None:
    one = schema_of(folder)
    (folder / "other.schema.yaml").write_text(one.read_text())
    assert "has 2 schemas" in drafted.get("/").text
    (folder / "dpsynth.yaml").write_text(f"dpsynth_run: 1\nschema: {one.name}\n")
    assert one.name in drafted.get("/").text


BROKEN = (
    "fields",
    "a: [",
    "- a\n- b\n",
    "fields: [3, null]\ndpsynth: 4\n",
    "fields:\n- name: x\n  constraints: 3\n  dpsynth: [1]\n  title: {a: b}\n",
    "resources: [3, {name: 5, schema: 3, dpsynth: {series: 4}}]\ndpsynth: {patients: [x]}\n",
    "resources:\n- name: a\n  dpsynth: {series: {tests: {5: {minimum: 1}, b: 3}}}\n",
)


@pytest.mark.parametrize("text", BROKEN)
def test_a_file_that_somebody_broke_is_a_sentence(
    enter: Callable[..., Visitor], folder: Path, text: str
) -> None:
    visitor = enter()
    places = ("fields/0", "resources/0/dpsynth/series/tests/b")
    for schema, settings in ((text, ""), ("", text), (text, "dpsynth_run: x\ndelta: []\n")):
        (folder / "x.schema.yaml").write_text(schema)
        (folder / "dpsynth.yaml").write_text(settings)
        for page in (*EVERY_PAGE, *map(at, places), "/table?at=dpsynth"):
            assert visitor.get(page).status_code in (200, 400), page
        for action in ("/confirm", "/column", "/table", "/settings", "/budget", "/finish"):
            form = {"sign": visitor.gate.sign, "at": "fields/0", "epsilon": "1", "delta": "1e-6"}
            assert visitor.post(action, form).status_code in (400, 409), action
        assert (folder / "x.schema.yaml").read_text() == schema


# columns -----------------------------------------------------------------------------------------


def test_the_table_of_columns_is_filtered_by_state(drafted: Visitor) -> None:
    everything = drafted.get("/columns").text
    assert everything.count('name="column"') == 2  # a box for each proposed column
    open_ones = drafted.get("/columns?state=open").text
    assert "Patientennummer" in open_ones and "Alter" not in open_ones
    assert "unit, if each value is one patient to protect" in open_ones


def test_marked_columns_are_confirmed_in_a_name(drafted: Visitor, folder: Path) -> None:
    refused = drafted.fill("/columns", "/confirm", by="", all="1")
    assert refused.status_code == 400 and "Write the name" in refused.text
    nothing = drafted.fill("/columns", "/confirm", by="A. N.", marked="1")
    assert nothing.status_code == 400 and "No proposed column is marked" in nothing.text
    drafted.fill("/columns", "/confirm", by="A. N.", marked="1", column=["fields/1"])
    text = schema_of(folder).read_text()
    assert text.count("confirmed by A. N.:") == 1 and text.count("proposal:") == 1
    assert "confirmed 1" in words(drafted.get("/columns").text)


def test_a_mistake_stands_beside_its_field(drafted: Visitor, folder: Path) -> None:
    before = schema_of(folder).read_text()
    answer = drafted.fill(at("fields/1"), "/column", constraints__minimum="young", title="Jahre")
    assert answer.status_code == 400 and "a number is expected" in words(answer.text)
    assert 'value="young"' in answer.text and 'value="Jahre"' in answer.text  # nothing is lost
    assert 'aria-invalid="true"' in answer.text
    assert schema_of(folder).read_text() == before
    other = drafted.fill(at("fields/1"), "/column", rest="dpsynth: {nonsense: 1}")
    assert other.status_code == 400 and "there is no such key here" in words(other.text)
    other = drafted.fill(at("fields/1"), "/column", rest="- a\n- b")
    assert other.status_code == 400 and "lines such as key: value" in words(other.text)
    other = drafted.fill(at("fields/1"), "/column", rest="name: other")
    assert other.status_code == 400 and "name: not among these lines" in words(other.text)


def test_another_column_with_a_mistake_stops_no_change(drafted: Visitor, folder: Path) -> None:
    path = schema_of(folder)
    path.write_text(path.read_text().replace('ucum: "g/dL"', "ucum: 7"))
    assert "ucum: 7" in path.read_text()
    assert "The schema has mistakes" in drafted.get("/").text
    done = drafted.fill(at("fields/1"), "/column", title="Jahre")
    assert done.status_code == 200 and "title: Jahre" in path.read_text()


def test_a_second_tab_is_refused_and_loses_nothing(drafted: Visitor, folder: Path) -> None:
    page = at("fields/1")
    stale = next(one for one in drafted.forms(page) if one["action"] == "/column")
    drafted.fill(page, "/column", title="first")
    data = {name: value for name, value in stale["fields"].items() if value[0:]}
    answer = drafted.post("/column", data | {"title": ["second"]})
    assert answer.status_code == 409 and "in another tab" in answer.text
    assert 'value="second"' in answer.text and "second" not in schema_of(folder).read_text()
    for page, action in (("/table?at=dpsynth", "/table"), ("/columns", "/confirm")):
        answer = drafted.fill(page, action, seen="0" * 64, by="A. N.", all="1")
        assert answer.status_code == 409 and "in another tab" in answer.text
    answer = drafted.fill("/settings", "/settings", seen="0" * 64, dataset="ward")
    assert answer.status_code == 409 and 'value="ward"' in answer.text
    assert drafted.fill(at("fields/1"), "/column", title="third").status_code == 200


def test_a_dropped_column_declares_nothing_more(drafted: Visitor, folder: Path) -> None:
    assert drafted.fill(at("fields/2"), "/column", dpsynth__role=["drop"]).status_code == 200
    field = load_any(schema_of(folder)).to_dict()["fields"][2]
    assert field == {"name": "Geschlecht", "type": "string", "dpsynth": {"role": "drop"}}


def test_the_next_open_column_follows(drafted: Visitor) -> None:
    answer = drafted.fill(at("fields/0"), "/column", dpsynth__role=["unit"], next="1")
    assert str(answer.url).endswith("/column?at=fields%2F2")


def test_a_column_that_is_gone_is_a_sentence(drafted: Visitor) -> None:
    for page in (at("fields/99"), at("../../etc"), at(""), "/table?at=fields", "/table?at=x/1"):
        answer = drafted.get(page)
        assert answer.status_code == 400 and "has no such" in answer.text


def test_titles_cannot_write_pages(enter: Callable[..., Visitor], tmp_path: Path) -> None:
    attack = "<script>alert(1)</script>"
    (tmp_path / "d.csv").write_text(
        f'Feldname;Bezeichnung;Datentyp\nalter;"{attack}";Ganzzahl\n"x""onclick=1";\u202ea;Text\n'
    )
    visitor = enter()
    made = visitor.post(
        "/draft", {"sign": visitor.gate.sign, "dictionary": str(tmp_path / "d.csv")}
    )
    assert made.status_code == 200, words(made.text)
    pages = [visitor.get(page).text for page in (*EVERY_PAGE, at("fields/0"), at("fields/1"))]
    assert not any("<script" in page or '"onclick' in page for page in pages)
    assert "&lt;script&gt;" in pages[2] and "[U+202E]" in pages[2]


def test_four_hundred_columns_are_one_table(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    names = ["patient_id", *(f"hb_{number} (g/dl)" for number in range(399))]
    lines = ["Name;Type;Unit;Min;Max", "patient_id;text;;;"]
    lines += [f"{name};decimal;g/dl;1;30" for name in names[1:]]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    visitor = enter(dictionary=str(tmp_path / "d.csv"))
    visitor.fill("/draft", "/draft")
    assert visitor.get("/columns").text.count("<tr id=") == 400
    done = visitor.fill("/columns", "/confirm", by="A. N.", all="1")
    assert done.status_code == 200
    assert schema_of(folder).read_text().count("confirmed by A. N.") == 399


# linked tables -----------------------------------------------------------------------------------


def test_linked_tables_have_sections_and_their_own_questions(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    source = messy_exports.german_folder(tmp_path / "ward")
    visitor = enter(header=str(source))
    made = visitor.fill("/draft", "/draft")
    assert "Left out" in made.text and schema_of(folder).name == "ward.package.yaml"
    columns = words(visitor.get("/columns").text)
    assert all(f"Table {name}" in columns for name in ("Patienten", "Faelle", "Labor"))
    tables = words(visitor.get("/tables").text)
    assert "The package" in tables and "window.first" in tables
    page = "/table?at=resources%2F1%2Fdpsynth"
    assert "never far apart" in visitor.get(page).text
    answer = visitor.fill(page, "/table", origin="2020-01-01", max_rows__value="9")
    assert answer.status_code == 200
    text = schema_of(folder).read_text()
    assert "origin: 2020" in text or 'origin: "2020-01-01"' in text
    assert "max_rows: {value: 9, basis: TODO}" in text
    window = {"window__first": "-365", "window__last": "1826", "window__basis": "protocol"}
    assert visitor.fill("/table?at=dpsynth", "/table", **window).status_code == 200
    wrong = visitor.fill("/table?at=dpsynth", "/table", window__first="5")
    assert wrong.status_code == 400
    tests = "series: {column: Analyt, value: Wert, tests: {crp: {minimum: 0, maximum: 500, "
    tests += 'bounds_basis: "proposal: x: confirm"}}}\n'
    third = visitor.fill("/table?at=resources%2F2%2Fdpsynth", "/table", rest=tests)
    assert third.status_code == 200, words(third.text)
    place = at("resources/2/dpsynth/series/tests/crp")
    assert visitor.fill(place, "/column", maximum="600").status_code == 200
    assert "maximum: 600" in schema_of(folder).read_text()


# settings and budget -----------------------------------------------------------------------------


def test_settings_are_read_as_a_run_reads_them(drafted: Visitor, folder: Path) -> None:
    wrong = drafted.fill("/settings", "/settings", dataset="a b", holdout="2", output="bundle")
    assert wrong.status_code == 400
    text = words(wrong.text)
    assert "a name has 1 to 64 letters" in text and "below 1 is expected" in text
    assert 'value="a b"' in wrong.text and not (folder / "dpsynth.yaml").exists()
    secret = drafted.fill("/settings", "/settings", rest="passphrase: x")
    assert secret.status_code == 400 and "no passphrase belong to a run" in words(secret.text)
    table = drafted.fill("/settings", "/settings", rest="data: /srv/rows.csv")
    assert table.status_code == 400 and "not among these lines" in words(table.text)


@pytest.fixture
def finished(drafted: Visitor) -> Visitor:
    finish_columns(drafted)
    drafted.fill("/finish", "/finish")
    drafted.fill("/settings", "/settings", dataset="ward", output="bundle")
    return drafted


def test_a_draft_has_no_budget_yet(drafted: Visitor) -> None:
    assert "still a draft" in drafted.get("/budget").text
    finish = drafted.fill("/columns", "/confirm", by="A. N.", all="1")
    assert finish.status_code == 200
    page = drafted.get("/finish").text
    assert "Nobody can use it before this is done" in page and 'action="/finish"' not in page


def test_a_budget_is_weighed(finished: Visitor, folder: Path) -> None:
    slid = words(finished.get("/budget?epsilon=1&was=1&slider=2.5&delta=1e-6").text)
    assert "2.5 (shown below)" in slid and "epsilon 2.5" in slid
    assert "dpsynth plan" in slid and "--epsilon 2.5" in slid
    for wrong in ("epsilon=x", "epsilon=-1", "epsilon=inf", "epsilon=1&delta=2", "epsilon=5000"):
        assert finished.get(f"/budget?{wrong}").status_code == 400, wrong
    large = finished.get("/budget?epsilon=1&delta=0.01")
    assert large.status_code == 400  # one patient's record would be as good as published


def test_policy_and_ledger_are_shown(finished: Visitor, folder: Path, made_ledger: Path) -> None:
    document = {
        "dpsynth_policy": 1,
        "name": "Office",
        "delta": 1e-5,
        "caps": {"release": {"epsilon": 2, "basis": "board"}},
    }
    adopt(Ledger.default(), Policy.from_dict(document, "policy"))
    text = words(finished.get("/budget?epsilon=3&delta=1e-6").text)
    assert "The policy refuses this fit" in text and "would satisfy every constraint" in text
    assert "Nothing has been charged to" in text
    allowed = words(finished.get("/budget?epsilon=2&delta=1e-6").text)
    assert "The policy allows this fit" in allowed


def test_a_server_that_is_started_again_goes_on(
    finished: Visitor, enter: Callable[..., Visitor]
) -> None:
    again = enter()
    assert "The schema is no draft any more" in again.get("/").text


@pytest.fixture
def made_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("DPSYNTH_LEDGER", str(place))
    monkeypatch.setenv("DPSYNTH_USER", "anna")
    Ledger.create(place)
    yield place
