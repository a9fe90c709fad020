"""The commands of the guides exist, and the tutorials run as they stand.

In a page, a block of ``bash`` or ``python`` is what a reader copies; other blocks show output. A
comment before a block says what a test cannot see: ``<!-- ends with 4 -->`` is its exit code,
``<!-- not run: why -->`` leaves it out.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from dpsynth.cli.group import commands

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = [DOCS / "runbook.md", DOCS / "dpo.md", *sorted((DOCS / "tutorials").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<note>[^>]*) -->\n\n)?^```(?P<kind>bash|python)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


# commands ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """What a reader copies: its page, language and text, and what is said of it."""

    page: Path
    kind: str
    text: str
    note: str

    @property
    def ends(self) -> set[int]:
        """The exit codes that it may end with."""
        return {int(code) for code in re.findall(r"\d+", self.note)} or {0}


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    return [
        Block(page, one["kind"], one["text"], one["note"] or "")
        for one in BLOCK.finditer(page.read_text())
    ]


def invocations(text: str) -> Iterator[list[str]]:
    """Find the calls of dpsynth in lines of a shell: their arguments."""
    text = re.sub(r"<<'(\w+)'\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line.replace("$(", " ; "), posix=True, punctuation_chars="();&|<>")
        lexer.whitespace_split, words = True, []
        for word in [*lexer, ";"]:
            if word and set(word) <= set("();&|<>"):
                while words and (re.match(r"\w+=", words[0]) or words[0] in ("do", "then")):
                    words.pop(0)
                if words and words[0].rpartition("/")[2] == "dpsynth":
                    yield [re.sub(r"\$\w+", "1", argument) for argument in words[1:]]
                words = []
            else:
                words.append(word)


def check(arguments: list[str]) -> None:
    """Parse a call as the command line does, without carrying it out."""
    command: click.Command = commands
    name, rest = "dpsynth", list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name, context = rest.pop(0), click.Context(command)
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command = found
    try:
        command.make_context(name, rest)
    except click.exceptions.Exit as stop:  # --version
        assert stop.exit_code == 0


CALLS = [(page, call) for page in GUIDES for block in blocks(page) if block.kind == "bash"
         for call in invocations(block.text)]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "call"), CALLS, ids=[f"{page.stem}:{' '.join(call[:2])}" for page, call in CALLS]
)
def test_every_command_in_a_guide_exists_with_its_options(page: Path, call: list[str]) -> None:
    check(call)


def test_calls_are_found_in_lines_of_a_shell() -> None:
    text = (
        "A=b dpsynth fit x y --epsilon $E \\\n  -o run/ > log   # dpsynth not\n"
        "cat > f <<'END'\ndpsynth: not\nEND\nE=$(dpsynth ledger show | python -c 'dpsynth(1)')\n"
        "for E in 1 2; do\n env/bin/dpsynth plan demo; done\n"
    )
    assert list(invocations(text)) == [
        ["fit", "x", "y", "--epsilon", "1", "-o", "run/"],
        ["ledger", "show"],
        ["plan", "demo"],
    ]
    assert len(CALLS) > 60


@pytest.mark.parametrize("line", ["fitt x", "verify", "verify b --kee k", "plan demo --epsilon x"])
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    with pytest.raises((AssertionError, click.UsageError)):
        check(line.split())


# tutorials --------------------------------------------------------------------------------------

CLIENT = f"""#!{sys.executable} -SE
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as wire:
    wire.connect(os.environ["DESK"])
    order = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(wire, [order], [0, 1, 2])
    sys.exit(wire.recv(1)[0])
"""
DESK = """# dpsynth, imported once: a small audit, an evaluation and attacks that find nothing
import json, os, socket, sys

import dpsynth.bundle.verifier, dpsynth.bundle.writer, dpsynth.workflow.runner
from dpsynth.assessment import attack_audit, training_audit
from dpsynth.workflow import subjects
from dpsynth.cli import main
from dpsynth._util.strict_json import file_digest
from dpsynth.eval.attacks import Control
from dpsynth.assessment.results_folder import EVALUATION, PAGE, write_results


def evaluated(schema, source, candidate, *rest, output, **more):
    document = {"tables": {"synthetic": {"sha256": file_digest(candidate.table)}}, "gates": []}
    write_results(output, {EVALUATION: document}, {PAGE: "page"})


