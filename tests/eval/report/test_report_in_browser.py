"""The internal report and the comparison in a browser: drawn, quiet, and fit for any screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.eval.report import comparison_page, internal_page

from ...support.evaluation_example import document, hostile, wide

pytestmark = pytest.mark.long
DRAWN = (
    "[...document.querySelectorAll('[data-figure]')].map(b => !!b.querySelector('svg.main-svg'))"
)
WIDE = "[document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pages")
    others = [document(), document() | {"run": {"model": "tvae", "epsilon": 1.0, "delta": 1e-6}}]
    pages = {
        "internal": internal_page(document()),
        "hostile": internal_page(hostile()),
        "wide": internal_page(wide(50)),
        "comparison": comparison_page(others, ["three", "one"]),
    }
    for name, text in pages.items():
        (place / f"{name}.html").write_text(text, encoding="utf-8")
    return place


class Visit:
    """A page in a browser, and what it did there: requests, complaints, dialogs."""

    def __init__(self, browser: Any, file: Path, width: int = 1280, **settings: Any) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 800}, **settings)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda one: (self.complaints.append("dialog"), one.dismiss()))
        self.page.on("request", lambda one: self.requests.append(one.url))
        self.url = file.as_uri()
        self.page.goto(self.url)

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def scroll(self) -> None:
        """Come by every picture, as a reader does."""
        for box in self.page.query_selector_all("[data-figure]"):
            if box.is_visible():
                box.scroll_into_view_if_needed()
        self.page.wait_for_timeout(200)

    def quiet(self) -> bool:
        return not self.complaints and self.requests == [self.url]


@pytest.mark.parametrize("name", ["internal", "comparison", "hostile"])
def test_each_section_opens_at_a_click_and_draws_its_charts(
    browser: Any, folder: Path, name: str
) -> None:
    with Visit(browser, folder / f"{name}.html") as visit:
        sections = visit.page.query_selector_all("details.section")
        assert sections
        for section in sections:
            section.query_selector("summary").click()
            assert section.get_attribute("open") is not None
        visit.scroll()
        assert all(visit.page.evaluate(DRAWN))
        for fold in visit.page.query_selector_all("details.alternative > summary"):
            fold.click()
        assert visit.quiet(), (visit.complaints, visit.requests)


def test_charts_wait_until_they_are_near(browser: Any, folder: Path) -> None:
    with Visit(browser, folder / "wide.html") as visit:
        assert not any(visit.page.evaluate(DRAWN))
        visit.page.click("#columns summary")
        visit.page.wait_for_timeout(300)
        drawn = visit.page.evaluate(DRAWN)
        assert any(drawn) and not all(drawn)
        assert visit.quiet()


@pytest.mark.parametrize("name", ["internal", "comparison", "wide", "hostile"])
def test_a_phone_never_scrolls_sideways(browser: Any, folder: Path, name: str) -> None:
    with Visit(browser, folder / f"{name}.html", width=360) as visit:
        visit.page.click("#open-all")
        for fold in visit.page.query_selector_all("details.more > summary"):
            fold.click()
        visit.page.wait_for_timeout(300)
        full, visible = visit.page.evaluate(WIDE)
        assert full <= visible


def test_the_banner_stays_on_every_screen(browser: Any, folder: Path) -> None:
    with Visit(browser, folder / "internal.html") as visit:
        visit.page.click("#open-all")
        for share in (0, 0.3, 0.7, 1):
            where = f"{{top: {share} * document.documentElement.scrollHeight, behavior: 'instant'}}"
            visit.page.evaluate(f"scrollTo({where})")
            box = visit.page.query_selector(".banner").bounding_box()
            assert box["y"] == 0 and box["height"] > 0


def test_print_draws_every_chart_at_once_and_puts_all_back(browser: Any, folder: Path) -> None:
    with Visit(browser, folder / "internal.html", color_scheme="dark") as visit:
        drawn = visit.page.evaluate(f"dispatchEvent(new Event('beforeprint')), {DRAWN}")
        assert len(drawn) > 20 and all(drawn)
        colour = "getComputedStyle(document.body).color"
        assert visit.page.evaluate(colour) == "rgb(27, 31, 36)", "paper is light"
        visit.page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not visit.page.query_selector("details.section[open]")
        assert visit.page.pdf().startswith(b"%PDF")
        visit.page.emulate_media(media="print")
        assert visit.page.is_visible(".watermark")
        assert visit.quiet()


def test_charts_follow_the_colours_of_the_screen(browser: Any, folder: Path) -> None:
    colours = []
    with Visit(browser, folder / "internal.html", color_scheme="light") as visit:
        visit.page.click("#columns summary")
        visit.page.wait_for_selector("#columns svg.main-svg")
        line = "getComputedStyle(document.querySelector('#columns .scatterlayer .js-line')).stroke"
        for scheme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=scheme)
            visit.page.wait_for_timeout(200)
            colours.append(visit.page.evaluate(line))
        assert len(set(colours)) == 2
        assert visit.quiet()


def test_a_keyboard_reaches_and_opens_everything(browser: Any, folder: Path) -> None:
    with Visit(browser, folder / "internal.html", reduced_motion="reduce") as visit:
        visit.page.keyboard.press("Tab")
        focused = "document.activeElement.className"
        assert visit.page.evaluate(focused) == "skip"
        assert visit.page.query_selector(".skip").bounding_box()["x"] == 0
        visit.page.keyboard.press("Enter")
        assert visit.page.evaluate("document.activeElement.id") == "main"
        visit.page.focus("#pairs summary")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector("#pairs svg.main-svg")
        box = visit.page.query_selector("#pairs .scroll")
        assert box.get_attribute("tabindex") == "0"


def test_a_link_opens_the_section_that_it_leads_to(browser: Any, folder: Path) -> None:
    with Visit(browser, folder / "internal.html") as visit:
        visit.page.click("nav a[href='#survival']")
        visit.page.wait_for_selector("#survival svg.main-svg")
        visit.page.click(".lines a[href='#measure-tvd2']")
        visit.page.wait_for_selector("#measure-tvd2", state="visible")
        assert visit.quiet()
