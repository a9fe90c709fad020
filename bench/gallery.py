"""Make the pictures of docs/gallery.md: the pages of a demo cohort, at desk and phone widths.

usage: gallery.py [--work build/gallery]      (needs Chromium; --browser names it)

Only simulated patients are shown. Runs and pages are kept in the work folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from dpsynth.tables.simulated import simulate

DOCS = Path(__file__).parents[1] / "docs" / "gallery"
DPSYNTH = str(Path(sys.executable).parent / "dpsynth")
DESK, PHONE = (1280, 860), (390, 800)


@dataclass(frozen=True)
class Shot:
    """A picture: its name, the page, the width and height, a section to open, dark or light."""

    name: str
    page: str
    size: tuple[int, int] = DESK
    section: str | None = None
    dark: bool = False


SHOTS = (
    Shot("internal", "internal/internal.html"),
    Shot("internal-distributions", "internal/internal.html", section="columns"),
    Shot("internal-pairs", "internal/internal.html", section="pairs", dark=True),
    Shot("internal-phone", "internal/internal.html", PHONE),
    Shot("audit", "internal/internal.html", section="audit"),
    Shot("audit-membership", "internal/internal.html", section="membership"),
    Shot("audit-training", "internal/internal.html", section="training", dark=True),
    Shot("audit-phone", "internal/internal.html", PHONE, section="audit"),
    Shot("comparison", "comparison/comparison.html"),
    Shot("forecast", "forecast/forecast.html"),
    Shot("report", "bundle/report.html"),
    Shot("report-columns", "bundle/report.html", section="columns"),
    Shot("report-attacked", "bundle/report.html", section="attacked"),
    Shot("report-phone", "bundle/report.html", PHONE),
)


def make_pages(work: Path) -> None:
    """Go the whole way with a simulated cohort: split, fit, sample, attack, release."""
    if (work / "bundle").exists():
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    environment = os.environ | {"DPSYNTH_LEDGER": "ledger.sqlite"}
    simulate(6000, seed=1).to_csv(work / "cohort.csv", index=False)
    train, holdout = "split/train.csv", ["--holdout", "split/holdout.csv"]
    fit = ["fit", "demo", train, "--dataset", "demo", "--epsilon", "3", "--delta", "1e-6"]
    commands = [
        ["ledger", "create"],
        ["plan", "demo", "--epsilon", "3", "--delta", "1e-6", "--forecast", "--wanted-error",
         "0.03", "-o", "forecast"],
        ["split", "demo", "cohort.csv", "--holdout", "0.25", "--seed", "1", "-o", "split"],
        [*fit, "--publish-quality", "0.05", "-o", "run"],
        [*fit, "--model", "independent", "-o", "baseline"],
        ["sample", "run", "--seed", "1", "-o", "out.parquet"],
        ["evaluate", "run", train, "--synthetic", "out.parquet", *holdout, "--publish", "-o",
         "internal"],
        ["audit", "run", train, "--synthetic", "out.parquet", *holdout, "-o", "internal"],
        ["compare", "demo", train, "network=run", "independent=baseline", *holdout, "-o",
         "comparison"],
        ["release", "run", "--table", "out.parquet", "-o", "bundle"],
    ]  # fmt: skip
    for command in commands:
        done = subprocess.run([DPSYNTH, *command, "-q"], env=environment, cwd=work, check=False)
        if done.returncode not in (0, 3):  # a gate that fails belongs into the picture
            sys.exit(f"{' '.join(command)} ended with {done.returncode}")


def take(browser: Browser, work: Path, shot: Shot) -> None:
    """Write one picture."""
    scheme = "dark" if shot.dark else "light"
    width, height = shot.size
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    section = "" if shot.section is None else f"#{shot.section}"  # a link opens its section
    page.goto((work / shot.page).resolve().as_uri() + section)
    page.wait_for_timeout(2000)  # until its charts are drawn
    page.screenshot(path=DOCS / f"{shot.name}.png")
    context.close()


def main() -> None:
    """Make the pages, then the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", default="build/gallery", type=Path)
    parser.add_argument("--browser", default=shutil.which("chromium"))
    chosen = parser.parse_args()
    if not chosen.browser:
        sys.exit("there is no chromium on the PATH; name a browser by --browser")
    make_pages(chosen.work)
    DOCS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chosen.browser, args=["--no-sandbox"])
        for shot in SHOTS:
            take(browser, chosen.work, shot)
        browser.close()


if __name__ == "__main__":
    main()
