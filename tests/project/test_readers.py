"""Documents are read by one reader: plain files of a limited size, never a pipe or a device."""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from dpsynth._util import whole_files
from dpsynth._util.whole_files import read_whole
from dpsynth.errors import ArtifactError, InputError

from ..support.command_line import Cli
from ..support.source_code import ROOT, nodes_of

SOURCES = sorted(
    path
    for room in ("dpsynth", "models", "eval")
    for path in (ROOT / room).rglob("*.py")
    if not path.is_relative_to(ROOT / "dpsynth/models")
    and not path.is_relative_to(ROOT / "dpsynth/eval")
)

READS = {"read_text", "read_bytes", "load_all", "safe_load", "full_load", "unsafe_load", "fdopen"}
READS |= {"read_csv", "read_json", "read_excel", "read_table", "read_fwf", "fromfile", "loadtxt"}
OWN = {"read_table"}  # of dpsynth, which checks the kind of its file
PARSERS = {"json", "yaml", "tomllib", "np", "numpy", "torch"}
ALLOWED = {
    # the reader itself, and a digest of files whose kind is known
    "dpsynth/_util/whole_files.py": "fdopen, os.open",
    "dpsynth/_util/strict_json.py": "open",
    # parts of the package itself
    "dpsynth/assessment/fitted_controls.py": "read_bytes",
    "dpsynth/certificate/certificate.py": "read_text",
    "dpsynth/draft/clinical.py": "read_text",
    "dpsynth/draft/clinical_edits.py": "read_text",
    "dpsynth/draft/sheets.py": "open",  # a part within a workbook
    "dpsynth/draft/stems.py": "read_text",
    "dpsynth/schema/code_systems/code_lists.py": "read_text",
    "dpsynth/schema/files.py": "read_bytes",
    "eval/gates.py": "read_text",
    # tables, after `check_file` or `require_plain`
    "dpsynth/draft/header.py": "open",
    "dpsynth/draft/statistics_file.py": "open",
    "dpsynth/encoding/strict_table.py": "open",
    "dpsynth/stats/perturbing.py": "read_bytes",
    "dpsynth/stats/local.py": "open",
    "dpsynth/schema/code_systems/code_files.py": "open, read_csv",
    "dpsynth/synthesis/completion.py": "read_csv",
    "dpsynth/tables/checks.py": "open",
    "dpsynth/tables/csv.py": "open",
    "dpsynth/tables/formats.py": "open",
    "dpsynth/tables/json_lines.py": "open",
    "dpsynth/tables/reference.py": "open",
    "dpsynth/tables/statistical.py": "open",
    "dpsynth/tables/workbooks.py": "open",
    # files of the kernel
    "dpsynth/_util/memory_limit.py": "read_text",
    # bytes that were read
    "dpsynth/draft/dictionary.py": "read_bytes",
    "dpsynth/stats/labels.py": "read_csv",
    # locks, temporary files, and what is written
    "dpsynth/_util/engines.py": "os.open",
    "dpsynth/cli/process.py": "os.open",
    "dpsynth/files/atomic.py": "fdopen, os.open, read_text",
    "dpsynth/files/output_claim.py": "os.open",
    "dpsynth/files/updates.py": "os.open",
    "dpsynth/encoding/shards.py": "fdopen",
    "dpsynth/office/job.py": "os.open",
    "dpsynth/synthesis/checkpoints.py": "open",
}


def readers(nodes: Iterable[ast.AST]) -> set[str]:
    """Name what a file reads files with; files that are opened to be written are none."""
    found = set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        words = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        words += [
            word.value.value
            for word in node.keywords
            if word.arg == "mode" and isinstance(word.value, ast.Constant)
        ]
        writes = any(isinstance(word, str) and set(word) <= set("wabx+") for word in words)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        owner = ""
        if isinstance(node.func, ast.Attribute):
            name = node.func.attr
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        if name == "open" and owner == "os":
            found.add("os.open")
        elif name == "open" and not writes and not owner[:1].isupper():
            found.add("open")
        elif name in READS - (OWN if not owner else set()):
            found.add(name)
        elif name == "load" and owner in PARSERS:
            found.add(f"{owner}.load")
    return found


