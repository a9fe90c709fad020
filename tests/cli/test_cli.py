"""The command line: help, exit codes, JSON for scripts, progress for people, interrupts."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import pytest
import yaml
from click.testing import CliRunner

import dpsynth
from dpsynth.cli import main
from dpsynth.cli.group import commands
from dpsynth.ledger.ledger import Ledger
from dpsynth.models.registry import NAMES
from dpsynth.schema.schema import Schema, shipped_schemas
from dpsynth.synthesis import fitting
from dpsynth.tables.simulated import simulate

from ..support.reservations import reserve

BUDGET = ["--dataset", "cohort", "--epsilon", "3", "--delta", "1e-6"]
ENTRY = "0123456789abcdef" * 2
HEAVY = ("torch", "pandas", "numpy", "sqlalchemy", "pyarrow")


def every_command(
    group: click.Group, *path: str
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, *path, name)


COMMANDS = dict(every_command(commands))
PATHS = [" ".join(path) for path in COMMANDS]


Outcome = Any  # tests/conftest.py
Cli = Callable[..., Outcome]


@pytest.fixture
def cli(command_line: Cli) -> Cli:
    """Run the command line in the test's folder."""
    return command_line


@pytest.fixture(scope="module")
def cohort_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's table with 200 patients."""
    path = tmp_path_factory.mktemp("cohort") / "cohort.csv"
    simulate(200, seed=1).to_csv(path, index=False)
    return path


@pytest.fixture
def cohort(cohort_file: Path, tmp_path: Path) -> Path:
    path = tmp_path / "cohort.csv"
    path.symlink_to(cohort_file)
    return path


# Help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
def test_help_shows_an_example_of_the_command(cli: Cli, path: str) -> None:
    shown = cli(*path.split(), "--help")
    assert shown.code == 0 and shown.err == ""
    assert re.search(rf"Example: .*dpsynth {path}", " ".join(shown.out.split())), shown.out


@pytest.mark.parametrize("path", ["", *PATHS])
def test_help_is_laid_out(cli: Cli, path: str) -> None:
    """Above the options: paragraphs two blanks in, single blanks between words."""
    shown = cli(*path.split(), "--help")
    text = re.split(r"\n(?:Options|Commands):\n", shown.out)[0].splitlines()[1:]
    for line in text:
        assert line == "" or re.fullmatch(r"  \S+(?: \S+)*", line), repr(line)
    assert all(len(line) <= 80 for line in text)


@pytest.mark.parametrize("path", ["", *PATHS])
def test_the_examples_of_the_help_can_be_parsed(path: str) -> None:
    """Every line of an epilog that starts with dpsynth is a command that exists."""
    command = COMMANDS[tuple(path.split())] if path else commands
    epilog = " ".join((command.epilog or "").replace("Exit codes", "\n").split(" "))
    examples = re.findall(r"dpsynth +(\w.*?)(?: > |\)\"|\n|$)", epilog)
    assert examples
    for example in examples:
        context = commands.make_context("dpsynth", shlex.split(example))
        found: click.Command = commands
        rest = [*context._protected_args, *context.args]
        while isinstance(found, click.Group):
            name, inner, rest = found.resolve_command(context, rest)
            assert inner is not None
            found = inner
            context = found.make_context(name, list(rest), parent=context)
            rest = [*context._protected_args, *context.args]


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    """What keeps it under 0.3 s: one process shows the help of every command in turn."""
    program = (
        "import sys\n"
        "from dpsynth.cli import main\n"
        f"for path in {['', *PATHS]!r}:\n"
        "    try:\n"
        "        main([*path.split(), '--help'])\n"
        "    except SystemExit as stop:\n"
        "        assert stop.code == 0, path\n"
        f"    heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    assert not heavy, (path, heavy)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: dpsynth") == 1 + len(PATHS)


