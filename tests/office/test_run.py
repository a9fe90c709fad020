"""Who may see rows runs a release by forms: check, run, review, sign off, sign, download."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsynth.bundle import verify
from dpsynth.bundle.format import create_key
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger, adopt
from dpsynth.office import Gate, Run, job
from dpsynth.policy import Policy
from dpsynth.tables import simulate

from ..support.clinic import clinic_schema, write_clinic
from ..support.workflow_office import small_schema
from .visitor import HOST, Visitor, words

QUICK = Path(__file__).with_name("quick_dpsynth.py")
PAGES = ("/", "/check", "/run", "/review", "/release")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return prepared(tmp_path, monkeypatch)


def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that was prepared, with a table elsewhere and a ledger of its own."""
    place = tmp_path / "release"
    place.mkdir()
    small_schema(place / "small.schema.yaml")
    settings = {
        "dpsynth_run": 1,
        "schema": "small.schema.yaml",
        "dataset": "demo",
        "epsilon": 3.0,
        "delta": 1e-6,
        "output": "bundle",
        "model": "independent",
        "holdout": 0.4,
        "rows": 200,
        "canaries": 60,
    }
    (place / "dpsynth.yaml").write_text(yaml.safe_dump(settings))
    simulate(60, seed=1).to_csv(tmp_path / "cohort.csv", index=False)
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    monkeypatch.setenv("DPSYNTH_USER", "anna")
    monkeypatch.setattr(job, "PROGRAM", (sys.executable, str(QUICK)))
    Ledger.create(tmp_path / "ledger.sqlite")
    return place


@pytest.fixture
def enter(folder: Path) -> Callable[..., Visitor]:
    def visit(**options: Any) -> Visitor:
        role = Run.of(folder, Gate((HOST,)), **options)
        return Visitor(role, role.office.gate)

    return visit


def finished(visitor: Visitor, page: str, limit: float = 120) -> str:
    """Show a page again until nothing is at work."""
    end = time.monotonic() + limit
    while "is at work" in (answer := visitor.get(f"{page}?follow=1")).text:
        assert answer.headers["refresh"] == "3" and time.monotonic() < end
        time.sleep(0.2)
    assert "refresh" not in answer.headers
    return str(answer.text)


def check(visitor: Visitor, data: Path) -> str:
    started = visitor.fill("/check", "/check", data=str(data))
    assert started.status_code == 200, words(started.text)
    return finished(visitor, "/check")


