"""What the tests of the pages share."""

from __future__ import annotations

import pytest
from markupsafe import Markup

from dpsynth.eval.report import rendering


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave plotly's script out of the pages: its five megabytes take long to parse."""
    monkeypatch.setitem(rendering._environment().globals, "plotly", lambda: Markup("library"))
