"""The page of an audit in which an attack of another package took part."""

from __future__ import annotations

from dpsynth.eval.report import internal_page

from ...support.audit_example import audit
from .test_report import Page


def test_a_plugin_is_named_with_its_package_and_its_texts_are_no_markup() -> None:
    nasty = "<script>alert(1)</script>"
    plugin = {"key": "echo", "title": nasty, "package": "echo-attack", "version": "1.2"}
    finding = {"key": "echo", "title": nasty, "found": False, "sentence": nasty}
    document = audit()
    document["findings"] = [*document["findings"], finding]
    document["parts"] = document["parts"] | {"echo": {}}
    html = internal_page(None, document | {"plugins": [plugin]})
    assert nasty not in html
    words = Page(html).words()
    assert words.count("an attack of the package echo-attack, version 1.2") == 2
    assert "Not known." in words
