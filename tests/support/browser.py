"""Chromium, for tests that open a page; they are skipped where it is not installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    paths = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    path = next(filter(None, paths), None)
    if path is None:
        pytest.skip("neither chromium nor google-chrome is here")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()
