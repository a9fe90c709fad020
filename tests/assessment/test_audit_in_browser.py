"""The audit in a browser: drawn, quiet, fit for any screen, readable in light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.eval.report import internal_page

from ..eval.report.test_report_in_browser import DRAWN, WIDE, Visit
from ..support import audit_example, evaluation_example

pytestmark = pytest.mark.long
PAGES = ("alone", "both", "failed", "hostile")
READABLE = 4.5  # contrast of text, WCAG 2.2, success criterion 1.4.3

# The contrast of a text with the colour that is painted behind it.
CONTRAST = """selector => {
  const channels = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = colour => {
    const parts = channels(colour).slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = place => {
    for (; place; place = place.parentElement) {
      const colour = getComputedStyle(place).backgroundColor;
      const parts = channels(colour);
      if (parts.length < 4 || parts[3] > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll(selector)].map(place => {
    const [a, b] = [getComputedStyle(place).color, behind(place)].map(luminance);
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages")
    pages = {
        "alone": internal_page(None, audit_example.audit()),
        "both": internal_page(evaluation_example.document(), audit_example.found()),
        "failed": internal_page(None, audit_example.failed()),
        "hostile": internal_page(evaluation_example.hostile(), audit_example.hostile()),
    }
    for name, text in pages.items():
        (place / f"{name}.html").write_text(text, encoding="utf-8")
    return place


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_is_drawn_without_a_complaint(browser: Any, folder: Path, name: str) -> None:
    with Visit(browser, folder / f"{name}.html") as visit:
        visit.page.click("#open-all")
        visit.scroll()
        drawn = visit.page.evaluate(DRAWN)
        assert len(drawn) >= 8 and all(drawn)
        assert visit.quiet(), (visit.complaints, visit.requests)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_no_screen_scrolls_sideways(browser: Any, folder: Path, name: str, width: int) -> None:
    with Visit(browser, folder / f"{name}.html", width=width) as visit:
        visit.page.click("#open-all")
        for fold in visit.page.query_selector_all("details.more > summary"):
            fold.click()
        visit.scroll()
        full, seen = visit.page.evaluate(WIDE)
        assert full <= seen == width


def test_the_answer_is_on_the_first_screen_before_any_figure(browser: Any, folder: Path) -> None:
    for name, width in (("both", 1280), ("failed", 1280), ("failed", 390)):
        with Visit(browser, folder / f"{name}.html", width=width) as visit:
            box = visit.page.query_selector("#answer-title").bounding_box()
            assert box["y"] + box["height"] < 800


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_warnings_can_be_read_in_light_and_dark(browser: Any, folder: Path, scheme: str) -> None:
    wanted = {
        "failed": (".alarm p", "#controls .word.bad", "#controls td", ".lines th"),
        "both": (".verdict.bad", ".box.warning", "#audit .word.bad", "tr.marked td", ".references"),
    }
    for name, places in wanted.items():
        with Visit(browser, folder / f"{name}.html", color_scheme=scheme) as visit:
            visit.page.click("#open-all")
            for place in places:
                document = visit.page.evaluate(CONTRAST, place)
                assert document and min(document) >= READABLE, (name, place)


def test_pictures_of_the_audit_follow_the_colours_of_the_screen(browser: Any, folder: Path) -> None:
    line = "getComputedStyle(document.querySelector('#audit .scatterlayer .js-line')).stroke"
    seen = []
    with Visit(browser, folder / "both.html", color_scheme="light") as visit:
        visit.page.locator("#audit [data-figure]").scroll_into_view_if_needed()
        visit.page.wait_for_selector("#audit svg.main-svg")
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.wait_for_timeout(200)
            seen.append(visit.page.evaluate(line))
        assert len(set(seen)) == 2
        assert visit.quiet()


def test_a_phone_shows_each_cell_under_the_name_of_its_column(browser: Any, folder: Path) -> None:
    named = "getComputedStyle(document.querySelector('#audit td'), '::before').content"
    with Visit(browser, folder / "alone.html", width=390) as visit:
        assert "Result" in visit.page.evaluate(named)
    with Visit(browser, folder / "alone.html") as visit:
        assert visit.page.evaluate(named) == "none"


def test_in_print_all_is_open_and_the_verdict_stands_first(browser: Any, folder: Path) -> None:
    with Visit(browser, folder / "failed.html", color_scheme="dark") as visit:
        drawn = visit.page.evaluate(f"dispatchEvent(new Event('beforeprint')), {DRAWN}")
        assert len(drawn) == 8 and all(drawn)
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        visit.page.emulate_media(media="print")
        assert visit.page.is_visible(".alarm") and visit.page.is_visible(".watermark")
        assert visit.page.pdf().startswith(b"%PDF")
        assert visit.quiet()
