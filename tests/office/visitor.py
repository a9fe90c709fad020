"""A browser that visits an office in tests: it enters, follows redirects, and fills in forms."""

from __future__ import annotations

import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

with warnings.catch_warnings():  # it asks for a library that is httpx under another name
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

from dpsynth.office import Gate, application

HOST = "127.0.0.1:4711"


class _Forms(HTMLParser):
    """Collects the forms of a page with what stands in their fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, Any]] = []
        self._area: str | None = None
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            form = {"action": given.get("action", ""), "method": given.get("method", "get")}
            self.forms.append({**form, "fields": {}})
        if not self.forms:
            return
        fields = self.forms[-1]["fields"]
        if tag == "input" and given.get("type") in ("checkbox", "radio"):
            if "checked" in given:
                fields.setdefault(given["name"], []).append(given["value"])
        elif tag == "input" and given.get("type") != "file":
            fields[given["name"]] = [given.get("value", "")]
        elif tag == "textarea":
            self._area = given["name"]
            fields[self._area] = [""]
        elif tag == "select":
            self._select = given["name"]
            fields[self._select] = [""]
        elif tag == "option" and self._select and "selected" in given:
            fields[self._select] = [given["value"]]

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None
        if tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.forms[-1]["fields"][self._area][0] += data


class Visitor:
    """One browser; a test may say which folder it is about."""

    folder: Path

    def __init__(self, role: Any, gate: Gate, *, enter: bool = True) -> None:
        self.gate = gate
        self.client = TestClient(
            application(gate, role.pages, role.actions),
            base_url=f"http://{gate.hosts[0]}",
            raise_server_exceptions=False,
        )
        self.seen: list[str] = []
        if enter:
            assert self.get(f"/enter?token={gate.token}").status_code == 200

    def get(self, path: str, **headers: str) -> Any:
        answer = self.client.get(path, headers=headers)
        self.seen.append(answer.text)
        return answer

    def post(self, path: str, data: dict[str, Any], *, files: Any = None, **headers: str) -> Any:
        origin = {"origin": f"http://{self.gate.hosts[0]}"} | headers
        answer = self.client.post(path, data=data, files=files, headers=origin)
        self.seen.append(answer.text)
        return answer

    def forms(self, path: str) -> list[dict[str, Any]]:
        parser = _Forms()
        answer = self.get(path)
        assert answer.status_code == 200, answer.text
        parser.feed(answer.text)
        return parser.forms

    def fill(self, page: str, action: str, **changes: Any) -> Any:
        """Send a form of a page as it stands, with changes; ``__`` in a name is a dot."""
        path = action.split("?")[0]
        forms = (one for one in self.forms(page) if one["method"] == "post")
        form = next(one for one in forms if one["action"].split("?")[0] == path)
        data = form["fields"] | {name.replace("__", "."): value for name, value in changes.items()}
        return self.post(form["action"], {name: value for name, value in data.items() if value})


def words(text: str) -> str:
    """Return the text of a page without its tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())
