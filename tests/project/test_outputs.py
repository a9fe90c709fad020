"""Text leaves the program by `dpsynth._util.output` alone, and nothing in it obeys a terminal."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pytest

from dpsynth._util import output
from dpsynth._util.html import environment
from dpsynth._util.output import Drawing, Neutral, write_json, write_line, write_text
from dpsynth._util.strict_json import parsed, written
from dpsynth._util.strict_yaml import parse_yaml, yaml_text
from dpsynth.errors import DpsynthError, DpsynthWarning, InputError, Problem, SchemaError

from ..support.source_code import ROOT, nodes_of

SOURCES = sorted(
    path for room in ("dpsynth", "models", "eval") for path in (ROOT / room).rglob("*.py")
    if not path.is_relative_to(ROOT / "dpsynth/models")
    and not path.is_relative_to(ROOT / "dpsynth/eval")
)  # fmt: skip

STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
SAYS = {"echo", "secho", "echo_via_pager", "print_exc", "print_exception", "print_stack", "pprint"}
SAYS |= {
    "StreamHandler",
    "basicConfig",
    "lastResort",
    "showwarning",
    "prompt",
    "confirm",
    "write_fd",
}
SAYS |= {"getpass", "progressbar", "displayhook", "excepthook", "print", "get_text_stream"}
ALLOWED = {
    "dpsynth/_util/output.py": {"stdout", "stderr"},
    "dpsynth/cli/process.py": STREAMS,  # puts neutral streams in their place
    # asks whether it is a terminal, and draws its bar there, on `Drawing`, with a neutral label
    "dpsynth/cli/console.py": {"stderr", "progressbar"},
    "dpsynth/cli/group.py": {"showwarning"},  # into `write_line`
    "dpsynth/cli/commands/signing.py": {"prompt"},  # asks for a passphrase, in words of its own
}


def sinks(nodes: Iterable[ast.AST]) -> set[str]:
    """Name what a file could write to a screen with."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            is_stream = node.attr in STREAMS and isinstance(node.value, ast.Name)
            if node.attr in SAYS or (is_stream and node.value.id == "sys"):
                found.add(node.attr)
            if node.attr == "write" and isinstance(node.value, ast.Name) and node.value.id == "os":
                found.add("os.write")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found |= {node.func.id} & SAYS
        elif isinstance(node, ast.ImportFrom) and node.module in ("sys", "click", "traceback"):
            found |= {name.name for name in node.names} & (STREAMS | SAYS)
    return found


@pytest.mark.parametrize(
    "source",
    [
        "print(name)",
        "import sys\nsys.stdout.write(name)",
        "from sys import stderr\nstderr.write(name)",
        "import click\nclick.echo(name)",
        "import os\nos.write(2, name)",
        "import traceback\ntraceback.print_exc()",
        "import logging\nlogging.StreamHandler()",
    ],
)
def test_another_way_to_a_screen_is_found(source: str) -> None:
    assert sinks(ast.walk(ast.parse(source)))


def test_there_is_one_way_to_a_screen() -> None:
    ways = {path.relative_to(ROOT).as_posix(): sinks(nodes_of(path)) for path in SOURCES}
    assert len(ways) > 400
    assert {path: found for path, found in ways.items() if found} == ALLOWED


OBEYED = [
    chr(i)
    for i in range(sys.maxunicode + 1)
    if unicodedata.category(chr(i)) in ("Cc", "Cf", "Zl", "Zp") and chr(i) not in "\n\t"
]
READABLE = "Zoë Müller, مريم, 山田, שרה, à\u00a0la, Ωμέγα, 🧬"


def clean(text: str) -> bool:
    return not any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") for c in text)


def test_what_a_terminal_obeys_is_escaped_and_names_stay_readable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert len(OBEYED) > 200
    hostile = "".join(OBEYED) + "\ud800"
    write_line(f"{READABLE} {hostile}\nverified")
    write_text(f"{READABLE} {hostile}\n\tnext\n", err=True)
    said = capsys.readouterr()
    assert clean(said.out[:-1]) and said.out.startswith(READABLE) and said.out.count("\n") == 1
    assert clean(said.err.replace("\n", "").replace("\t", "")) and said.err.count("\n") == 2
    write_json({"name": READABLE + "".join(OBEYED)})
    shown = capsys.readouterr().out
    assert shown.isascii() and clean(shown.replace("\n", ""))
    assert json.loads(shown) == {"name": READABLE + "".join(OBEYED)}


