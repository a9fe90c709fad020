"""Attacks of other packages: they take part like the others, and a broken one stops the audit."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.assessment import attack_audit, attack_plugins, load_plugins
from dpsynth.cli import main
from dpsynth.errors import InputError
from dpsynth.eval.attacks import Control
from dpsynth.eval.attacks import audit as module
from dpsynth.eval.attacks.linkability import ATTACK as LINKABILITY
from dpsynth.tables import simulate

ROOT = Path(__file__).parents[2]
CANARY = "Xq7" + "Zanzibar"
PASSED = Control("copied", "Copies", "positive", "memorization:copies", True, "seen")


def guide() -> str:
    """The toy attack, as the guide prints it."""
    text = (ROOT / "docs/extending.md").read_text().partition("## An attack from")[2]
    [code] = re.findall(r"^```python\n(.*?TableAttack\(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return str(code)


TOY = guide()
HEAD, _, _ = TOY.partition("ATTACK = ")
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return what installs a module with an entry point, as pip leaves it."""
    site = tmp_path / "site"
    site.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(site))

    def put(code: str = TOY, name: str = "echo", package: str = "echo-attack") -> None:
        stem = package.replace("-", "_")
        (site / f"{stem}.py").write_text(code)
        info = site / f"{stem}-1.2.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n"
        (info / "METADATA").write_text(metadata)
        (info / "entry_points.txt").write_text(f"[dpsynth.attacks]\n{name} = {stem}:ATTACK\n")

    yield put
    for name in set(sys.modules) - before:
        if "attack" in name and not name.startswith("dpsynth"):
            del sys.modules[name]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Arguments of an audit: a schema, and a table that repeats its source."""
    folder = tmp_path_factory.mktemp("tables")
    everyone = simulate(400, seed=1)
    keys = everyone["patient_id"].unique()
    inside = everyone["patient_id"].isin(keys[np.random.default_rng(1).random(len(keys)) < 0.55])
    everyone[inside].to_csv(folder / "train.csv", index=False)
    everyone[~inside].to_csv(folder / "holdout.csv", index=False)
    everyone[inside].drop(columns="patient_id").to_csv(folder / "out.csv", index=False)
    names = ["demo", "train.csv", "--synthetic", "out.csv", "--holdout", "holdout.csv"]
    return [str(folder / name) if name.endswith(".csv") else name for name in names]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attack of dpsynth only, and no control that needs a fit."""
    monkeypatch.setattr(attack_audit, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(module, "ATTACKS", (LINKABILITY,))


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["audit", *arguments])
    return int(ended.value.code or 0)


def document(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "audit.json").read_text()))


def test_an_installed_attack_takes_part_and_is_named(
    tmp_path: Path, install: Install, tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*tables, "-o", str(tmp_path / "without"), "--quiet") == 3
    capsys.readouterr()
    install()
    assert call(*tables, "-o", str(tmp_path / "with")) == 3
    printed = capsys.readouterr()
    made, bare = document(tmp_path / "with"), document(tmp_path / "without")
    named = [{"key": "echo", "title": "Echoed rows", "package": "echo-attack", "version": "1.2"}]
    assert made["plugins"] == named
    assert "plug-in     echo: Echoed rows, echo-attack 1.2" in printed.out
    assert "Attack of another package: echo, of echo-attack 1.2" in printed.err
    [finding] = [one for one in made["findings"] if one["key"] == "echo"]
    [power] = [one for one in made["powers"] if one["key"] == "echo"]
    assert finding["found"] and power["least"] is not None and "echo" in made["measures"]
    mine = {
        (control["key"], control["passed"])
        for control in made["controls"]
        if control["attack"] == "echo"
    }
    assert mine == {("repeated", True), ("fresh", True), ("stranger", True)}
    page = (tmp_path / "with" / "internal.html").read_text()
    origin = "an attack of the package echo-attack, version 1.2, which is not part of dpsynth"
    assert 'id="echo"' in page and page.count(origin) == 2 and made["internal"] is True
    # the attacks of dpsynth find the same with it and without it
    assert "plugins" not in bare and "echo" not in (tmp_path / "without/internal.html").read_text()
    for part in ("findings", "powers", "controls"):
        others = [one for one in made[part] if "echo" not in (one["key"], one.get("attack"))]
        assert others == bare[part]
    assert made["parts"]["linkability"] == bare["parts"]["linkability"]


