"""The guides: links lead somewhere, what they quote is what is written, and the site builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "bench").glob("*.md")])
FENCE = re.compile(r"^```.*?^```\s*?$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def named(path: Path) -> str:
    """Say which page a case is about."""
    return path.relative_to(ROOT).as_posix()


# links ------------------------------------------------------------------------------------------


def broken_links(page: Path, text: str) -> list[str]:
    """List the links of a page, as a text, that lead to no file or no heading."""
    found = []
    for one, other in LINK.findall(FENCE.sub("", text)):
        target, _, anchor = (one or other).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = page if not target else page.parent / target
        wrong = not path.exists() or (
            anchor and path.suffix == ".md" and anchor not in anchors(path.read_text())
        )
        if wrong:
            found.append(one or other)
    return found


def anchors(text: str) -> set[str]:
    """Name the headings of a page as code hosts and mkdocs do."""
    headings = re.findall(r"^#{1,6} (.*)$", FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


def test_a_broken_link_is_found() -> None:
    text = "# A heading, here\n[a](nowhere.md) [b](#a-heading-here) [c](privacy.md#nothing)"
    assert broken_links(DOCS / "new.md", text) == [
        "nowhere.md",
        "#a-heading-here",
        "privacy.md#nothing",
    ]
    assert anchors(text) == {"a-heading-here"}


# links to code: the definition that is meant ------------------------------------------------------


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class that follows links to code, for a folder with the packages."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    from doc_links import Links

    return Links


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_to_code_names_a_definition_of_the_file(links: Any, page: Path) -> None:
    """If something moved: `python bench/house.py` finds it and writes the new path."""
    text = page.read_text()
    assert links(ROOT).followed(page, text) == (text, [])


@pytest.fixture
def moved(links: Any, tmp_path: Path) -> Any:
    """A house in which `Plan` and `Plan.spend` have moved, and `judge` stands in two files."""
    for file, text in {
        "dpsynth/privacy/plan.py": "OLD = 1\n",
        "dpsynth/budget/plans.py": "class Plan:\n    def spend(self): ...\n",
        "models/base.py": "def judge(): ...\n",
        "eval/gates.py": "def judge(): ...\nLEVEL = 2\n",
        "dpsynth/errors.py": "",
        "docs/page.md": "",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    return lambda text: links(tmp_path).followed(tmp_path / "docs/page.md", text)


def test_a_link_follows_its_definition_to_another_file(moved: Any) -> None:
    text = "[a plan](../dpsynth/privacy/plan.py#Plan), [plan.py](../dpsynth/privacy/plan.py#Plan)\n"
    text += (
        "[`privacy/plan.py`](../dpsynth/gone.py#Plan.spend) [x](../dpsynth/eval/gates.py#LEVEL)\n"
    )
    text += "[b](https://host.example/plan.py) [c](../dpsynth/errors.py) [d](../bench/gone.py)\n"
    text += "```\n[e](../dpsynth/privacy/plan.py#Plan)\n```\n"
    now, problems = moved(text)
    assert problems == []
    there = "../dpsynth/budget/plans.py"
    assert now.splitlines()[:2] == [
        f"[a plan]({there}#Plan), [plans.py]({there}#Plan)",
        f"[`privacy/plan.py`]({there}#Plan.spend) [x](../dpsynth/eval/gates.py#LEVEL)",
    ]
    assert now.splitlines()[2:] == text.splitlines()[2:]
    assert moved(now) == (now, [])


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("../dpsynth/privacy/plan.py", "name the definition that it means"),
        ("../dpsynth/privacy/plan.py#plan", "does not define plan, and no file defines it"),
        ("../dpsynth/gone.py#judge", "it is in eval/gates.py, models/base.py; correct"),
        ("../dpsynth/budget/plans.py#spend", "no file defines it"),
    ],
)
def test_a_link_that_names_no_definition_or_one_of_several_is_refused(
    moved: Any, link: str, problem: str
) -> None:
    text = f"\nsee [it]({link})\n"
    now, (said,) = moved(text)
    assert now == text and said.startswith(f"docs/page.md:2: [it]({link}): ") and problem in said


# quotations --------------------------------------------------------------------------------


def test_the_paragraph_in_the_guide_is_the_one_that_is_written() -> None:
    """All of it follows from public facts, but the count of audits."""
    from dpsynth.bundle.pages import dpia_paragraph
    from dpsynth.certificate import Certificate, Charge, certify
    from dpsynth.schema import Schema, without_share
    from dpsynth.synthesis import prepare

    schema = without_share(Schema.load("demo"), 0.2)
    plan = prepare(schema, epsilon=3.0, delta=1e-6, model="mixture", publish_quality=None).plan
    charge = Charge(
        id="01234567-89ab-cdef-0123-456789abcdef",
        dataset="ward",
        scope=("ward",),
        entry="e" * 32,
        fits=1,
        epsilon_total=3.0,
        delta_total=1e-6,
        record=4,
        seal="a" * 64,
        policy="b" * 64,
    )
    document = certify(schema, plan, model="mixture", charge=charge)
    paragraph = dpia_paragraph(schema, Certificate.from_dict(document))
    guide = (DOCS / "dpo.md").read_text()
    for part in (paragraph[0], paragraph[1], paragraph[2], paragraph[4]):
        assert f"\n> {part}\n" in guide


# site -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """The module that rewrites links."""
    spec = importlib.util.spec_from_file_location("mkdocs_hooks", ROOT / "mkdocs_hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_to_code_lead_to_the_repository_or_name_the_file(hooks: ModuleType) -> None:
    text = "a [plan](../dpsynth/privacy/plan.py#Plan), [code](../dpsynth/synthesis/run.py) "
    text += "[b](privacy.md)\n"
    text += "```\n[c](../README.md)\n```\n"
    assert hooks.rewritten(text, DOCS, DOCS, None) == text.replace(
        "[plan](../dpsynth/privacy/plan.py#Plan)",
        "`plan.py`{ title='dpsynth/privacy/plan.py#Plan' }",
    ).replace(
        "[code](../dpsynth/synthesis/run.py)", "code `run.py`{ title='dpsynth/synthesis/run.py' }"
    )
    there = hooks.rewritten(text, DOCS, DOCS, "https://host.example/us/dpsynth")
    assert "[plan](https://host.example/us/dpsynth/blob/main/dpsynth/privacy/plan.py#Plan)" in there
    missing = "[x](../dpsynth/nothing.py)"
    assert hooks.rewritten(missing, DOCS, DOCS, None) == missing


class Asked(HTMLParser):
    """What a browser loads by itself on a page."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in ("script", "img", "iframe", "source") and attributes.get("src"):
            self.urls.append(attributes["src"] or "")
        if tag == "link" and attributes.get("rel") != "canonical":
            self.urls.append(attributes.get("href") or "")


@pytest.mark.long
def test_the_site_builds_and_asks_nobody_outside(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: make install-dev")
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        **{"capture_output": True, "text": True, "cwd": ROOT},  # type: ignore[call-overload]
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr  # with --quiet, --strict would count no warning
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))  # and one for a page that is not found
    for page in pages:
        asked = Asked()
        asked.feed(page.read_text())
        assert asked.urls
        assert [url for url in asked.urls if re.match(r"(https?:)?//", url)] == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", sheet.read_text()), sheet
