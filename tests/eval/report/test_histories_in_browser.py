"""The pages on histories in a browser: all drawn, no complaint, nothing asked, no wide page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpsynth.eval.longitudinal import evaluate_histories
from dpsynth.eval.report import longitudinal_page

from ...support.history_cohorts import codec, cohort

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason="neither chromium nor google-chrome is here"),
]
OPEN = "document.querySelectorAll('details:not(.alternative)').forEach(d => d.open = true)"
DRAWN = (
    "[...document.querySelectorAll('[data-figure]')].map(b => !!b.querySelector('svg.main-svg'))"
)
WIDE = "[document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages")
    found = evaluate_histories(codec(), cohort(300, 3), cohort(300, 1), cohort(300, 2))
    for audience in ("internal", "public"):
        page = longitudinal_page(found, audience=audience)  # type: ignore[arg-type]
        (place / f"{audience}.html").write_text(page, encoding="utf-8")
    return place


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("audience", ["internal", "public"])
def test_a_page_draws_all_and_asks_for_nothing(
    browser: Any, folder: Path, audience: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((folder / f"{audience}.html").as_uri())
    page.evaluate(OPEN)
    place, height = 0, 1
    while place < height:
        page.evaluate(f"scrollTo(0, {place})")
        page.wait_for_timeout(200)
        height = page.evaluate("document.documentElement.scrollHeight")
        place += 800
    page.wait_for_timeout(500)
    drawn = page.evaluate(DRAWN)
    assert len(drawn) > 5 and all(drawn)
    whole, seen = page.evaluate(WIDE)
    assert whole <= seen
    assert not complaints and requests == [(folder / f"{audience}.html").as_uri()]
    page.close()