@pytest.mark.long
def test_it_is_turned_off_or_chosen_by_name(
    tmp_path: Path, install: Install, tables: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    install()
    install("raise RuntimeError", "other", "other-attack")
    folder = tmp_path / "internal"
    assert call(*tables, "-o", str(folder), "--no-plugins", "--quiet") == 3
    assert "plugins" not in document(folder)
    assert call(*tables, "-o", str(folder), "--force", "--plugin", "echo", "--json") == 3
    assert [plugin["key"] for plugin in document(folder)["plugins"]] == ["echo"]
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{") :])["plugins"] == document(folder)["plugins"]
    for arguments, words in (
        ([*tables, "--plugin", "echo", "--no-plugins"], "contradict each other"),
        ([*tables, "--plugin", "nothing"], "installed attacks: echo, other"),
        (["demo", "--plugin", "echo"], "to attack a table"),
    ):
        assert call(*arguments) == 2
        text = " ".join(capsys.readouterr().err.split())
        assert words in text or "give --synthetic" in text


def broken(body: str) -> str:
    """The toy with another function body."""
    return f"{HEAD}\n\ndef run(tables, people, rng):\n    {body}\n\n\n" + (
        'ATTACK = TableAttack("echo", "Echoes", "echoes", run)\n'
    )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"print('{CANARY}')\nraise RuntimeError('{CANARY}')", "could not be loaded (RuntimeError"),
        (f"import sys\nsys.exit('{CANARY}')", "could not be loaded (SystemExit)"),
        ("import no_such_module_here", "could not be loaded (ModuleNotFoundError)"),
        ("OTHER = 1", "could not be loaded (AttributeError)"),
        ("ATTACK = print", "is not a TableAttack"),
        (TOY.replace('TableAttack("echo"', 'TableAttack("loud"'), "has another key than its entry"),
        (broken(f"print('{CANARY}'); raise KeyError('{CANARY}')"), "failed (KeyError)"),
        (broken("import sys; sys.exit(0)"), "failed (SystemExit)"),
    ],
)
def test_a_broken_package_gives_one_sentence_and_no_file(
    code: str,
    words: str,
    tmp_path: Path,
    install: Install,
    tables: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    install(code)
    assert call(*tables, "-o", str(tmp_path / "internal"), "--quiet") == 2
    printed = capfd.readouterr()
    text = " ".join(printed.err.split())
    assert f"the attack 'echo' of the package echo-attack 1.2 {words}" in text
    assert "--no-plugins" in text and "Traceback" not in text
    assert CANARY not in printed.out + printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_package_that_is_slow_to_import_is_refused(install: Install) -> None:
    install("import time\ntime.sleep(5)")
    with pytest.raises(InputError, match="was not loaded within 0.2 seconds"):
        load_plugins(seconds=0.2)


def test_names_that_are_taken_or_occur_twice_are_refused(install: Install) -> None:
    install(name="membership", package="one-attack")
    with pytest.raises(InputError, match="one-attack 1.2 has a name that is taken"):
        load_plugins()
    install(package="two-attack")
    install(package="three-attack")
    with pytest.raises(InputError, match="several packages offer an attack 'echo'"):
        load_plugins(["echo"])


GOOD = "Attack(PartResult((), {}, ()), (Finding('echo', 'title', False, 'seen'),), (POWER,))"


@pytest.mark.long
@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("None", "is not an Attack"),
        (GOOD.replace("'echo'", "'membership:echo'"), "begins with echo"),
        (GOOD.replace("(POWER,)", "()"), "needs a Power"),
        (GOOD.replace("(POWER,)", "(POWER, POWER)"), "occurs twice"),
        (GOOD.replace("False", "np.bool_(False)"), "not True or False"),
        (GOOD.replace("'title'", "''"), "a text is missing"),
        (GOOD.replace("POWER", "Power('echo', float('nan'), 'share', 'w')"), "not a number"),
        (GOOD.replace("POWER", "Power('echo', 1.0, 'epsilon', 'w')"), "unit of a Power"),
        (GOOD.replace("{}", "{'x': float('inf')}"), "JSON types"),
        (GOOD.replace("{}", "{'x': np.zeros(2)}"), "JSON types"),
        (GOOD, None),
    ],
)
def test_results_that_no_report_can_show_are_refused(
    result: str, words: str | None, install: Install
) -> None:
    head = "from dpsynth.eval.attack_stats import Finding, Power\n"
    head += "POWER = Power('echo', None, 'share', 'no leak is sure to be seen')\n"
    install(broken(f"return {result}").replace("\n\n\n", f"\n\n\n{head}\n\n", 1))
    [plugin] = load_plugins()
    people: Any = None
    if words is None:
        assert plugin.attack.play(people, people, np.random.default_rng(1)).findings
        return
    with pytest.raises(InputError, match=f"cannot be used: .*{words}"):
        plugin.attack.play(people, people, np.random.default_rng(1))


def test_no_measure_or_part_of_dpsynth_can_be_replaced() -> None:
    """Every other key of an audit is reserved, or belongs to an attack of dpsynth."""
    from ..support.audit_example import audit

    document = audit()
    stems = {str(key).partition(":")[0] for key in document["measures"]}
    taken = attack_plugins.RESERVED | set(attack_plugins.DPSYNTH)
    assert stems | set(document["parts"]) | {"people", "controls"} <= taken