def run(visitor: Visitor, **changes: Any) -> str:
    sign = {"sign": visitor.gate.sign} | changes
    started = visitor.post("/run", sign)
    assert started.status_code == 200, words(started.text)
    return finished(visitor, "/run")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """An office whose run has ended well."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("done")
        role = Run.of(prepared(place, patch), Gate((HOST,)), str(place / "cohort.csv"))
        visitor = Visitor(role, role.office.gate)
        assert "exit code 0" in run(visitor)
        visitor.folder = role.office.folder
        yield visitor


# the whole way -----------------------------------------------------------------------------------


def test_from_a_table_to_a_signed_bundle(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    policy = {"dpsynth_policy": 1, "name": "Office", "delta": 1e-5, "sign_off": {"people": 1}}
    policy |= {"caps": {"release": {"epsilon": 3, "basis": "board"}}}
    adopt(Ledger.default(), Policy.from_dict(policy, "policy"))
    visitor = enter()
    assert "Go on to the run" in check(visitor, tmp_path / "cohort.csv")
    text = run(visitor)
    assert "refused by the budget or the policy" in text and "requires 1 more person" in text
    assert not (folder / "bundle").exists()
    sign = {"sign": visitor.gate.sign}
    unread = visitor.post("/sign-off", sign | {"name": "ben"})
    assert unread.status_code == 400 and "mark that you have read" in unread.text
    same = visitor.post("/sign-off", sign | {"name": "anna", "read": "yes"})
    assert same.status_code == 400 and "another person must sign" in same.text
    other = visitor.post("/sign-off", sign | {"name": "ben", "note": "board", "read": "yes"})
    assert other.status_code == 200 and "Signed by <bdi>ben</bdi>" in other.text
    assert "exit code 0" in run(visitor)
    [entry] = Ledger.default().entries()
    assert entry.releases and [one.who for one in entry.signatures] == ["ben"]

    review = visitor.get("/review")
    assert '<iframe src="/internal.html" sandbox' in review.text
    assert "frame-src 'self'" in review.headers["content-security-policy"]
    frame = visitor.get("/internal.html")
    assert "Internal page" in frame.text and "sandbox" in frame.headers["content-security-policy"]
    assert "script-src" not in frame.headers["content-security-policy"]

    private, public = create_key(tmp_path / "office.key", "correct horse")
    wrong = visitor.fill("/release", "/sign", key=str(private), passphrase="x", read="yes")
    assert wrong.status_code == 400 and not (folder / "bundle/datapackage.json.sig").exists()
    no_key = visitor.fill("/release", "/sign", read="yes")
    assert no_key.status_code == 400 and "private key" in no_key.text
    given = {"key": str(private), "passphrase": "correct horse", "read": "yes"}
    signed = visitor.fill("/release", "/sign", **given)
    assert signed.status_code == 200 and "The bundle is signed" in signed.text
    again = visitor.post("/sign", sign | given)
    assert again.status_code == 400 and "already signed" in again.text
    verified = visitor.fill("/release", "/verify", key=str(public))
    assert "The bundle verifies" in verified.text
    archive = visitor.client.get("/bundle.zip")
    assert archive.headers["content-disposition"] == 'attachment; filename="bundle.zip"'
    with zipfile.ZipFile(io.BytesIO(archive.content)) as zipped:
        zipped.extractall(tmp_path / "received")
    verify(tmp_path / "received" / "bundle", key=public)
    assert "correct horse" not in "".join(
        path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()
    )


def test_the_files_of_this_role_are_private(done: Visitor) -> None:
    folder = done.folder
    private = folder / "bundle.office"
    assert private.stat().st_mode & 0o777 == 0o700
    names = {path.name for path in private.iterdir()}
    assert {"office.json", "run.json", "run.out", "run.err", "run.end"} <= names
    assert all(path.stat().st_mode & 0o077 == 0 for path in private.iterdir())
    assert "cohort.csv" not in (folder / "dpsynth.yaml").read_text()


# the check ---------------------------------------------------------------------------------------


def test_serious_findings_are_shown_and_accepted(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    table = simulate(60, seed=1)
    table["age"] = table["age"].astype(object)
    table.loc[: len(table) // 2, "age"] = "Geheim-alt"
    table.to_csv(tmp_path / "bad.csv", index=False)
    visitor = enter()
    text = check(visitor, tmp_path / "bad.csv")
    assert "age" in text and "serious" in text and "age:unreadable" in text
    assert "Geheim-alt" not in text and "--accept" in text
    stopped = run(visitor)
    assert "stopped by a gate" in stopped and "age:unreadable" in stopped
    assert Ledger.default().entries() == []
    visitor.fill("/check", "/accept", accept=["age:unreadable", "made:up"])
    document = json.loads((folder / "bundle.office" / "office.json").read_text())
    assert document["accept"] == ["age:unreadable"]
    assert "--accept age:unreadable" in words(visitor.get("/run").text)
    (folder / "small.schema.yaml").write_text(
        (folder / "small.schema.yaml").read_text() + "# a change\n"
    )
    assert "was changed since this check" in visitor.get("/check").text


def test_a_table_that_cannot_be_read_is_a_sentence(
    enter: Callable[..., Visitor], tmp_path: Path
) -> None:
    visitor = enter()
    empty = visitor.post("/check", {"sign": visitor.gate.sign})
    assert empty.status_code == 400 and "name the table" in empty.text
    text = check(visitor, tmp_path / "nowhere.csv")
    assert "could not be made" in text and "nowhere.csv" in text
    passwords = visitor.post(
        "/check", {"sign": visitor.gate.sign, "data": "postgresql://u:geheim@h/db#t"}
    )
    assert passwords.status_code == 400 and "geheim" not in words(passwords.text).split("Table")[0]


def test_linked_tables_are_checked(
    enter: Callable[..., Visitor], folder: Path, tmp_path: Path
) -> None:
    clinic_schema().save(folder / "clinic.package.yaml")
    (folder / "small.schema.yaml").unlink()
    settings = (folder / "dpsynth.yaml").read_text()
    settings = settings.replace("small.schema.yaml", "clinic.package.yaml")
    settings = settings.replace("model: independent", "model: auto")
    (folder / "dpsynth.yaml").write_text(settings)
    visitor = enter()
    text = check(visitor, write_clinic(tmp_path / "clinic"))
    assert "visits.date" in text and "Go on to the run" in text
    plan = visitor.get("/run")
    assert plan.status_code == 200 and "latent" in plan.text


def test_nothing_is_run_before_the_table_is_named(enter: Callable[..., Visitor]) -> None:
    visitor = enter()
    for page in ("/run", "/review", "/release", "/internal.html", "/bundle.zip"):
        answer = visitor.get(page)
        assert answer.status_code == 400 and "name the table first" in answer.text, page
    answer = visitor.post("/run", {"sign": visitor.gate.sign})
    assert answer.status_code == 400
    assert visitor.get("/").status_code == 200


def test_a_folder_that_was_not_prepared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no dpsynth.yaml"):
        Run.of(tmp_path, Gate((HOST,)))
    (tmp_path / "dpsynth.yaml").write_text("dpsynth_run: 1\nepsilon: x\n")
    with pytest.raises(InputError, match="epsilon: a number"):
        Run.of(tmp_path, Gate((HOST,)))


def test_a_private_folder_that_somebody_else_laid_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "watched").mkdir()
    (folder / "bundle.office").symlink_to(tmp_path / "watched")
    with pytest.raises(InputError, match="was made by somebody else, or is a link"):
        Run.of(folder, Gate((HOST,)), "cohort.csv")
    assert list((tmp_path / "watched").iterdir()) == []


# the run -----------------------------------------------------------------------------------------


def test_a_run_outlives_the_office_and_is_charged_once(
    enter: Callable[..., Visitor],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold = tmp_path / "go-on"
    monkeypatch.setenv("QUICK_WAIT", str(hold))
    visitor = enter(data=str(tmp_path / "cohort.csv"))
    sign = {"sign": visitor.gate.sign}
    assert visitor.post("/run", sign).status_code == 200
    end = time.monotonic() + 60
    while not Path(f"{hold}.reached").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    twice = visitor.post("/run", sign)  # a second tab, or a repeated form
    assert twice.status_code == 400 and "at work already" in twice.text
    again = enter()  # an office that was killed and started again
    page = again.get("/run").text
    assert "The run is at work" in page and "the run goes on" in page
    assert again.post("/run", {"sign": again.gate.sign}).status_code == 400
    hold.touch()
    assert "exit code 0" in finished(again, "/run")
    assert len(Ledger.default().entries()) == 1


def test_a_run_that_was_killed_says_so_and_is_not_charged_again(
    enter: Callable[..., Visitor],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hold = tmp_path / "go-on"
    monkeypatch.setenv("QUICK_WAIT", str(hold))
    visitor = enter(data=str(tmp_path / "cohort.csv"))
    visitor.post("/run", {"sign": visitor.gate.sign})
    end = time.monotonic() + 60
    while not Path(f"{hold}.reached").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    for group in groups_of(folder / "bundle.office" / "run.lock"):
        os.killpg(group, signal.SIGKILL)
    monkeypatch.delenv("QUICK_WAIT")
    time.sleep(0.3)
    assert "ended without a word" in visitor.get("/run").text
    assert "exit code 0" in run(visitor)  # the fit's run was there, so nothing is fitted again
    assert len(Ledger.default().entries()) == 1


def groups_of(lock: Path) -> set[int]:
    """Find the process groups that have a file open."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(place) == str(lock.resolve()):
                found.add(os.getpgid(int(place.parts[2])))
        except OSError:
            continue
    assert found
    return found


def test_a_field_is_one_line(done: Visitor) -> None:
    sign = {"sign": done.gate.sign, "read": "yes"}
    for path, name in (("/sign-off", "name"), ("/check", "data"), ("/sign", "key"), ("/run", "by")):
        for text in ("a\0b", "a\nb", "\u202eb"):
            answer = done.post(path, sign | {name: text})
            assert answer.status_code == 400 and "cannot have" in answer.text, path


def test_an_override_needs_a_reason_and_a_name(done: Visitor) -> None:
    for given in ({}, {"override": "why"}, {"by": "ben"}):
        answer = done.post("/run", {"sign": done.gate.sign, "overriding": "1", **given})
        assert answer.status_code == 400 and "both a reason and the name" in answer.text


def test_pages_of_a_finished_run(done: Visitor) -> None:
    assert "A bundle was written" in done.get("/").text
    for page in PAGES:
        answer = done.get(page)
        assert answer.status_code == 200, words(answer.text)
    data = next((done.folder / "bundle" / "data").glob("*.csv"))
    data.write_text(data.read_text() + "x\n")
    broken = done.get("/bundle.zip")
    assert broken.status_code == 400 and "verification failed" in broken.text
