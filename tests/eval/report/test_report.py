"""The internal report and the comparison: every figure has words, and no text is markup."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any

import pytest

from dpsynth.eval.report import (
    comparison_page,
    formatting,
    internal_page,
    key_figures,
    sparklines,
)
from dpsynth.eval.report.page import best_of, close_to

from ...support.evaluation_example import NASTY, document, hostile, less, measure, wide

MARK = "Internal: contains statistics of real patients. Do not release."


class Page(HTMLParser):
    """What a browser would see: elements, text, and whether tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "br", "path", "rect", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif not self.open or self.open[-1] != "style":
            self.text += f" {data}"

    def words(self) -> str:
        return " ".join(self.text.split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(internal_page(document()))


def figures(page: Page) -> list[dict[str, Any]]:
    return list(json.loads(next(text for text in page.scripts if text.startswith("[{"))))


def drawn(text: str) -> list[dict[str, Any]]:
    """The figures of a page, without reading the rest of it."""
    script = re.search(r"<script[^>]*>\s*(\[\{.*?)</script>", text, re.DOTALL)
    assert script is not None
    return list(json.loads(script[1]))


def test_the_page_says_on_screen_and_in_print_that_it_is_internal(page: Page) -> None:
    words = page.words().replace("▲ ", "")
    assert words.count(MARK) >= 3
    styles = internal_page(document())
    assert f'content: "{MARK}"' in styles and "position: fixed" in styles


def test_every_measure_appears_with_its_references(page: Page) -> None:
    words = page.words()
    for key, one in document()["measures"].items():
        value, references = formatting.measure(key, one)
        assert f"{one['title']} {key} {value} {references}" in words
        assert one["meaning"] in words


def test_headline_measures_show_figure_interval_and_references(page: Page) -> None:
    assert "0.021 (0.018–0.024) [holdout 0.015, by chance 0.013]" in page.words()
    assert "0.790 (0.710–0.870) [trained on source 0.830]" in page.words()


def test_a_gate_is_told_in_a_word_and_failures_come_first(page: Page) -> None:
    words = page.words()
    assert "1 of 2 internal gates failed: Told apart. 1 could not be judged." in words
    places = [words.index(one) for one in ("Told apart : failed", ": not judged", ": passed")]
    assert places == sorted(places)


def test_every_chart_has_an_alternative_in_words(page: Page) -> None:
    charts = [one for one in page.all("div") if "data-figure" in one]
    assert len(charts) == len(figures(page)) > 20
    for place, chart in enumerate(charts):
        assert chart["data-figure"] == str(place)
        assert chart["role"] == "img" and len(chart["aria-label"] or "") > 20


def test_every_header_of_a_table_has_a_scope_and_every_table_a_caption(page: Page) -> None:
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption")) > 10


def test_a_link_within_the_page_leads_somewhere(page: Page) -> None:
    ids = [one["id"] for _, one in page.elements if "id" in one]
    assert len(ids) == len(set(ids))
    targets = [one["href"] for one in page.all("a")]
    assert targets and all(href and href[0] == "#" and href[1:] in ids for href in targets)


def test_nothing_is_loaded_from_anywhere() -> None:
    for text in (internal_page(document()), comparison_page([document()] * 2, ["a", "b"])):
        page = Page(text)
        for tag, attributes in page.elements:
            assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
            assert "src" not in attributes and "srcset" not in attributes
        policy = next(m["content"] or "" for m in page.all("meta") if "http-equiv" in m)
        assert "default-src 'none'" in policy and "http" not in policy
        styles = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
        assert styles and "url(" not in styles[1] and "@import" not in styles[1]


def test_no_text_of_a_document_is_markup() -> None:
    calm, wild = Page(internal_page(document())), Page(internal_page(hostile()))
    assert [tag for tag, _ in wild.elements] == [tag for tag, _ in calm.elements]
    assert len(wild.scripts) == len(calm.scripts)
    assert not any("alert(1)" in text and not text.startswith("[{") for text in wild.scripts)
    for _, attributes in wild.elements:
        assert not any(name.startswith("on") for name in attributes)
    assert "‮" not in internal_page(hostile()), "an invisible character is named, not kept"


def test_labels_of_charts_are_escaped_for_plotly_which_reads_html() -> None:
    texts = json.dumps(figures(Page(internal_page(hostile()))))
    assert "alert(1)" in texts
    assert "<script" not in texts and html.escape("<script>", quote=False) in texts


def test_the_comparison_escapes_names_of_candidates() -> None:
    text = comparison_page([hostile(), hostile()], [NASTY, f"{NASTY} again"])
    calm = comparison_page([document(), document()], ["a", "b"])
    tags = [tag for tag, _ in Page(text).elements]
    assert tags == [tag for tag, _ in Page(calm).elements]


def test_fifty_columns_stay_below_six_megabytes() -> None:
    text = internal_page(wide(50))
    assert len(text.encode()) < 6_000_000
    assert text.count("plotly.js v") == 1, "the library is in the page once"


@pytest.mark.parametrize("part", ["fidelity", "usefulness", "subgroups", "rules"])
def test_a_missing_part_leaves_its_sections_out_and_says_so(part: str) -> None:
    parts = {name: one for name, one in document()["parts"].items() if name != part}
    page = Page(internal_page(less(parts=parts)))
    own = {"fidelity": "columns", "usefulness": "models"}.get(part, part)
    assert own not in [one.get("id") for one in page.all("section")]
    assert "Not evaluated:" in page.words()


@pytest.mark.long
@pytest.mark.usefixtures("without_library")
def test_each_detail_may_be_missing_alone() -> None:
    whole = document()["parts"]
    for part in ("fidelity", "usefulness"):
        for name in whole[part]:
            for nothing in ({}, {name: None}, {name: type(whole[part][name])()}):
                rest = {key: one for key, one in whole[part].items() if key != name} | nothing
                for spec in drawn(internal_page(less(parts={**whole, part: rest}))):
                    assert spec["data"], f"an empty chart without {name}"


def test_a_page_without_anything_to_draw_carries_no_library() -> None:
    bare = less(parts={}, measures={}, gates=[], notes=[], run=None)
    bare["tables"] = {**bare["tables"], "holdout": None}
    text = internal_page(bare)
    assert len(text) < 60_000
    words = Page(text).words()
    assert "No internal gate was judged." in words and "No holdout was given" in words


def test_no_holdout_leaves_no_empty_column() -> None:
    evaluation = document()
    evaluation["tables"]["holdout"] = None
    for one in evaluation["measures"].values():
        one["reference"] = None
    details = evaluation["parts"]["fidelity"]
    for name in ("columns", "followed", "missing_patterns", "heaping", "tails"):
        for one in details[name]:
            one["holdout"] = None
    columns = [*details["columns"], *details["followed"]]
    for one in [details["c2st"]["auc"], *(column["tvd"] for column in columns)]:
        one["reference"] = None
    details["queries"]["error_quantiles"]["holdout"] = None
    del details["sdmetrics"]["holdout"]
    page = Page(internal_page(evaluation))
    assert "[by chance 0.013]" in page.words() and "[holdout" not in page.words()
    traces = [t.get("name") for spec in figures(page) for t in spec["data"]]
    assert "synthetic" in traces and "holdout" not in traces


def test_a_column_without_values_has_no_chart() -> None:
    evaluation = document()
    evaluation["parts"]["fidelity"]["columns"][0] |= {"source": None, "synthetic": None}
    page = Page(internal_page(evaluation))
    assert "not drawn: Age" in page.words()
    assert len(figures(page)) == len(figures(Page(internal_page(document())))) - 1


@pytest.mark.parametrize("wrong", [{"format": "other"}, {"version": 2}])
def test_other_documents_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="evaluation"):
        internal_page(less(**wrong))