def test_a_stream_lets_only_drawings_through() -> None:
    raw = io.BytesIO()
    stream = Neutral(raw, encoding="utf-8", write_through=True)
    print("a\x1b[2Jb", "\u202ec", file=stream)
    assert raw.getvalue() == b"a\\x1b[2Jb \\u202ec\n"
    Drawing(stream).write("\r\x1b[2K")
    assert raw.getvalue().endswith(b"\n\r\x1b[2K")


@pytest.mark.parametrize(
    "name", ["x\nverified", "x\r\nok  all", "x\u2028ok", "x\x1b[1;1Hok", "x\x9bA"]
)
def test_a_name_in_a_message_makes_no_line(name: str) -> None:
    assert str(InputError(f"{name} is missing")).isprintable()
    assert str(DpsynthWarning(f"{name} is missing")).isprintable()
    listed = str(SchemaError(name, [Problem(name, name)] * 2)).split("\n")
    assert len(listed) == 3 and all(line.isprintable() for line in listed)
    assert all(line.startswith("  ") for line in listed[1:])

    class Raw(DpsynthError):
        def __str__(self) -> str:
            return Exception.__str__(self)

    assert not str(Raw(f"{name} is missing")).isprintable()


def test_a_list_within_a_message_becomes_one_line() -> None:
    several = SchemaError("a.yaml", [Problem("x", "is bad"), Problem("y", "is worse")])
    assert str(InputError(f"run: {several}")) == (
        "run: schema a.yaml has 2 mistakes: x: is bad; y: is worse"
    )


def test_documents_hold_nothing_that_a_terminal_obeys() -> None:
    """JSON and YAML files say the same, in escapes; a text without such characters is as it was."""
    hostile = {"na\u202eme": READABLE + "".join(OBEYED) + "\n\t", "list": ["\x7f", "a: \u200b"]}
    for text, read in (
        (written(hostile), lambda content: parsed(content, "x")),
        (yaml_text(hostile).encode(), lambda content: parse_yaml(content, "x")),
    ):
        assert clean(text.decode().replace("\n", "")) and read(text) == hostile
    plain = {"name": READABLE}
    assert written(plain).decode() == json.dumps(plain, indent=2, ensure_ascii=False) + "\n"
    page = environment("dpsynth.bundle.pages").from_string("<p>{{ x }}</p>{{ x|upper }}")
    assert clean(page.render(x="".join(OBEYED).replace("\n", "")))


HOSTILE = """
import logging, sys, warnings
from dpsynth.cli import main
from dpsynth.cli.group import commands
bad = "a\\x1b[2J\\x1b[Hverified\\u202e\\x9b\\r"
@commands.command()
def hostile():
    warnings.warn(bad, UserWarning)
    logging.getLogger("x").error(bad)
    print(bad)
    raise {what}
from dpsynth.cli import group
group._COMMANDS["hostile"] = (__name__, "hostile")
main(["hostile"])
"""


@pytest.mark.parametrize("what", ["RuntimeError(bad)", "KeyError(bad)", "SystemExit(bad)"])
@pytest.mark.parametrize("debug", ["", "1"])
def test_no_stream_of_the_process_obeys(what: str, debug: str, tmp_path: Path) -> None:
    """Prints, warnings, logs and tracebacks of libraries, in a process of its own."""
    script = tmp_path / "hostile.py"
    script.write_text(HOSTILE.replace("{what}", what))
    env = {key: value for key, value in os.environ.items() if key != "DPSYNTH_DEBUG"}
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        env=env | ({"DPSYNTH_DEBUG": debug} if debug else {}),
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode and "\\x1b[2J" in said, said
    assert clean(said.replace("\n", "").replace("\t", ""))


def test_a_broken_sink_is_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "printable", lambda text, keep="": text)
    write_line("a\x1b[2J")
    assert not clean(capsys.readouterr().out.replace("\n", ""))
