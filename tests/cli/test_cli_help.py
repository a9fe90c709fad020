"""Help, examples, ways to start, and completion."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dpsynth
from dpsynth.cli.group import HelpfulGroup, commands
from dpsynth.models.registry import KNOWN

from ..support.command_line import COMMANDS, PATHS, Cli

FIRST = "For a first release, in this order"
HEAVY = ("torch", "pandas", "numpy", "sqlalchemy", "pyarrow")


@pytest.mark.parametrize("path", PATHS)
def test_help_shows_an_example_of_the_command(cli: Cli, path: str) -> None:
    ended = cli(*path.split(), "--help")
    assert ended.code == 0 and ended.err == ""
    assert re.search(rf"Example: .*dpsynth {path}", " ".join(ended.out.split())), ended.out


@pytest.mark.parametrize("path", ["", *PATHS])
def test_help_is_laid_out(cli: Cli, path: str) -> None:
    """Above the options: paragraphs two blanks in, single blanks between words."""
    ended = cli(*path.split(), "--help")
    text = re.split(r"\n(?:Options|Commands):\n", ended.out)[0].splitlines()[1:]
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
        target: click.Command = commands
        rest = [*context._protected_args, *context.args]
        while isinstance(target, click.Group):
            name, inner, rest = target.resolve_command(context, rest)
            assert inner is not None
            target = inner
            context = target.make_context(name, list(rest), parent=context)
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
    for arguments, heading in (([], FIRST), (["schema"], "Commands"), (["ledger"], "Commands")):
        ended = cli(*arguments)
        assert ended.code == 2 and f"\n{heading}:\n" in ended.err + ended.out


def test_the_help_begins_with_the_way_to_a_first_release(cli: Cli) -> None:
    """Six commands, on the first page of a small terminal; each other one under one heading."""
    lines = cli("--help").out.splitlines()
    first = lines.index(f"{FIRST}:")
    names = [line.split()[0] for line in lines[first + 1 : first + 7]]
    assert names == ["schema", "run", "evaluate", "release", "verify", "ledger"]
    assert first + 7 <= 24 and lines[first + 7] == ""
    context = click.Context(commands)
    assert isinstance(commands, HelpfulGroup)
    listed = [name for names in commands.sections(context).values() for name in names]
    assert listed == commands.list_commands(context) and len(listed) == len(set(listed))


@pytest.mark.parametrize("option", ["--epsilon", "--delta"])
@pytest.mark.parametrize("path", ["plan", "fit"])
def test_privacy_parameters_have_no_default(path: str, option: str) -> None:
    (parameter,) = (p for p in COMMANDS[(path,)].params if option in p.opts)
    assert not isinstance(parameter.default, int | float)
    words = {"--epsilon": "1", "--delta": "1e-6", "--dataset": "x"}
    del words[option]
    if path == "plan":
        del words["--dataset"]
    arguments = [word for pair in words.items() for word in pair]
    data = ["rows.csv", "-o", "run"] if path == "fit" else []
    result = CliRunner().invoke(commands, [path, "cardio", *data, *arguments])
    assert result.exit_code == 2 and f"'{option}'" in result.output


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
        ("dpsynth schema ", {"list", "show", "draft", "check"}),
        ("dpsynth plan cardio --model ", {*KNOWN, "auto"}),
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


GROUPS = ["", *(path for path in PATHS if isinstance(COMMANDS[tuple(path.split())], click.Group))]


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("path", GROUPS)
def test_no_summary_of_a_command_is_cut(path: str, columns: int) -> None:
    """Each command of a group is listed with its first sentence, whole, however narrow it is."""
    group = COMMANDS[tuple(path.split())] if path else commands
    assert isinstance(group, click.Group)
    shown = CliRunner().invoke(group, ["--help"], terminal_width=columns).output
    _, _, listed = shown.partition("\nCommands:\n" if path else f"\n{FIRST}:\n")
    listed = " ".join(listed.split())
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None and command.help is not None
        summary = " ".join(command.help.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
        assert f"{name} {summary}." in listed
    if columns == 80:
        assert "..." not in listed


def test_a_group_that_cuts_is_caught() -> None:
    """click's own group cuts what is longer than the line."""

    @click.command(help="Say in very many words what this command does, " + "and more " * 10)
    def wordy() -> None:
        pass

    cutting = click.Group("cutting", commands={"wordy": wordy})
    assert "..." in CliRunner().invoke(cutting, ["--help"], terminal_width=80).output