passed = Control("copied", "Copies", "positive", "memorization:copies", True, "seen")
subjects.evaluate = evaluated
attack_audit.attacked = lambda *rest, **more: ({}, [])
attack_audit.fitted_controls = lambda *rest: [passed]
attack_audit.internal_page = lambda *rest, **more: "page"
training_audit.BACKGROUND = 200
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1] + ".new")
server.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    wire, _ = server.accept()
    order, streams, _, _ = socket.recv_fds(wire, 2**20, 3)
    if child := os.fork():
        for stream in streams:
            os.close(stream)
        wire.close()
        os.waitpid(child, 0)
        continue
    code = 1
    try:
        arguments, folder, environment = json.loads(order)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        arguments = ["independent" if one == "mixture" else one for one in arguments]
        if arguments[0] == "run":
            arguments += ["--canaries", "60"]
        main(arguments)
    except SystemExit as stop:
        code = stop.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        wire.send(bytes([code]))
        os._exit(0)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The socket of a process that carries out what the command line is told."""
    with tempfile.TemporaryDirectory(prefix="desk") as short:  # a socket's path is short
        place = f"{short}/desk"
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen([sys.executable, "-c", DESK, place], env=environment)
        try:
            while not Path(place).exists():
                assert process.poll() is None
                time.sleep(0.05)
            yield place
        finally:
            process.terminate()
            process.wait()


def terminal(folder: Path, server: str = "") -> tuple[Path, dict[str, str]]:
    """Give an empty folder, and an environment with dpsynth as the server has it."""
    (folder / "bin").mkdir()
    (folder / "bin" / "dpsynth").write_text(CLIENT)
    (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in (folder / "bin").iterdir():
        program.chmod(0o755)
    kept = {name: one for name, one in os.environ.items() if not name.startswith("DPSYNTH_")}
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{kept['PATH']}"
    kept |= {"PATH": path, "OMP_NUM_THREADS": "1", "HOME": str(folder), "DESK": server}
    return folder, kept


def run_blocks(
    page: Path, folder: Path, environment: dict[str, str], bundle: str = "bundle"
) -> str:
    """Run a page's blocks one after the other, as in one terminal; return all that they print."""
    output = ""
    for number, one in enumerate(blocks(page)):
        if one.note.startswith("not run"):
            continue
        text = one.text.replace("simulate(20000", "simulate(600").replace("bundle/", f"{bundle}/")
        text = text.replace("simulate_cohort(10000", "simulate_cohort(400").replace("8000", "300")
        if one.kind == "python":
            text = f"python - <<'END'\n{text}END\n"
        state = folder / "state"  # folder and variables go from block to block
        begin = f"set -e; [ ! -f {state} ] || . {state}\n"
        end = f"trap 'code=$?; export -p > {state}; echo \"cd $PWD\" >> {state}; exit $code' EXIT\n"
        done = subprocess.run(
            ["bash", "-c", begin + end + text],
            **{"capture_output": True, "text": True, "cwd": folder, "env": environment},  # type: ignore[call-overload]
        )
        output += done.stdout + done.stderr
        assert done.returncode in one.ends, f"block {number} of {page.name}:\n{text}\n{output}"
    return output


@pytest.mark.long
def test_the_tutorial_for_an_office_runs(tmp_path: Path, server: str) -> None:
    output = run_blocks(DOCS / "tutorials" / "office.md", *terminal(tmp_path, server))
    folder = tmp_path / "office"
    assert (folder / "bundle" / "datapackage.json.sig").is_file()
    assert "Signature Verified Successfully" in output and "verification failed with" in output
    assert (folder / "ledger.html").is_file()
    assert "Processing. From the table" in (folder / "draft.txt").read_text()


@pytest.mark.long
def test_the_tutorial_for_scripts_runs(tmp_path: Path, server: str) -> None:
    output = run_blocks(DOCS / "tutorials" / "script.md", *terminal(tmp_path, server))
    assert "written, nothing found" in output and "Traceback" not in output


@pytest.mark.long
def test_the_tutorial_for_cohorts_runs(tmp_path: Path, server: str) -> None:
    output = run_blocks(DOCS / "tutorials" / "cohort.md", *terminal(tmp_path, server))
    folder = tmp_path / "cohort"
    assert (folder / "bundle" / "datapackage.json.sig").is_file()
    assert (folder / "internal" / "histories.html").is_file()
    assert "keys agree: every row of 3 tables" in output and "diabetes" in output


@pytest.mark.long
def test_what_reads_a_bundle_in_the_tutorial_for_benchmarks_runs(
    tmp_path: Path, bundle: Path, server: str
) -> None:
    page = DOCS / "tutorials" / "benchmark.md"
    output = run_blocks(page, *terminal(tmp_path, server), bundle=str(bundle))
    assert (tmp_path / "bench" / "bench.schema.json").is_file()
    assert "300" in output and "max_rows" in output