def test_a_comparison_needs_a_name_for_each() -> None:
    with pytest.raises(ValueError, match="a name for each"):
        comparison_page([document()], ["a", "b"])


def test_the_best_is_the_nearest_to_best_and_ties_share_it() -> None:
    near, far = measure("m", 0.5, 0.48), measure("m", 0.5, 0.6)
    assert best_of([far, near, None, near]) == {1, 3}
    assert best_of([far]) == set()


def test_what_meets_the_best_is_not_called_worse() -> None:
    best = {"value": 0.1, "low": 0.08, "high": 0.12, "best": 0.0}
    meets = {**best, "value": 0.13, "low": 0.11, "high": 0.15}
    apart = {**best, "value": 0.2, "low": 0.18, "high": 0.22}
    assert close_to([best, meets, apart], {0}) == {1}


def test_the_comparison_marks_the_best_by_a_word_and_a_sign() -> None:
    worse = document()
    worse["measures"]["tvd2"] |= {"value": 0.3, "low": 0.28, "high": 0.32}
    words = Page(comparison_page([document(), worse], ["ours", "theirs"])).words()
    mine = "0.021 (0.018–0.024) [holdout 0.015, by chance 0.013] ★ best"
    assert mine in words and "0.300 (0.280–0.320) [holdout 0.015, by chance 0.013] ★" not in words