def test_both_ways_to_start_it(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("dpsynth")
    for start in ([sys.executable, "-m", "dpsynth"], [str(script)]):
        done = subprocess.run(
            [*start, "--version"], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        assert done.stdout == f"dpsynth, version {dpsynth.__version__}\n"


def test_without_a_command_it_shows_what_there_is(cli: Cli) -> None:
    for arguments in ([], ["schema"], ["ledger"]):
        shown = cli(*arguments)
        assert shown.code == 2 and "Commands:" in shown.err + shown.out


@pytest.mark.parametrize("option", ["--epsilon", "--delta"])
@pytest.mark.parametrize("path", ["plan", "fit"])
def test_privacy_parameters_have_no_default(path: str, option: str) -> None:
    (found,) = (p for p in COMMANDS[(path,)].params if option in p.opts)
    assert not isinstance(found.default, int | float)
    words = {"--epsilon": "1", "--delta": "1e-6", "--dataset": "x"}
    del words[option]
    if path == "plan":
        del words["--dataset"]
    given = [word for pair in words.items() for word in pair]
    data = ["rows.csv", "-o", "run"] if path == "fit" else []
    result = CliRunner().invoke(commands, [path, "cardio", *data, *given])
    assert result.exit_code == 2 and f"'{option}'" in result.output


# Exit codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("plan cardioo --epsilon 1 --delta 1e-6", "did you mean 'cardio'"),
        ("plan cardio --epsilon 1 --delta 1e-6 --model tave", "did you mean 'tvae'"),
        ("plann cardio", "did you mean 'plan'"),
        ("schema chek cardio", "did you mean 'check'"),
        ("plan cardio --epsilon 1 --delta 1e-6 --modell tvae", "--model"),
        ("plan cardio --epsilon 1", "--delta"),
        ("plan cardio --epsilon much --delta 1e-6", "much"),
        ("plan cardio --epsilon -1 --delta 1e-6", "epsilon must be"),
        ("plan cardio --epsilon 1 --delta 2", "delta must be"),
        ("plan nowhere.schema.yaml --epsilon 1 --delta 1e-6", "nowhere.schema.yaml does not exist"),
        ("fit demo absent.csv --dataset x --epsilon 1 --delta 1e-6 -o run", "no such file"),
        ("fit demo cohort.csv --epsilon 1 --delta 1e-6 -o run", "--dataset"),
        ("fit cardio cohort.csv --dataset x --epsilon 1 --delta 1e-6 -o run", "lacks"),
        ("fit demo cohort.csv --dataset x --epsilon 1 --delta 1e-6 -o cohort.csv", "exists"),
        ("sample absent -o out.csv", "not a run folder"),
        ("sample absent -o out.xlsx", "not a run folder"),
        ("release absent -o bundle", "not a run folder"),
        ("verify absent", "not a bundle"),
        ("schema show cardioo", "did you mean 'cardio'"),
        ("schema check demo absent.csv", "no such file"),
        ("completion tcsh", "tcsh"),
    ],
)
def test_bad_input_is_exit_code_2(cli: Cli, cohort: Path, arguments: str, message: str) -> None:
    ended = cli(*shlex.split(arguments))
    assert ended.code == 2 and ended.out == ""
    assert message.lower() in ended.err.lower()
    assert "Traceback" not in ended.err
    assert Ledger(cohort.parent / "ledger.sqlite").entries() == []


def test_a_failed_gate_is_exit_code_3(cli: Cli, cohort: Path) -> None:
    fitted = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "--no-ledger", "-o", "r")
    assert fitted.code == 0 and "cannot be released" in fitted.out
    refused = cli("release", "r", "-o", "bundle")
    assert refused.code == 3 and "no-ledger" in refused.err
    assert not Path("bundle").exists()


