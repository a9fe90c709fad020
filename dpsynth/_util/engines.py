"""Engines: this process, workers of this machine, or a Dask cluster, and what each promises.

What every engine promises, how callers check it, and the engine that is this process.

A piece of work has a number and an answer. What it does depends on its number and on the work
alone, and it changes nothing but its own numbered output, if it has any. So it may be done again
after a worker was lost, by any worker, and its answer is taken once.

Work that an engine failed at, done again by this process, so that what was charged is not lost.

Answers of the engine are thrown away before: no piece is taken from both.

Workers of a Dask cluster, on as many machines as it has.

The scheduler and its workers belong to the office: whoever can reach them can run programs on them,
and answers hold private codes. So nothing is sent in the clear between machines, nothing is spilled
to disks, and Dask sees objects that show none of their values in its logs. What a worker gets is
the work and a number; no ledger, plan or noise is within its reach.
"""

from __future__ import annotations

import ipaddress
import os
import platform
import secrets
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from dpsynth._util.short_repr import short_repr
from dpsynth._util.workers import Work, WorkerPool, outcome_of
from dpsynth._version import __version__
from dpsynth.errors import DpsynthError, DpsynthWarning, InputError

if TYPE_CHECKING:
    from distributed import Client, Future, Worker


Answer = TypeVar("Answer")
Take = Callable[[int, Answer], None]
Answers = Generator[tuple[int, Answer], None, None]
"""Numbers of pieces with their answers. Closing it ends the work."""


class Engine(Protocol):
    """Does numbered pieces of one kind of work: in this process, in others, or on other machines.

    Attributes:
        at_once: how many pieces it works on at once; cut the work into a few times as many.
        distant: whether other machines work: then files that pieces read or write have to be in a
            folder that all of them see.
    """

    @property
    def at_once(self) -> int:
        """How many pieces it works on at once."""
        ...

    @property
    def distant(self) -> bool:
        """Whether other machines work."""
        ...

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Do pieces 0 to ``count - 1`` and yield each number once with its answer, in any order.

        At most a few pieces for each worker are begun before their answers are taken. A piece whose
        worker is lost is done again. Closing the iterator ends the work. Callers use `each_once`,
        which closes it and checks the numbers.

        Raises:
            DpsynthError: a piece failed; an `InputError` stays one. Or too many workers were lost.
        """
        ...


class InProcess:
    """The engine that is this process: piece after piece, in order."""

    at_once = 1
    distant = False

    def __repr__(self) -> str:
        """Name it."""
        return short_repr(self, "this process")

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Do each piece when its answer is asked for."""
        for number in range(count):
            yield number, work(number)


@dataclass(frozen=True)
class Numbered(Generic[Answer]):
    """Work whose answers say which piece they are of, wherever it is done."""

    work: Work[Answer]

    def __repr__(self) -> str:
        """Show what the work shows: logs of other programs may quote it."""
        return short_repr(self, repr(self.work))

    def warm(self) -> None:
        """Do the same."""
        self.work.warm()

    def __call__(self, number: int) -> tuple[int, Answer]:
        """Do a piece."""
        return number, self.work(number)


def each_once(engine: Engine, work: Work[Answer], count: int, take: Take[Answer]) -> None:
    """Do all pieces, and take each answer as it comes, in any order.

    The numbers that come back are checked against those that were given out, and each answer says
    itself of which piece it is. So an engine that loses an answer, gives one twice, or gives that
    of another piece is found out, and no row is missing or counted twice.

    Args:
        engine: who does the work.
        work: what is done.
        count: of pieces.
        take: called with the number of a piece and its answer, in this process.

    Raises:
        DpsynthError: as `Engine.results`; or an answer came twice, never, for another piece, or was
            not asked for.

    >>> class Square:
    ...     def warm(self): ...
    ...     def __call__(self, number): return number * number
    >>> each_once(InProcess(), Square(), 3, print)
    0 0
    1 1
    2 4
    """
    with closing(numbered_once(engine, work, count)) as answers:
        for number, answer in answers:
            take(number, answer)


def numbered_once(engine: Engine, work: Work[Answer], count: int) -> Answers[Answer]:
    """Do all pieces, and yield each with its number, checked as `each_once` checks them."""
    missing = set(range(count))
    with closing(engine.results(Numbered(work), count)) as answers:
        for number, (own, answer) in answers:
            if number not in missing:
                raise DpsynthError(f"piece {number} of {count} was answered twice or not asked for")
            if own != number:
                raise DpsynthError(f"piece {number} of {count} got the answer of another piece")
            missing.remove(number)
            yield number, answer
    if missing:
        raise DpsynthError(f"{len(missing)} of {count} pieces of work were never answered")