def test_a_comparison_of_other_tasks_warns() -> None:
    other = document() | {"seed": 8}
    words = Page(comparison_page([document(), other], ["a", "b"])).words()
    assert "Not the same as of a: the seed of the evaluation, in b." in words
    assert "Not the same" not in Page(comparison_page([document()] * 2, ["a", "b"])).words()


def test_errors_are_drawn_against_epsilon_where_runs_differ_in_it() -> None:
    tight = document() | {"run": {"model": "tvae", "epsilon": 0.5, "delta": 1e-6}}
    specs = figures(Page(comparison_page([document(), tight], ["a", "b"])))
    line = next(trace for trace in specs[0]["data"] if trace["name"] == "tvae")
    assert line["x"] == [0.5, 3.0] and specs[0]["layout"]["xaxis"]["type"] == "log"
    foreign = document() | {"run": None}
    specs = figures(Page(comparison_page([document(), foreign], ["a", "b"])))
    assert specs[0]["data"][-1]["y"] == [0, 1], "marks side by side"


def test_a_strip_has_best_on_the_left_whichever_way_is_better() -> None:
    def place(kind: str, picture: str) -> float:
        match = re.search(rf'class="{kind}"[^>]*?(?:cx="|d="M)([\d.]+)', picture)
        assert match
        return float(match[1])

    for one in (measure("error", 0.0, 0.3, 0.1), measure("score", 1.0, 0.7, 0.9)):
        picture = sparklines.score(one)
        best, held, value = (place(k, picture) for k in ("best", "holdout", "synthetic"))
        assert best < held < value


def test_a_measure_of_an_unknown_kind_is_still_listed() -> None:
    groups = dict(key_figures.every(document()["measures"]))
    assert [other.key for other in groups["Others"]] == ["brand_new"]
    listed = [one.key for group in groups.values() for one in group]
    assert sorted(listed) == sorted(document()["measures"])


def test_the_module_is_light_to_import() -> None:
    code = (
        "import sys; from dpsynth.eval.report import internal_page\n"
        "heavy = {'plotly', 'jinja2', 'torch', 'sklearn', 'sdmetrics'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_strong_relations_and_effects_are_listed_by_name() -> None:
    text = Page(internal_page(document())).words()
    assert "1 of 2 strong relations lost a twentieth or more" in text
    assert "age with bmi" in text and "1 of 2 listed risk ratios with the other sign" in text
    assert "wrong" in text and "Facts that a reader checks first" in text


def test_a_comparison_lists_strong_relations_by_candidate() -> None:
    text = Page(comparison_page([document(), document()], ["first", "second"])).words()
    assert "The strongest relations, Cramér's V" in text and "age with bmi" in text
    other = document()
    other["parts"]["fidelity"]["strongest"] = []  # of another source, or an earlier version
    text = Page(comparison_page([document(), other], ["first", "second"])).words()
    assert "strongest relations, Cramér" not in text