def test_a_ledger_that_refuses_is_exit_code_4(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the ledger; nothing is fitted without it."""
    monkeypatch.setattr("dpsynth.ledger.storage.sqlite.WAIT_SECONDS", 0)
    with closing(sqlite3.connect(Ledger().location)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run")
    assert refused.code == 4 and "ledger" in refused.err and refused.out == ""
    assert not Path("run").exists()


def test_a_changed_bundle_is_exit_code_5(cli: Cli, bundle: Path) -> None:
    assert cli("verify", bundle).code == 0
    table = bundle / "data" / "synthetic.csv"
    table.write_text(table.read_text() + "\n")
    refused = cli("verify", bundle)
    assert refused.code == 5 and "data/synthetic.csv" in refused.err and refused.out == ""


def test_an_unexpected_error_is_exit_code_1_and_quotes_nothing(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError("could not convert 'Mrs Miller, HIV positive'")

    monkeypatch.setattr(fitting, "fit", fail)
    ended = cli("fit", "demo", cohort, *BUDGET, "-o", "run")
    assert ended.code == 1 and "Miller" not in ended.err + ended.out
    assert "ValueError" in ended.err and "test_cli.py" in ended.err and "DPSYNTH_DEBUG" in ended.err
    monkeypatch.setenv("DPSYNTH_DEBUG", "1")
    with pytest.raises(ValueError, match="Miller"):
        main(["fit", "demo", str(cohort), *BUDGET, "-o", "run"])


def test_out_of_memory_has_a_plain_message(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr(fitting, "fit", fail)
    ended = cli("fit", "demo", cohort, *BUDGET, "-o", "run")
    assert ended.code == 1 and "out of memory" in ended.err


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_a_library_swallows_is_still_one(name: str, tmp_path: Path) -> None:
    """A module that is written in C says that it cannot be imported, whatever interrupted it."""
    code = f"""
import os, signal
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else
                  signal.default_int_handler)
from dpsynth.schema import files
def names():
    try:
        os.kill(os.getpid(), signal.{name})
    except KeyboardInterrupt:
        raise ImportError("a cell") from None