def ordered(engine: Engine, work: Work[Answer], count: int) -> Generator[Answer, None, None]:
    """Do all pieces as `each_once`, and yield the answers by number, from 0, as they are asked for.

    An answer that comes early is kept until those before it have been taken.

    >>> class Square:
    ...     def warm(self): ...
    ...     def __call__(self, number): return number * number
    >>> list(ordered(InProcess(), Square(), 3))
    [0, 1, 4]
    """
    early: dict[int, Answer] = {}
    done = 0
    with closing(numbered_once(engine, work, count)) as answers:
        for number, answer in answers:
            early[number] = answer
            while done in early:
                yield early.pop(done)
                done += 1


def in_order(engine: Engine, work: Work[Answer], count: int, take: Take[Answer]) -> None:
    """Do all pieces as `each_once`, and take the answers by number, from 0."""
    with closing(ordered(engine, work, count)) as answers:
        for number, answer in enumerate(answers):
            take(number, answer)


RESTARTS = 3  # workers that are replaced: more die when memory is too small, not by accident


def local_engine(workers: int) -> Engine:
    """Return an engine of this machine: this process if there is one worker, else a pool.

    >>> local_engine(1), local_engine(4)
    (<InProcess this process>, <LocalEngine 4 processes>)
    """
    return InProcess() if workers == 1 else LocalEngine(workers)


