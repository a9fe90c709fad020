"""The server of an office: one browser, this machine, its own forms; no script, cache or log."""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from dpsynth.errors import InputError, SchemaError
from dpsynth.errors import Problem as Mistake
from dpsynth.office import Gate, hosts_of, listening

from .visitor import HOST, Visitor, words

ORIGIN = {"origin": f"http://{HOST}"}


@dataclass
class Small:
    """A role of three pages and a form."""

    done: int = 0

    @property
    def pages(self) -> dict[str, Any]:
        return {"/": self.home, "/broken": self.broken, "/refused": self.refused}

    @property
    def actions(self) -> dict[str, Any]:
        return {"/do": self.do}

    def home(self, request: Request) -> Response:
        return HTMLResponse("<p>inside</p>")

    def broken(self, request: Request) -> Response:
        raise ValueError("the cell 'Geheim' of patient P17")

    def refused(self, request: Request) -> Response:
        raise SchemaError("x.yaml", [Mistake("fields[0]", "is <b>wrong</b>")])

    def do(self, request: Request, form: Any) -> Response:
        self.done += 1
        return HTMLResponse("<p>done</p>")


@pytest.fixture
def role() -> Small:
    return Small()


@pytest.fixture
def gate() -> Gate:
    return Gate((HOST, "localhost:4711"))


@pytest.fixture
def visitor(role: Small, gate: Gate) -> Visitor:
    return Visitor(role, gate)


def test_the_address_works_once(role: Small, gate: Gate) -> None:
    address = f"/enter?token={gate.token}"
    first = Visitor(role, gate, enter=False)
    assert first.get("/").status_code == 403
    assert first.get("/enter?token=wrong").status_code == 403
    assert first.client.head(address).status_code == 403  # as a preview of a link asks
    entered = first.client.get(address, follow_redirects=False)
    cookie = entered.headers["set-cookie"].lower()
    assert entered.status_code == 303 and entered.headers["location"] == "/"
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/" in cookie
    assert "inside" in first.get("/").text
    again = first.get(address)
    assert again.status_code == 403 and "used already" in again.text
    second = Visitor(role, gate, enter=False)
    assert second.get(address).status_code == 403
    refused = second.get("/")
    assert refused.status_code == 403 and "has not entered" in refused.text
    second.client.cookies.set(gate.cookie, "guessed")
    assert second.get("/").status_code == 403


def test_the_name_of_another_host_is_refused(visitor: Visitor) -> None:
    for host in ("evil.example", "127.0.0.1", "127.0.0.1:80", "localhost:4712", "[::1]:4711", ""):
        answer = visitor.get("/", host=host)
        assert answer.status_code == 403 and "answers at" in answer.text, host
    assert visitor.get("/", host="localhost:4711").status_code == 200


def test_a_form_comes_from_a_page_of_this_office(visitor: Visitor, role: Small) -> None:
    sign = {"sign": visitor.gate.sign}
    for origin in ("http://evil.example", "null", f"https://{HOST}", "http://localhost:4711", ""):
        answer = visitor.post("/do", sign, origin=origin)
        assert answer.status_code == 403 and role.done == 0, origin
    assert visitor.client.post("/do", data=sign).status_code == 403  # without an origin
    for site in ("cross-site", "same-site"):
        assert visitor.post("/do", sign, **{"sec-fetch-site": site}).status_code == 403
        assert visitor.get("/", **{"sec-fetch-site": site}).status_code == 403
    for wrong in ({}, {"sign": ""}, {"sign": "x"}, {"sign": visitor.gate.token or "used"}):
        assert visitor.post("/do", wrong).status_code == 403
    assert role.done == 0
    assert visitor.post("/do", sign).text == "<p>done</p>" and role.done == 1
    assert visitor.post("/do", sign, files={"a": ("b.csv", b"x")}).status_code == 200


def test_a_form_of_the_office_before_it_was_started_again_is_refused(
    visitor: Visitor, role: Small
) -> None:
    other = Gate(visitor.gate.hosts)
    again = Visitor(role, other)
    answer = again.post("/do", {"sign": visitor.gate.sign})
    assert answer.status_code == 403 and "started again" in answer.text and role.done == 0


def test_other_methods_and_bodies_are_refused(visitor: Visitor, role: Small) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        assert visitor.client.request(method, "/", headers=ORIGIN).status_code == 403
    assert visitor.client.head("/").status_code == 200
    assert visitor.get("/do").status_code == 405
    kinds = ("application/json", "text/plain", "multipart/form-data", "multipart/form-data; x")
    for kind in kinds:
        answer = visitor.client.post(
            "/do", content=b'{"sign": "x"}', headers={**ORIGIN, "content-type": kind}
        )
        assert answer.status_code in (400, 403), kind
    large = visitor.post("/do", {"sign": visitor.gate.sign, "x": "x" * (17 * 2**20)})
    assert large.status_code == 400 and "16 MiB" in large.text
    assert role.done == 0


def test_an_upload_gets_into_no_temporary_file(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may upload a table by mistake; nothing of it lies on a disk."""
    rolled: list[object] = []
    monkeypatch.setattr(SpooledTemporaryFile, "rollover", rolled.append)
    large = {"upload": ("x.csv", b"x" * (3 * 2**20))}
    answer = visitor.post("/do", {"sign": visitor.gate.sign}, files=large)
    assert answer.status_code == 200 and rolled == []


def test_every_answer_forbids_scripts_caches_and_frames(visitor: Visitor) -> None:
    stranger = Visitor(Small(), Gate((HOST,)), enter=False)
    answers = [visitor.get(path) for path in ("/", "/broken", "/refused", "/nowhere", "/style.css")]
    answers += [stranger.get("/"), visitor.get("/", host="evil.example")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'") and "script" not in policy
        assert "frame-ancestors 'none'" in policy and "form-action 'self'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "server" not in answer.headers and "<script" not in answer.text


def test_an_error_is_a_sentence(
    visitor: Visitor, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    broken = visitor.get("/broken")
    assert broken.status_code == 500 and "unexpected ValueError at test_server.py" in broken.text
    assert "Geheim" not in broken.text and "Traceback" not in broken.text
    refused = visitor.get("/refused")
    assert refused.status_code == 400 and "fields[0]: is &lt;b&gt;wrong" in refused.text
    assert words(visitor.get("/nowhere").text).count("There is no such page.") == 1
    out, err = capfd.readouterr()
    assert "Geheim" not in out + err + caplog.text


def test_only_this_machine_is_listened_to() -> None:
    with listening(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        first, second = hosts_of(listener)
        assert first.startswith("127.0.0.1:") and second.startswith("localhost:")
        with pytest.raises(InputError, match="is taken; choose another"):
            listening(listener.getsockname()[1])