files.shipped_names = names
from dpsynth.cli import main; main(["schema", "list"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 128 + getattr(signal, name), done.stderr
    assert "interrupted" in done.stderr and "a cell" not in done.stderr


def test_an_interrupt_is_exit_code_130_and_says_what_it_cost(cohort: Path) -> None:
    """In the middle of the fit: nothing is left of the run, and the ledger is closed."""
    folder = cohort.parent
    ledger = folder / "state" / "ledger.sqlite"
    ledger.parent.mkdir()
    Ledger.create(ledger)
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsynth", "fit", "demo", str(cohort), *BUDGET, "-o", "runs/run"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ | {"DPSYNTH_LEDGER": str(ledger), "OMP_NUM_THREADS": "1"},
        # a background job of a shell starts with interrupts ignored
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stderr is not None and process.stdout is not None
    seen = ""
    try:
        for line in process.stderr:
            seen += line
            if line.startswith("mixture"):  # rows have been read, seconds of work are left
                process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        out = process.stdout.read()
    finally:
        process.kill()
    assert "interrupted" in seen and "Traceback" not in seen and out == ""
    assert not (folder / "runs").exists() or not list((folder / "runs").iterdir())
    (entry,) = Ledger(ledger).entries()
    assert entry.status == "failed" and entry.history[-1].note == "KeyboardInterrupt"
    cost = seen[seen.index("interrupted") :]
    assert "epsilon 3" in cost and "cohort" in cost, "it must say what was charged to whom"


def test_a_polite_kill_is_an_interrupt(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object, **kwargs: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("dpsynth.models.generators.independent.Independent.fit", killed)
    ended = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run")
    assert ended.code == 143 and "interrupted" in ended.err and "epsilon 3" in ended.err
    assert [entry.status for entry in Ledger().entries()] == ["failed"]


# JSON, quiet, progress ------------------------------------------------------------------------


POLICY = """\
dpsynth_policy: 1
name: Test
delta: 1.0e-5
caps: {total: {epsilon: 9, basis: "the board"}}
"""


@pytest.fixture
def office(cli: Cli, made_ledger: Path, made_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy file, and a ledger with an entry of somebody else's that never began to read."""
    shutil.copyfile(made_ledger, "ledger.sqlite")
    Path("office.policy.yaml").write_text(POLICY)
    with monkeypatch.context() as patch:
        patch.setenv("DPSYNTH_USER", "somebody")
        patch.setattr("dpsynth.ledger.ledger.uuid.uuid4", lambda: UUID(ENTRY))
        reserve(Ledger(), "ward", epsilon=1, model="mixture", population=100)


@dataclass(frozen=True)
class Call:
    """A command line on the fixtures' files, and the kind of its JSON."""

    line: str
    kind: str
    internal: bool = False
    steps: tuple[str, ...] = ()


CALLS = [
    Call("plan cardio --epsilon 1 --delta 1e-6", "dpsynth.plan"),
    Call("schema list", "dpsynth.schemas"),
    Call("schema check cardio", "dpsynth.schema.check"),
    Call("schema check demo cohort.csv", "dpsynth.schema.check", internal=True, steps=("reading",)),
    Call(
        f"fit demo cohort.csv {' '.join(BUDGET)} --model independent -o fitted",
        "dpsynth.fit",
        steps=("reading", "histograms"),
    ),
    Call("sample run -o table.csv --rows 20 --seed 1", "dpsynth.sample", steps=("sampling",)),
    Call(
        "split demo cohort.csv -o sides --seed 1",
        "dpsynth.split",
        internal=True,
        steps=("splitting",),
    ),
    Call("release run -o released --rows 50 --seed 1", "dpsynth.release", steps=("bundle",)),
    Call("verify bundle", "dpsynth.verify"),
    Call("dpia run", "dpsynth.dpia"),
    Call("plan cardio --epsilon 1 --delta 1e-6 --policy office.policy.yaml", "dpsynth.plan"),
    Call("ledger show", "dpsynth.ledger", internal=True),
    Call("ledger policy office.policy.yaml", "dpsynth.ledger-policy", internal=True),
    Call("ledger create new.sqlite", "dpsynth.ledger-create", internal=True),
    Call("ledger verify", "dpsynth.ledger-verify", internal=True),
    Call("ledger backup copy.sqlite", "dpsynth.ledger-backup", internal=True),
    Call("ledger export -o ledger.json", "dpsynth.ledger-export", internal=True),
    Call(f"ledger sign {ENTRY}", "dpsynth.ledger-sign", internal=True),
    Call(f"ledger void {ENTRY} --reason test", "dpsynth.ledger-void", internal=True),
]
LINES = [call.line for call in CALLS]


def test_every_command_with_json_is_tested() -> None:
    with_json = {
        path
        for path, command in COMMANDS.items()
        if any("--json" in p.opts for p in command.params)
    }
    tested = {path for path in COMMANDS for line in LINES if line.startswith(" ".join(path))}
    # these have files of their own
    elsewhere = {("demo",), ("run",), ("ledger", "close"), ("evaluate",), ("compare",), ("audit",)}
    elsewhere |= {("keygen",), ("sign",), ("ledger", "forfeit")}
    assert with_json - tested == elsewhere


@pytest.mark.parametrize("call", CALLS, ids=LINES)
def test_json_has_kind_and_version_and_nothing_else_is_written(
    cli: Cli, office: None, cohort: Path, run_folder: Path, bundle: Path, call: Call
) -> None:
    ended = cli(*shlex.split(call.line), "--json")
    assert ended.code == 0 and ended.err == ""
    assert ended.json["kind"] == call.kind and ended.json["version"] == 1
    assert ended.json.get("internal", False) is call.internal


@pytest.mark.parametrize("call", CALLS, ids=LINES)
def test_quiet_is_silent_on_stderr(
    cli: Cli, office: None, cohort: Path, run_folder: Path, bundle: Path, call: Call
) -> None:
    ended = cli(*shlex.split(call.line), "--quiet")
    assert ended.code == 0 and ended.err == ""
    assert ended.out.strip()


@pytest.mark.parametrize("call", CALLS, ids=LINES)
def test_off_a_terminal_each_stage_is_one_line_without_numbers(
    cli: Cli, office: None, cohort: Path, run_folder: Path, bundle: Path, call: Call
) -> None:
    ended = cli(*shlex.split(call.line))
    assert ended.code == 0 and "\r" not in ended.err
    stages = [line for line in ended.err.splitlines() if line.endswith(" ...")]
    assert stages == [f"{stage} ..." for stage in call.steps]
    assert not re.search(r"\d", "".join(stages))
    assert not any(stage in ended.out for stage in stages)


def test_on_a_terminal_there_is_a_bar_in_per_cent(cohort: Path) -> None:
    """Per cent and the time left, never numbers of rows."""
    terminal, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dpsynth", "schema", "check", "demo", str(cohort)],
        stderr=other_end,
        stdout=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(other_end)
    seen = b""
    while select.select([terminal], [], [], 60)[0]:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(terminal)
    assert process.wait(timeout=60) == 0
    text = seen.decode()
    assert "reading" in text and "100%" in text and "#" in text
    assert not re.search(r"\d+/\d+", text)


def test_the_demo_goes_all_the_way(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth.cli.commands.demo.PATIENTS", 200)
    monkeypatch.setattr(
        "dpsynth.models.generators.warm_started.WARM_BATCH", 200
    )  # for the time it takes
    ended = cli("demo", "-o", "demo", "--json")
    assert ended.code == 0 and ended.err == ""
    document = ended.json
    assert document["kind"] == "dpsynth.demo" and document["version"] == 1
    assert document["internal"] is True
    assert cli("verify", document["bundle"]).code == 0
    for score in document["scores"].values():
        assert set(score) == {"value", "floor", "ceiling"}
        assert all(0 <= part <= 1 for part in score.values())
    assert [entry.status for entry in Ledger(Path("demo/ledger.sqlite")).entries()] == ["charged"]
    assert Ledger().entries() == []  # the user's own is left alone


def test_the_demo_replaces_nothing_but_a_demo(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refused = cli("demo", "-o", "mine")
    assert refused.code == 2 and "not a demo" in refused.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


# What single commands say ---------------------------------------------------------------------


def test_schema_list_names_those_that_ship(cli: Cli) -> None:
    assert cli("schema", "list", "--json").json["schemas"] == shipped_schemas()
    shown = cli("schema", "list").out
    assert all(name in shown for name in shipped_schemas())


@pytest.mark.parametrize("name", shipped_schemas())
def test_schema_show_is_a_schema(cli: Cli, tmp_path: Path, name: str) -> None:
    shown = cli("schema", "show", name)
    assert shown.code == 0
    (tmp_path / "mine.schema.yaml").write_text(shown.out)
    assert Schema.load(tmp_path / "mine.schema.yaml") == Schema.load(name)


def test_schema_check_lists_every_mistake_at_once(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("cardio").to_dict()
    del document["fields"][1]["constraints"]["minimum"]
    document["fields"][2]["type"] = "integr"
    document["dpsynth"]["populaton"] = 3
    (tmp_path / "mine.schema.yaml").write_text(yaml.safe_dump(document))
    refused = cli("schema", "check", "mine.schema.yaml")
    assert refused.code == 2
    for part in ("'age'", "minimum", "did you mean 'integer'", "did you mean 'population'"):
        assert part in refused.err, refused.err


def test_schema_check_refuses_a_draft(cli: Cli, tmp_path: Path) -> None:
    document = Schema.load("cardio").to_dict()
    document["dpsynth"]["draft"] = True
    (tmp_path / "mine.schema.yaml").write_text(yaml.safe_dump(document))
    refused = cli("schema", "check", "mine.schema.yaml")
    assert refused.code == 2 and "draft" in refused.err


def test_schema_check_with_data_counts_cells_by_hand(cli: Cli, tmp_path: Path) -> None:
    """Four visits: one bmi missing and one clipped, one unknown ward, one sbp unreadable."""
    visits = simulate(50, seed=1).astype(object).head(4)
    visits[["bmi", "sbp", "dbp"]] = [[25.0, 120, 80]] * 4
    visits["ward"] = ["medicine", "surgery", "cardiology", "SECRET"]
    visits["bmi"] = [25.0, "", 500.0, 30.0]
    visits["sbp"] = [120, 130, "high", 140]
    visits.to_csv(tmp_path / "visits.csv", index=False)
    found = cli("schema", "check", "demo", "visits.csv", "--json").json
    assert found["internal"] is True
    nothing = {"missing": 0.0, "clipped": 0.0, "unknown": 0.0, "bad": 0.0}
    assert found["cells"]["bmi"] == nothing | {"missing": 0.25, "clipped": 0.25}
    assert found["cells"]["ward"] == nothing | {"unknown": 0.25}
    assert found["cells"]["sbp"] == nothing | {"bad": 0.25}
    assert found["cells"]["dbp"] == nothing
    shown = cli("schema", "check", "demo", "visits.csv")
    assert "INTERNAL" in shown.out and "SECRET" not in shown.out + shown.err
    assert re.search(r"bmi +25\.00% +25\.00% +0\.00% +0\.00%", shown.out)


def test_schema_check_with_data_counts_units(cli: Cli, tmp_path: Path) -> None:
    """At most four visits count: of patients with 5, 2 and 1 visits a third has more."""
    visits = simulate(100, seed=1).head(10)
    visits["patient_id"] = ["a"] * 5 + ["b"] * 2 + ["c"] + [None] * 2
    visits.to_csv(tmp_path / "visits.csv", index=False)
    found = cli("schema", "check", "demo", "visits.csv", "--json").json
    assert found["units"] == {"keyless_rows": 2, "over_max_rows": pytest.approx(1 / 3)}
    shown = cli("schema", "check", "demo", "visits.csv").out
    assert "33.33%" in shown


def test_a_plan_names_every_mechanism(cli: Cli) -> None:
    shown = cli("plan", "demo", "--epsilon", "3", "--delta", "1e-6", "--model", "tvae")
    for words in ("one-way histograms", "two-way histograms", "DP-SGD steps"):
        assert words in shown.out
    assert (
        "column 'patient_id'" in shown.out
        and "at most 4 rows each" in shown.out
        and "5000 units" in shown.out
    )
    found = cli("plan", "demo", "--epsilon", "3", "--delta", "1e-6", "--json").json
    assert found["plan"]["composed_epsilon"] <= 3
    assert len(found["plan"]["events"]) == 3


@pytest.mark.smoke
def test_fit_sample_release_verify(cli: Cli, cohort: Path) -> None:
    """The main job, command by command."""
    fitted = cli("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run", "--json")
    assert fitted.json["epsilon"] == 3.0 and fitted.json["composed_epsilon"] <= 3.0
    assert fitted.json["ledger"]["fits"] == 1 and fitted.json["stamps"] == []
    drawn = cli("sample", "run", "--rows", "300", "--seed", "7", "-o", "table.parquet", "--json")
    assert drawn.json["rows"] == 300 and drawn.json["seed"] == 7
    released = cli("release", "run", "--table", "table.parquet", "-o", "bundle", "--json")
    assert "datapackage.json" in released.json["files"]
    checked = cli("verify", "bundle", "--json")
    assert checked.code == 0 and checked.json["verified"] is True and checked.json["checks"]


def test_a_refit_is_refused_before_it_is_charged(cli: Cli, cohort: Path) -> None:
    arguments = ("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o", "run")
    assert cli(*arguments).code == 0
    refused = cli(*arguments)
    assert refused.code == 2 and "exists" in refused.err
    shown = cli("ledger", "show", "--json").json
    assert shown["datasets"]["cohort"]["fits"] == 1


def test_fit_words_the_number_of_fits(cli: Cli, cohort: Path) -> None:
    arguments = ("fit", "demo", cohort, *BUDGET, "--model", "independent", "-o")
    assert "1 fit," in cli(*arguments, "first").out
    assert "2 fits, total epsilon 6" in cli(*arguments, "second").out


def test_the_dataset_may_come_from_the_environment(
    cli: Cli, cohort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_DATASET", "ward-7")
    budget = BUDGET[2:]
    assert cli("fit", "demo", cohort, *budget, "--model", "independent", "-o", "run").code == 0
    assert list(cli("ledger", "show", "--json").json["datasets"]) == ["ward-7"]


def test_ledger_show_lists_and_filters(cli: Cli, cohort: Path) -> None:
    place = Path("ledger.sqlite").rename("elsewhere.sqlite")
    assert "there is no ledger" in cli("ledger", "show").err
    place.rename("ledger.sqlite")
    for number, name in enumerate(("first", "second", "second")):
        changed = ["--dataset", name, *BUDGET[2:], "--purpose", f"try {number}"]
        fitted = cli("fit", "demo", cohort, *changed, "--model", "independent", "-o", f"r{number}")
        assert fitted.code == 0
    shown = cli("ledger", "show")
    assert shown.out.count("charged") == 3 and "try 2" in shown.out
    assert "first: 1 fit, total epsilon 3" in shown.out
    assert "second: 2 fits, total epsilon 6" in shown.out
    only = cli("ledger", "show", "--dataset", "second", "--json").json
    second = only["datasets"].pop("second")
    assert (second["fits"], second["epsilon"], second["delta"]) == (2, 6.0, 2e-6)
    assert only["datasets"] == {}
    assert [entry["purpose"] for entry in only["entries"]] == ["try 1", "try 2"]


def test_sample_is_repeatable_and_replaces_nothing(cli: Cli, run_folder: Path) -> None:
    for name in ("a.csv", "b.csv"):
        assert cli("sample", run_folder, "--rows", "30", "--seed", "5", "-o", name).code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    refused = cli("sample", run_folder, "--rows", "30", "--seed", "6", "-o", "a.csv")
    assert refused.code == 2 and "exists" in refused.err
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    forced = cli("sample", run_folder, "--rows", "30", "--seed", "6", "-o", "a.csv", "--force")
    assert forced.code == 0
    assert Path("a.csv").read_bytes() != Path("b.csv").read_bytes()


def test_sample_keeps_to_a_condition(cli: Cli, run_folder: Path) -> None:
    arguments = ("sample", run_folder, "--rows", "40", "--seed", "1", "-o")
    assert cli(*arguments, "old.csv", "--where", "age >= 80").code == 0
    import pandas as pd

    assert (pd.read_csv("old.csv")["age"] >= 80).all()
    refused = cli(*arguments, "none.csv", "--where", "age >= 800")
    assert refused.code == 2 and "age >= 800" in refused.err
    assert not Path("none.csv").exists()


def test_sample_without_a_seed_tells_the_one_it_took(cli: Cli, run_folder: Path) -> None:
    first = cli("sample", run_folder, "--rows", "10", "-o", "a.csv", "--json").json
    again = cli(
        "sample", run_folder, "--rows", "10", "--seed", first["seed"], "-o", "b.csv", "--json"
    ).json
    assert again["sha256"] == first["sha256"]


@pytest.mark.parametrize("output", ["out.xlsx", "folder", "run/nested.txt"])
def test_sample_refuses_an_output_that_it_cannot_write(
    cli: Cli, run_folder: Path, tmp_path: Path, output: str
) -> None:
    (tmp_path / "folder").mkdir()
    refused = cli("sample", run_folder, "--rows", "10", "--seed", "1", "-o", output)
    assert refused.code == 2 and "Traceback" not in refused.err


def test_sample_writes_nothing_into_a_bundle(cli: Cli, run_folder: Path, bundle: Path) -> None:
    before = sorted(bundle.rglob("*"))
    for options in ([], ["--replicates", "2"], ["--force"]):
        refused = cli(
            "sample", run_folder, "--rows", "10", "-o", bundle / "data" / "more.csv", *options
        )
        assert refused.code == 2 and "is inside the bundle" in refused.err
    assert sorted(bundle.rglob("*")) == before


# Completion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(cli: Cli, shell: str) -> None:
    script = cli("completion", shell)
    assert script.code == 0
    assert f"_DPSYNTH_COMPLETE={shell}_complete" in script.out


def test_the_bash_script_is_bash(cli: Cli) -> None:
    script = cli("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dpsynth sch", {"schema"}),
        ("dpsynth schema ", {"list", "show", "check"}),
        ("dpsynth plan cardio --model ", {*NAMES, "auto"}),
        ("dpsynth plan cardio --eps", {"--epsilon"}),
    ],
)
def test_completion_completes(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: str, offered: set[str]
) -> None:
    monkeypatch.setenv("_DPSYNTH_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert {line.split(",")[1] for line in cli().out.splitlines()} == offered
