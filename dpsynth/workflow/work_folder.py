"""The work folder of a run: what its stages leave for one another, and which settings they took.

It holds real rows (``split/``), the run, the table that was drawn, and ``stages.json``: for each
stage the settings that it took and the digests of what it made, and each entry of the ledger that a
fit was charged under. All of it is internal, and for its owner alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from dpsynth._util.messages import shown
from dpsynth._util.strict_json import (
    as_object,
    check_format,
    check_keys,
    read_document,
    text,
    whole,
    written,
)
from dpsynth.errors import ArtifactError, InputError
from dpsynth.files import (
    check_apart,
    check_vacant,
    described,
    is_leftover,
    remove_leftovers,
    write_atomically,
)
from dpsynth.ledger import Mark

FORMAT, VERSION = "dpsynth-stages", 1
DOCUMENT, SETTINGS, SCHEMA, LOCK = "stages.json", "settings.yaml", "fitted.schema.yaml", ".lock"


@dataclass(frozen=True)
class StageRecord:
    """One stage: the settings that it took, the digests of its files, and how long it took.

    Files of which only the content counts are among the settings by their SHA-256. ``seconds`` is
    None until the stage is done.
    """

    facts: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None


@dataclass(frozen=True)
class Attempt:
    """A fit that was reserved: the ledger's id, and its entry there."""

    ledger: str
    entry: str


@dataclass(frozen=True)
class Log:
    """What ``stages.json`` holds; ``ledger`` is how far the ledger was when it was last used."""

    seed: int
    stages: Mapping[str, StageRecord] = field(default_factory=dict)
    fits: tuple[Attempt, ...] = ()
    ledger: Mark | None = None

    @classmethod
    def read(cls, folder: str | Path) -> Self | None:
        """Read the log of a work folder; None where there is none.

        Raises:
            ArtifactError: it is damaged, or of another version.
        """
        path = Path(folder) / DOCUMENT
        if not path.is_file():
            return None
        document = read_document(path)
        check_format(document, str(path), FORMAT, VERSION)
        keys = ("format", "version", "internal", "seed", "stages", "fits")
        check_keys(document, str(path), keys, optional=("ledger",))
        try:
            stages = {
                name: StageRecord(as_object(stage["facts"], name), stage["files"], stage["seconds"])
                for name, stage in as_object(document["stages"], f"{path}: stages").items()
            }
            fits = tuple(Attempt(text(f["ledger"], "fits"), text(f["entry"], "fits"))
                         for f in document["fits"])  # fmt: skip
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{path} is damaged; choose another work folder") from error
        ledger = document.get("ledger")
        mark = None if ledger is None else Mark.from_dict(ledger, f"{path}: ledger")
        return cls(whole(document["seed"], f"{path}: seed", minimum=0), stages, fits, mark)

    def to_dict(self) -> dict[str, Any]:
        """Write the document; internal."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "internal": True,
            "seed": self.seed,
            "stages": {name: asdict(record) for name, record in self.stages.items()},
            "fits": [asdict(fit) for fit in self.fits],
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
        }


class WorkFolder:
    """A work folder that this process alone works in; see `open`."""

    def __init__(self, path: Path, log: Log) -> None:
        """Take a folder that is there, and its log."""
        self.path, self.log = path, log

    @classmethod
    @contextmanager
    def open(cls, path: str | Path, seed: int) -> Iterator[Self]:
        """Open a work folder, or make one, and keep other processes out.

        Args:
            path: the folder.
            seed: of the sampling; kept, unless a table was drawn with another one before.

        Raises:
            InputError: something else is there, another process is at work in it, or it cannot be
                written.
            ArtifactError: its log is damaged.
        """
        folder = Path(path)
        check_place(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.chmod(0o700)
            (folder / LOCK).touch(0o600)
            lock = (folder / LOCK).open("ab")
        except OSError as error:
            raise InputError(
                f"work folder {folder} cannot be written: {described(error)}"
            ) from error
        with lock:
            _lock(lock.fileno(), folder)
            remove_leftovers(folder, alone=True)
            log = Log.read(folder)
            work = cls(folder, log or Log(seed))
            if log is None:
                work.write(".gitignore", b"*\n")  # rows of patients are not for version control
            if log is None or ("sample" not in log.stages and log.seed != seed):
                work.log = replace(work.log, seed=seed)
                work._save()
            yield work

    def write(self, name: str, content: bytes) -> Path:
        """Write a file for its owner alone, in one step."""
        write_atomically(self.path / name, content, private=True)
        return self.path / name

    def record(self, stage: str) -> StageRecord | None:
        """Return what is known of a stage; None before it was started."""
        return self.log.stages.get(stage)

    def start(self, stage: str, facts: dict[str, Any]) -> None:
        """Note the settings that a stage takes, before it begins."""
        self._keep(stage, StageRecord(facts))

    def finish(self, stage: str, files: dict[str, str], seconds: float) -> None:
        """Note that a stage is done."""
        self._keep(stage, replace(self.log.stages[stage], files=files, seconds=round(seconds, 1)))

    def add_fit(self, ledger: str, entry: str) -> None:
        """Note a fit's entry in the ledger, before the fit may read."""
        self.log = replace(self.log, fits=(*self.log.fits, Attempt(ledger, entry)))
        self._save()

    def note_ledger(self, mark: Mark) -> None:
        """Note how far the ledger has come."""
        if mark != self.log.ledger:
            self.log = replace(self.log, ledger=mark)
            self._save()

    def require_same(self, stage: str, facts: dict[str, Any], remedy: str) -> None:
        """Refuse settings that are not those which a stage took; say what can be done.

        Raises:
            InputError: every difference is named; no digest is shown.
        """
        record = self.record(stage)
        changes = [] if record is None else differences(record.facts, facts)
        if changes:
            raise InputError(
                f"stage {stage} in {self.path} was made with other settings: {'; '.join(changes)}. "
                f"{remedy}"
            )

    def _keep(self, stage: str, record: StageRecord) -> None:
        self.log = replace(self.log, stages={**self.log.stages, stage: record})
        self._save()

    def _save(self) -> None:
        self.write(DOCUMENT, written(self.log.to_dict()))


def check_place(folder: Path) -> None:
    """Refuse a place for a work folder that is taken by something else.

    Raises:
        InputError: with the reason.
    """
    check_apart(folder)
    if not folder.is_dir() or folder.is_symlink():
        check_vacant(folder)
    elif not (folder / DOCUMENT).is_file():
        names = {path.name for path in folder.iterdir() if not is_leftover(path)}
        if names - {LOCK, ".gitignore"}:
            raise InputError(f"{folder} exists but is not a work folder; choose another name")


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Word what differs between settings.

    >>> differences({"epsilon": 3.0, "file: data": "ab"}, {"epsilon": 2.0, "file: data": "cd"})
    ['epsilon was 3.0 and is 2.0', 'the file for data has another content']
    >>> differences({"about": {"title": "A"}}, {"about": {"title": "B"}})
    ["about.title was 'A' and is 'B'"]
    """
    words = []
    for name in {**before, **now}:
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            words += [f"{name}.{change}" for change in differences(old, new)]
        elif not name.startswith("file: "):
            words.append(f"{name} was {shown(old)} and is {shown(new)}")
        elif old is None or new is None:
            words.append(
                f"{name.removeprefix('file: ')} was {'left out' if old is None else 'set'}"
            )
        else:
            words.append(f"the file for {name.removeprefix('file: ')} has another content")
    return words


def _lock(descriptor: int, folder: Path) -> None:
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"another process is working in {folder}; wait until it has ended"
            ) from None
