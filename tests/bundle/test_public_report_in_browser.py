"""report.html in a browser: quiet, alone, readable on a phone, usable by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import release
from dpsynth.bundle.format import append_audit

from ..support.public_audit_example import public_audit

pytestmark = pytest.mark.long


@pytest.fixture
def audited(run_folder: Path, tmp_path: Path) -> Path:
    """A bundle with two audits."""
    for audit in (public_audit(7), public_audit(8)):
        append_audit(run_folder, audit)
    return release(run_folder, tmp_path / "audited", size=300, seed=7)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_opens_quietly_and_fits(
    browser: Any, bundle: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 740}, color_scheme=scheme, java_script_enabled=True
    )
    page = context.new_page()
    messages: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    address = (bundle / "report.html").as_uri()
    page.goto(address)
    for details in page.query_selector_all("details > summary"):
        details.click()
    assert page.locator("details[open]").count() == page.locator("details").count() > 5
    widest = "document.documentElement.scrollWidth"
    assert page.evaluate(widest) <= width
    assert messages == []
    assert asked == [address]
    context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_audits_open_quietly_and_fit(browser: Any, audited: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 740})
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.goto((audited / "report.html").as_uri())
    section = page.get_by_role("region", name="Attacks before the release")
    assert section.count() == 1
    assert section.get_by_role("img", name="Epsilon that each attacker proved").count() == 2
    whole = section.bounding_box()
    for one in section.locator("svg, svg text, table, li").all():
        place = one.bounding_box()
        assert place["x"] + place["width"] <= whole["x"] + whole["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert messages == []
    page.close()


def test_the_text_can_be_reached_by_keyboard(browser: Any, bundle: Path) -> None:
    page = browser.new_page()
    page.goto((bundle / "report.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the text"
    page.keyboard.press("Enter")
    page.wait_for_url("**#privacy")
    page.close()


def test_pictures_are_named_and_sections_are_landmarks(browser: Any, bundle: Path) -> None:
    page = browser.new_page()
    page.goto((bundle / "report.html").as_uri())
    assert page.get_by_role("img", name="A hundred squares").count() == 3
    assert page.get_by_role("region", name="What this means for a patient").count() == 1
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("img").count() == page.locator("svg").count()
    page.close()


def test_a_printed_page_keeps_what_matters(browser: Any, bundle: Path) -> None:
    page = browser.new_page()
    page.goto((bundle / "report.html").as_uri())
    page.emulate_media(media="print")
    assert page.get_by_text("Do not compute standard errors").is_visible()
    assert not page.locator("nav").is_visible()
    page.close()
