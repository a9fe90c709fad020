"""Workers of a Dask cluster, on as many machines as it has.

The scheduler and its workers belong to the office: whoever can reach them can run programs on them,
and answers hold private codes. So nothing is sent in the clear between machines, nothing is spilled
to disks, and Dask sees objects that show none of their values in its logs. What a worker gets is
the work and a number; no ledger, plan or noise is within its reach.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from dpsynth._util.engines.engine import Answers
from dpsynth._util.engines.shared_files import FileMark, FolderMark, Versions, versions
from dpsynth._util.short_repr import short_repr
from dpsynth._util.workers import Work, outcome_of
from dpsynth.errors import DpsynthError, InputError

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

Answer = TypeVar("Answer")

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
