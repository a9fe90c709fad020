"""Both offices in a browser: from a messy workbook to a signed bundle, and what an attacker tries.

Each page is looked at as axe does, at 1,000 pixels and at 500, which is the same at 200 % zoom.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dpsynth.bundle import verify
from dpsynth.bundle.format import create_key
from dpsynth.ledger import Ledger
from dpsynth.tables import simulate

from ..support.workflow_office import small_schema

pytestmark = pytest.mark.long

QUICK = Path(__file__).with_name("quick_dpsynth.py")
LAUNCH = (
    "import sys; from dpsynth.cli import main; from dpsynth.office import job; "
    "job.PROGRAM = (sys.executable, {quick!r}); main({line!r})"
)
HEADINGS = ("Patientennummer", "Alter", "Geschlecht", "Raucher", "Station")
SECRET = "Geheimnis-4711"


class Office:
    """A command that serves an office, and the address that it printed."""

    def __init__(self, *line: object) -> None:
        program = LAUNCH.format(quick=str(QUICK), line=["office", *map(str, line)])
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r"http\S+", self.process.stdout.readline())
        assert found is not None
        self.address = found.group()
        self.base = self.address.partition("/enter")[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Office]]:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("DPSYNTH_USER", "anna")
    Ledger.create(tmp_path / "ledger.sqlite")
    offices: list[Office] = []

    def begin(*line: object) -> Office:
        offices.append(Office(*line))
        return offices[-1]

    yield begin
    for office in offices:
        office.kill()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1000, "height": 800}, accept_downloads=True)
    page = context.new_page()
    page.dialogs = []
    page.on("dialog", lambda dialog: (page.dialogs.append(dialog.message), dialog.dismiss()))
    yield page
    assert page.dialogs == []
    context.close()


def look(page: Any) -> None:
    """No violation of accessibility, one main heading, nothing beyond the edge."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], page.url
    assert page.locator("h1").count() == 1, page.url
    for width in (500, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (page.url, width)


def show(page: Any, office: Office, path: str) -> None:
    page.goto(office.base + path)
    look(page)


def press(page: Any, name: str) -> None:
    """Press a button by the keyboard."""
    page.get_by_role("button", name=name, exact=True).focus()
    with page.expect_navigation():
        page.keyboard.press("Enter")


def ended(page: Any, office: Office, path: str, limit: float = 300) -> str:
    end = time.monotonic() + limit
    page.goto(office.base + path)
    while "is at work" in page.inner_text("main"):
        assert time.monotonic() < end
        time.sleep(0.5)
        page.goto(office.base + path)
    look(page)
    return str(page.inner_text("main"))


def workbook(path: Path, *, title: bool) -> Path:
    """Write an extract as an office gets it: with a title line, and German headings."""
    import openpyxl

    table = simulate(60, seed=1)
    book = openpyxl.Workbook()
    sheet = book.active
    if title:
        sheet.append([f"Auszug Station 3, {SECRET}"])
        sheet.append([])
    sheet.append(HEADINGS)
    for row in table[["patient_id", "age", "sex", "smoker", "ward"]].itertuples(index=False):
        smoker = "" if row.smoker != row.smoker else "ja" if row.smoker else "nein"
        sheet.append([row.patient_id, int(row.age), str(row.sex), smoker, str(row.ward)])
    book.save(path)
    return path


def test_from_a_messy_workbook_to_a_signed_bundle(
    start: Callable[..., Office], page: Any, tmp_path: Path
) -> None:
    messy = workbook(tmp_path / "Auszug März.xlsx", title=True)
    clean = workbook(tmp_path / "Auszug.xlsx", title=False)
    wards = sorted(set(simulate(60, seed=1)["ward"].astype(str)))
    sexes = sorted(set(simulate(60, seed=1)["sex"].astype(str)))
    folder = tmp_path / "release"
    office = start("prepare", folder, "--header", messy)
    page.goto(office.address)
    look(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    show(page, office, "/draft")
    press(page, "Make the draft")
    look(page)
    assert "2 lines above the headings" in page.inner_text("main")

    show(page, office, "/columns")
    names = page.locator("tbody th a").all_inner_texts()
    assert names == list(HEADINGS)

    def column(name: str, **fields: str) -> None:
        page.goto(f"{office.base}/columns")
        page.get_by_role("link", name=name, exact=True).click()
        look(page)
        for field, text in fields.items():
            place = page.locator(f"[name='{field.replace('__', '.')}']")
            if place.first.get_attribute("type") == "checkbox":
                page.locator(f"[name='{field.replace('__', '.')}'][value='{text}']").check()
            elif place.evaluate("one => one.tagName") == "SELECT":
                place.select_option(text)
            else:
                place.fill(text)
        waiting = page.locator("[name='dpsynth.role'][value='TODO']")
        if waiting.count():
            waiting.uncheck()
        press(page, "Save")
        assert page.url.startswith(f"{office.base}/columns"), page.inner_text("main")

    column("Patientennummer", dpsynth__role="unit")
    basis = {"dpsynth__bounds_basis": "Aufnahmeformular"}
    age = {"type": "integer", "constraints__minimum": "0", "constraints__maximum": "110"}
    column("Alter", **age, **basis)
    column("Geschlecht", type="string", constraints__enum="\n".join(sexes), **basis)
    column("Raucher", type="boolean", trueValues="ja", falseValues="nein", **basis)
    column("Station", type="string", constraints__enum="\n".join(wards), **basis)
    page.goto(f"{office.base}/columns?state=proposed")
    if page.locator("#by").count():
        page.fill("#by", "A. Nyqvist")
        page.locator("button[name=all]").click()
    show(page, office, "/tables")
    page.get_by_role("link", name="Change: The table").click()
    look(page)
    sizes = (("population", "100"), ("rows", "300"), ("max_rows", "4"))
    for name, value in sizes:
        page.fill(f"[name='{name}.value']", value)
        page.fill(f"[name='{name}.basis']", "annual report 2025")
    press(page, "Save")
    show(page, office, "/finish")
    press(page, "The schema is finished")
    assert "is finished" in page.inner_text("main")
    show(page, office, "/settings")
    for name, text in (("dataset", "ward"), ("output", "bundle"), ("holdout", "0.4")):
        page.fill(f"[name='{name}']", text)
    page.select_option("[name=model]", "independent")
    press(page, "Save")
    show(page, office, "/budget?epsilon=3&delta=1e-6")
    assert "3 (shown below)" in page.inner_text("main")
    press(page, "Write epsilon 3 into dpsynth.yaml")
    look(page)
    assert "Give this folder" in page.inner_text("main")
    office.kill()
    for path in folder.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_text(errors="replace")

    office = start("run", folder)
    page.goto(office.address)
    look(page)
    show(page, office, "/check")
    page.fill("#data", str(messy))
    press(page, "Check")
    assert "could not be made" in ended(page, office, "/check")
    page.fill("#data", str(clean))
    press(page, "Check")
    assert "Go on to the run" in ended(page, office, "/check")
    show(page, office, "/run")
    press(page, "Run")
    look(page)
    assert "exit code 0" in ended(page, office, "/run")
    show(page, office, "/review")
    assert "Internal page" in page.frame_locator("iframe").locator("h1").inner_text()
    show(page, office, "/release")
    page.fill("#name", "Ben")
    page.locator("form[action='/sign-off'] [name=read]").check()
    press(page, "Sign off")
    assert "Signed by Ben" in page.inner_text("main")
    _, public = create_key(tmp_path / "office.key", "correct horse")
    page.fill("#key", str(tmp_path / "office.key"))
    page.fill("#passphrase", "correct horse")
    page.locator("form[action='/sign'] [name=read]").check()
    press(page, "Sign the bundle")
    look(page)
    page.fill("#public", str(public))
    press(page, "Verify the bundle")
    assert "The bundle verifies" in page.inner_text("main")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the bundle").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        archive.extractall(tmp_path / "received")
    verify(tmp_path / "received" / "bundle", key=public)
    show(page, office, "/")


@pytest.fixture
def evil() -> Iterator[str]:
    """A page of another origin on this machine."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><title>evil</title><h1>evil</h1>")

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


SUBMIT = """([address, fields]) => {
    const form = document.createElement('form');
    form.method = 'post'; form.action = address;
    for (const [name, value] of Object.entries(fields)) {
        const input = document.createElement('input');
        input.name = name; input.value = value; form.append(input);
    }
    document.body.append(form); form.submit();
}"""


def test_what_an_attacker_tries(
    start: Callable[..., Office], page: Any, browser: Any, evil: str, tmp_path: Path
) -> None:
    folder = tmp_path / "release"
    attack = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    (tmp_path / "d.csv").write_text(
        f'Feldname;Bezeichnung;Datentyp;Min;Max\nalter;"{attack}";Ganzzahl;0;110\n'
        f'"a"" onmouseover=""alert(3)";x;Text;;\n'
    )
    office = start("prepare", folder, "--dictionary", tmp_path / "d.csv")
    page.goto(office.address)
    page.goto(office.base + "/draft")
    press(page, "Make the draft")
    for path in ("/", "/columns", "/column?at=fields%2F0", "/column?at=fields%2F1"):
        show(page, office, path)
    assert page.locator("img, script").count() == 0
    before = next(folder.glob("*.schema.yaml")).read_text()

    # a page of another origin, in the same browser, with the cookie of the office
    other = page.context.new_page()
    sign = page.locator("[name=sign]").first.get_attribute("value")
    for name in ("127.0.0.1", "localhost"):
        address = office.base.replace("127.0.0.1", name) + "/confirm"
        other.goto(evil)
        with other.expect_navigation():
            other.evaluate(SUBMIT, [address, {"sign": sign, "all": "1", "by": "evil"}])
        assert "another page" in other.inner_text("main"), other.content()
    other.goto(evil)
    read = other.evaluate(
        "address => fetch(address, {credentials: 'include'}).then(r => r.text(), e => 'refused')",
        office.base + "/columns",
    )
    assert read == "refused"
    framed = other.evaluate(
        """address => new Promise(done => {
            const frame = document.createElement('iframe'); frame.src = address;
            frame.onload = () => done(frame.contentDocument === null);
            document.body.append(frame);
        })""",
        office.base + "/",
    )
    assert framed
    assert next(folder.glob("*.schema.yaml")).read_text() == before

    # the printed address again, and a second browser
    second = browser.new_context().new_page()
    for address in (office.address, office.base + "/", office.base + "/columns"):
        answer = second.goto(address)
        assert answer.status == 403
    assert page.goto(office.address).status == 403
    assert page.goto(office.base + "/columns").status == 200  # who has entered stays

    # two tabs
    first, tab = page, page.context.new_page()
    for one in (first, tab):
        one.goto(office.base + "/column?at=fields%2F0")
    first.fill("[name=title]", "first")
    press(first, "Save")
    tab.fill("[name=title]", "second")
    press(tab, "Save")
    assert "in another tab" in tab.inner_text("main")
    assert tab.input_value("[name=title]") == "second"
    look(tab)
    assert "title: first" in next(folder.glob("*.schema.yaml")).read_text()

    # the office is started again: the old session and the old forms are worth nothing
    office.kill()
    office = start("prepare", folder, "--port", office.base.rpartition(":")[2])
    assert page.goto(office.base + "/columns").status == 403
    old_sign = tab.evaluate("() => document.querySelector('[name=sign]').value")
    page.goto(office.address)
    with page.expect_navigation():
        page.evaluate(SUBMIT, [office.base + "/confirm", {"sign": old_sign, "all": "1", "by": "x"}])
    assert "started again" in page.inner_text("main")


def test_the_office_is_killed_in_a_fit(
    start: Callable[..., Office], page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, hold = tmp_path / "release", tmp_path / "go-on"
    folder.mkdir()
    small_schema(folder / "small.schema.yaml")
    (folder / "dpsynth.yaml").write_text(
        "dpsynth_run: 1\nschema: small.schema.yaml\ndataset: demo\nepsilon: 3\ndelta: 1.0e-6\n"
        "output: bundle\nmodel: independent\nholdout: 0.4\nrows: 200\ncanaries: 60\n"
    )
    simulate(60, seed=1).to_csv(tmp_path / "cohort.csv", index=False)
    monkeypatch.setenv("QUICK_WAIT", str(hold))
    office = start("run", folder, "--data", tmp_path / "cohort.csv")
    page.goto(office.address)
    show(page, office, "/run")
    press(page, "Run")
    end = time.monotonic() + 120
    while not Path(f"{hold}.reached").exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    os.kill(office.process.pid, signal.SIGKILL)
    office.process.wait()
    office = start("run", folder)
    page.goto(office.address)
    page.goto(office.base + "/run")
    assert "The run is at work" in page.inner_text("main")
    assert page.get_by_role("button", name="Run").count() == 0
    hold.touch()
    assert "exit code 0" in ended(page, office, "/run")
    assert len(Ledger.default().entries()) == 1