@pytest.mark.parametrize(
    "source",
    [
        "path.read_text()",
        "Path(x).read_bytes()",
        "open(x)",
        "path.open('rb')",
        "import json\njson.load(file)",
        "yaml.safe_load(file)",
        "os.open(x, 0)",
        "pd.read_csv(x)",
    ],
)
def test_another_reader_is_found(source: str) -> None:
    assert readers(ast.walk(ast.parse(source)))
    assert not readers(ast.walk(ast.parse("path.open('wb'); open(x, 'x'); Store.open(x)")))


def test_there_is_one_reader() -> None:
    found = {path.relative_to(ROOT).as_posix(): readers(nodes_of(path)) for path in SOURCES}
    assert {path: ", ".join(sorted(names)) for path, names in found.items() if names} == ALLOWED


@pytest.fixture(params=["pipe", "zero", "folder", "missing", "null", "link to zero", "large"])
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "request.yaml"
    match request.param:
        case "pipe":
            os.mkfifo(path)
        case "zero":
            return Path("/dev/zero")
        case "folder":
            path.mkdir()
        case "null":
            return Path("a\0b.yaml")
        case "link to zero":
            path.symlink_to("/dev/zero")
        case "large":
            with path.open("wb") as file:
                file.truncate(2**33)
    return path


def test_what_is_not_a_plain_small_file_is_refused_in_words(bad: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_whole(bad, largest=2**20, noun="request")
    assert str(caught.value).startswith(f"request {str(bad).replace(chr(0), chr(92) + 'x00')} ")


def test_links_and_growing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    assert read_whole(tmp_path / "link", largest=3) == b"abc"
    with pytest.raises(ArtifactError, match="links and pipes are not followed"):
        read_whole(tmp_path / "link", largest=3, links=False, error=ArtifactError)
    # a file that grew, or became a pipe, after its kind was looked at
    monkeypatch.setattr(whole_files, "require_plain", lambda *_, **__: None)
    with pytest.raises(InputError, match="larger than 2 bytes; it is not"):
        read_whole(tmp_path / "file", largest=2, never="it is not")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a plain file"):
        read_whole(tmp_path / "pipe", largest=2)


COMMANDS = {
    "schema": ("schema", "check", "X"),
    "linked schema": ("plan", "X", "--epsilon", "1", "--delta", "1e-6"),
    "policy": ("ledger", "policy", "X"),
    "policy of a plan": ("plan", "demo", "--epsilon=1", "--delta=1e-6", "--policy", "X"),
    "request": ("stats", "X", "--epsilon", "1", "--delta", "1e-6"),
    "linkage": ("linkage", "X", "--epsilon", "1", "--delta", "1e-6"),
    "about": ("release", "run", "-o", "out", "--about", "X"),
    "settings": ("run", "--config", "X"),
    "gates": ("evaluate", "demo", "table.csv", "--synthetic", "table.csv", "--gates", "X"),
    "key": ("verify", ".", "--key", "X"),
    "private key": ("sign", ".", "--key", "X"),
    "draft": ("schema", "draft", "--from", "X", "-o", "new.yaml"),
    "opt-out": ("split", "demo", "table.csv", "-o", "sides", "--opt-out", "X"),
    "table": ("schema", "check", "demo", "X"),
    "rows to complete": ("sample", "run", "-o", "out.csv", "--like", "X"),
    "query": ("schema", "check", "demo", "sqlite:///table.db", "--query", "X"),
    "reports": ("local", "estimate", "X"),
}


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_no_command_reads_a_pipe_or_a_device(
    kind: str, make: Callable[[Path], None], command_line: Cli, run_folder: Path, tmp_path: Path
) -> None:
    suffix = {"reports": ".csv", "draft": ".csv", "table": ".csv", "opt-out": ".txt"}.get(kind)
    path = tmp_path / f"x{suffix or '.yaml'}"
    make(path)
    (tmp_path / "table.csv").write_text("patient,sex\n1,F\n")
    signal.alarm(60)  # ends the process
    done = command_line(*(str(path) if word == "X" else word for word in COMMANDS[kind]))
    signal.alarm(0)
    assert done.code == 2 and path.name in done.err, done.err