class LocalEngine:
    """Spawned processes of this machine; they start with each piece of work and end with it.

    Attributes:
        workers: how many.
    """

    distant = False

    def __init__(self, workers: int) -> None:
        """Start nothing yet."""
        self.workers = workers

    def __repr__(self) -> str:
        """Say how many there are."""
        return short_repr(self, f"{self.workers} processes")

    @property
    def at_once(self) -> int:
        """One piece for each process."""
        return self.workers

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Give each process a piece when it has answered its last one."""
        numbers, answered = iter(range(count)), 0
        with WorkerPool(Numbered(work), restarts=RESTARTS) as pool:
            pool.start_workers(min(self.workers, count))
            while answered < count:
                while pool.idle and (number := next(numbers, None)) is not None:
                    pool.start(number)
                if (answer := pool.next()) is not None:
                    answered += 1
                    yield answer


def read_at_once(read: Callable[[], Answer]) -> Answer | None:
    """Let an engine read a table; None if it failed, and this process has to read it again.

    Warns:
        DpsynthWarning: the engine failed, and not for what is in the table: an error of that kind
            is raised again, and names its line, when this process reads.
    """
    try:
        return read()
    except InputError:
        return None
    except DpsynthError as error:
        again = f"{error}. This process reads the table again, alone"
        warnings.warn(again, DpsynthWarning, stacklevel=4)
        return None


def each_once_or_here(
    engine: Engine, work: Work[Answer], count: int, begin: Callable[[], Take[Answer]]
) -> None:
    """Do all pieces as `each_once`; if the engine fails, do all of them in this process.

    Args:
        engine: who does the work first.
        work: what is done.
        count: of pieces.
        begin: forgets all answers, and returns what takes those that come.

    Raises:
        DpsynthError: a piece failed in this process as well.

    Warns:
        DpsynthWarning: this process did the work.
    """
    refused: InputError | None = None
    if not isinstance(engine, InProcess):
        try:
            return each_once(engine, work, count, begin())
        except InputError as error:
            refused = error  # of the work, which raises it again, or of a worker
        except DpsynthError as error:
            again = f"{error}. This process does the work again, alone"
            warnings.warn(again, DpsynthWarning, stacklevel=3)
    each_once(InProcess(), work, count, begin())
    if refused is not None:
        done = f"{refused}. This process did the work again, alone"
        warnings.warn(done, DpsynthWarning, stacklevel=3)
    return None


AHEAD = 2  # pieces for each thread of a worker: one that is done, one that is waiting
PATIENCE = 60  # seconds without any worker
STEP = 5  # seconds between looks at the workers
SCHEMES = ("dask", "tls", "tcp")


class DaskEngine:
    """A Dask cluster that runs; dpsynth neither starts nor ends it.

    Attributes:
        address: of the scheduler, ``tls://HOST:PORT``, or ``tcp://`` for this machine.
    """

    distant = True

    def __init__(self, address: str) -> None:
        """Take an address; nothing is connected yet.

        Args:
            address: ``dask://HOST:PORT``: encrypted, unless the host is this machine. ``tls://``
                and ``tcp://`` say which.

        Raises:
            InputError: it is no such address, or it would send private codes in the clear.
        """
        if address.partition("://")[0] not in SCHEMES or not _host_and_port(address):
            raise InputError(
                "the address of an engine is dask://HOST:PORT, where the scheduler of Dask listens"
            )
        parts, here = urlsplit(address), _is_here(address)
        if parts.scheme == "tcp" and not here:
            raise InputError(
                f"{address} is not encrypted, and private codes would cross the network; start "
                "the cluster with TLS and write tls:// (docs/cluster.md)"
            )
        plain = parts.scheme == "tcp" or (parts.scheme == "dask" and here)
        self.address = f"{'tcp' if plain else 'tls'}://{parts.netloc}"
        self._at_once: int | None = None

    def __repr__(self) -> str:
        """Name the scheduler."""
        return short_repr(self, self.address)

    @property
    def at_once(self) -> int:
        """How many threads the workers have when they are checked, or when it is first asked."""
        if self._at_once is None:
            with self._connected() as client:
                self._at_once = max(1, _threads(client))
        return self._at_once

    def check(self, paths: Sequence[str | Path] = (), folder: Path | None = None) -> None:
        """Make sure that workers can do pieces, before anything is charged.

        Args:
            paths: files that all workers have to see as this process does.
            folder: into which all workers write; it is there, with a random name.

        Raises:
            InputError: the scheduler does not answer or has no worker; or a worker has another
                version of dpsynth or of what it codes with, does not see a file, cannot write into
                the folder, may write private codes to its disk, or would send them in the clear.
        """
        files = (FileMark.of(path) for path in paths)
        folders = () if folder is None else (FolderMark(folder.absolute()),)
        marks = (*files, *folders)
        with self._connected() as client:
            self._at_once = max(1, _threads(client))  # it need not be reached for that later
            try:
                found = client.run(_look, versions(), marks)
            except Exception as error:  # whatever a worker does that cannot load dpsynth
                raise InputError(
                    f"the workers at {self.address} cannot run dpsynth ({type(error).__name__}); "
                    "install the same version on the scheduler and on all workers"
                ) from None
        for problem in found.values():
            if problem is not None:
                raise InputError(problem)

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Submit a few pieces for each thread, and others as these are answered.

        Dask does a piece again when its worker is lost; one that is lost several times
        (``distributed.scheduler.allowed-failures``) ends the work.
        """
        from distributed import wait

        with self._connected(DpsynthError) as client:
            try:
                task = client.submit(_kept, _Task(work, versions()), pure=False)
                numbers = iter(range(count))
                running: dict[Future, int] = {}
                while True:
                    most = AHEAD * max(1, _threads(client))
                    while len(running) < most and (number := next(numbers, None)) is not None:
                        running[client.submit(_answered, task, number, pure=False)] = number
                    if not running:
                        return
                    _wait_for_workers(client)
                    try:
                        with client.as_current():
                            done = wait(list(running), STEP, return_when="FIRST_COMPLETED").done
                    except TimeoutError:
                        continue
                    for future in done:
                        number, outcome = running.pop(future), future.result()
                        future.release()
                        if outcome.problem is not None:
                            raise outcome.problem
                        yield number, outcome.answer
            except DpsynthError:
                raise
            except Exception as error:  # messages of others may quote what they hold
                raise DpsynthError(
                    f"the Dask cluster at {self.address} failed with {type(error).__name__}; look "
                    "at the logs of its workers"
                ) from None

    @contextmanager
    def _connected(self, lost: type[DpsynthError] = InputError) -> Iterator[Client]:
        """Connect for a block; a cluster that is not there is an error of the kind ``lost``.

        Once it was checked, that is no mistake of the user's, and this process does the work.
        """
        client = None
        try:
            from distributed import Client

            client = Client(
                self.address,
                security=self._security(),
                set_as_default=False,
                timeout=STEP,
                name="dpsynth",
            )
            client.wait_for_workers(1, timeout=PATIENCE)
        except ModuleNotFoundError:
            raise InputError(
                "dask is not installed, and this needs it: pip install 'dpsynth[cluster]'"
            ) from None
        except (OSError, TimeoutError):
            what = "has no worker" if client is not None else "does not answer"
            if client is not None:
                client.close()
            raise lost(f"the Dask scheduler at {self.address} {what}") from None
        with client:
            yield client

    def _security(self) -> Any:
        """Read keys and certificates from where Dask's settings say that they are."""
        from distributed import Security

        if self.address.startswith("tcp:"):
            return None
        security = Security(require_encryption=True)
        names = ("tls_ca_file", "tls_client_cert", "tls_client_key")
        if any(getattr(security, name) is None for name in names):
            raise InputError(
                "set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, DASK_DISTRIBUTED__COMM__TLS__CLIENT__"
                "CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY to the files of the cluster's "
                "certificates (docs/cluster.md)"
            )
        return security


@dataclass(frozen=True)
class _Task:
    """What a worker gets.

    Attributes:
        work: to do.
        versions: of the process that takes the answers.
    """

    work: Work[Any]
    versions: Versions

    def __repr__(self) -> str:
        """Show nothing: Dask quotes it in logs."""
        return short_repr(self)


@dataclass(frozen=True)
class _Outcome:
    """What a worker gives back: an answer, or what was wrong."""

    answer: Any
    problem: DpsynthError | None

    def __repr__(self) -> str:
        """Show nothing: Dask quotes it in logs."""
        return short_repr(self)


def _kept(task: _Task) -> _Task:
    """Return it: workers take it from each other, and one that is lost is made again."""
    return task


def _answered(task: _Task, number: int) -> _Outcome:
    """Do a piece, within a worker."""
    from distributed import get_worker

    problem = _problem(get_worker(), task.versions)
    if problem is not None:  # of a worker that came later than the check
        return _Outcome(None, DpsynthError(problem))
    return _Outcome(*outcome_of(lambda: task.work(number)))


def _look(
    theirs: Versions, marks: Sequence[FileMark | FolderMark], dask_worker: Worker
) -> str | None:
    """Say what is wrong with a worker, within it; Dask names its last argument."""
    seen = (mark.problem() for mark in marks)
    return _problem(dask_worker, theirs) or next((one for one in seen if one is not None), None)


def _problem(worker: Worker, theirs: Versions) -> str | None:
    own = versions()
    if own != theirs:
        name, here, there = next(
            (name, theirs.get(name), own.get(name))
            for name in {**theirs, **own}
            if own.get(name) != theirs.get(name)
        )
        return f"a Dask worker has {name} {there}, and this process {here}; install the same"
    if type(worker.data) is not dict:
        return (
            "a Dask worker may spill private codes to its disk; start workers with --memory-limit 0"
        )
    for address in (worker.address, worker.scheduler.address):
        if not address.startswith("tls:") and not _is_here(address):
            return (
                f"the Dask worker at {worker.address} is not encrypted; start the cluster with TLS"
            )
    return None


def _threads(client: Client) -> int:
    return sum(client.nthreads().values())


def _wait_for_workers(client: Client) -> None:
    """Wait a while for others, if all workers are lost."""
    if not client.nthreads():
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise DpsynthError("all workers of the Dask cluster were lost") from None


def _host_and_port(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port is not None and parts.username is None
    except ValueError:
        return False


def _is_here(address: str) -> bool:
    """Whether an address is of this machine alone."""
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Versions = dict[str, str]
CODING = ("numpy", "pandas", "pyarrow")  # what codes may depend on


@dataclass(frozen=True)
class FileMark:
    """What one machine sees of a file, without reading it.

    Attributes:
        path: absolute.
        size: in bytes.
        changed: when it was last written, in nanoseconds.
    """

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: str | Path) -> FileMark:
        """Look at a file.

        Raises:
            InputError: it cannot be seen.
        """
        place = Path(path).absolute()
        try:
            seen = place.stat()
        except OSError as error:
            raise InputError(f"{path} cannot be seen: {type(error).__name__}") from None
        return cls(place, seen.st_size, seen.st_mtime_ns)

    def problem(self) -> str | None:
        """Say how this machine sees the file differently; None if it sees it so."""
        try:
            same = FileMark.of(self.path) == self
        except InputError:
            same = False
        if same:
            return None
        return (
            f"the worker on {platform.node()} does not see the same {self.path}; put it into a "
            "folder that all machines share, under the same path"
        )


@dataclass(frozen=True)
class FolderMark:
    """A folder into which workers write.

    Attributes:
        path: absolute; its name is random, so whoever sees it sees this one.
    """

    path: Path

    def problem(self) -> str | None:
        """Try to write and to remove a file for its owner alone; say why this machine cannot."""
        probe = self.path / f"probe-{secrets.token_hex(8)}"
        try:
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            probe.unlink()
        except OSError as error:
            return (
                f"the worker on {platform.node()} cannot write into {self.path.parent} "
                f"({type(error).__name__}); choose a folder that all machines share, under the "
                "same path, and start workers as the user who runs this"
            )
        return None


@cache
def versions() -> Versions:
    """Return the versions of dpsynth, Python, and what codes cells.

    >>> sorted(versions())
    ['dpsynth', 'numpy', 'pandas', 'pyarrow', 'python']
    """
    found = {"dpsynth": __version__, "python": platform.python_version()}
    for name in CODING:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


def open_engine(
    name: str | None,
    workers: int = 1,
    *,
    paths: Sequence[str | Path] = (),
    folder: Path | None = None,
) -> Engine:
    """Return an engine that is ready.

    Args:
        name: where a cluster listens, ``dask://HOST:PORT``; None for this machine.
        workers: processes of this machine, if there is no cluster.
        paths: files that a cluster has to see.
        folder: into which a cluster writes; None if it writes nothing.

    Raises:
        InputError: the cluster is not there, or cannot do the work; see `DaskEngine.check`.

    >>> open_engine(None, 2)
    <LocalEngine 2 processes>
    """
    if name is None:
        return local_engine(workers)
    engine = DaskEngine(name)
    engine.check(paths, folder)
    return engine
