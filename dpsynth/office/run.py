"""The office of the person who may see rows: check, run, review, release, sign off, download.

All that it keeps is private: ``<bundle>.office`` holds where the table is, which findings were
accepted, and what its commands wrote. What it does is done by commands, so an office that is ended
ends none of them, and one that is started again finds them at work.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from dpsynth._util.whole_files import read_whole
from dpsynth.assessment.open_points import OpenPoints
from dpsynth.bundle import sign as sign_bundle
from dpsynth.bundle import verify
from dpsynth.bundle.format.layout import SIGNATURE
from dpsynth.errors import DpsynthError, InputError
from dpsynth.files import clear_errors, write_atomically
from dpsynth.inspection.findings import Level
from dpsynth.ledger import Ledger
from dpsynth.office import job
from dpsynth.office.office_folder import OfficeFolder, command, to
from dpsynth.office.server import POLICY, Action, Gate, Page
from dpsynth.office.written_yaml import WrittenYaml
from dpsynth.tables import is_url
from dpsynth.workflow import ResolvedSettings, Settings, planned
from dpsynth.workflow.settings import FILE, beside
from dpsynth.workflow.stages import answer_of
from dpsynth.workflow.work_folder import Log

HOME, CHECK, RUN, REVIEW, RELEASE = "/", "/check", "/run", "/review", "/release"
FRAME = "/internal.html"
# a step that shows rules for a person to confirm belongs between the check and the run
STEPS = (
    (HOME, "Overview"),
    (CHECK, "Check"),
    (RUN, "Run"),
    (REVIEW, "Review"),
    (RELEASE, "Release"),
)
OFFICE = ".office"  # ends the name of the private folder, beside that of the bundle
STATE = "office.json"
_FRAMED = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
)
_MAX_PAGE = 256 * 2**20  # bytes of an internal page
_BLOCK = 2**20
_AGAIN = "--fit-again"
_WAIT = 600  # seconds that a short command may take
_SECONDS = 3  # between two looks at what is at work
_LOOK = "the bundle is written; read the internal results before it goes out"
MEANS = {
    0: "done",
    2: "something has to be changed first",
    3: "stopped by a gate",
    4: "refused by the budget or the policy",
    5: "the bundle does not verify",
}


@dataclass(frozen=True)
class Private:
    """What this role has said: where the table is, and which findings do not stop the run."""

    data: str = ""
    accept: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Private:
        """Read it; nothing was said if there is no file, or if it is damaged."""
        path = folder / STATE
        with suppress(ValueError, InputError, KeyError, TypeError):
            if path.exists():
                document = json.loads(read_whole(path, largest=2**20))
                return cls(str(document["data"]), tuple(map(str, document["accept"])))
        return cls()

    def save(self, folder: Path) -> None:
        """Write it for its owner alone."""
        document = {"data": self.data, "accept": list(self.accept)}
        write_atomically(folder / STATE, json.dumps(document).encode(), private=True)


@dataclass(frozen=True)
class Run:
    """The pages and the forms of this role.

    Attributes:
        office: the folder and how pages are shown.
    """

    office: OfficeFolder

    @classmethod
    def of(cls, folder: Path, gate: Gate, data: str | None = None) -> Run:
        """Take a folder that was prepared, and make the private one beside the bundle.

        Raises:
            InputError: it has no settings, or they have mistakes; or somebody else made the private
                folder.
        """
        role = cls(OfficeFolder(folder, gate, "run", STEPS))
        _keep_private(role.private)
        if data is not None:
            Private(_whole(data), Private.read(role.private).accept).save(role.private)
        return role

    @property
    def pages(self) -> dict[str, Page]:
        """What a GET shows, by path."""
        return {
            HOME: self.home,
            CHECK: self.check_page,
            RUN: self.run_page,
            REVIEW: self.review_page,
            FRAME: self.frame,
            RELEASE: self.release_page,
            "/bundle.zip": self.download,
        }

    @property
    def actions(self) -> dict[str, Action]:
        """What a form does, by path."""
        return {
            CHECK: self.check,
            "/accept": self.accept,
            RUN: self.run,
            "/sign-off": self.sign_off,
            "/sign": self.sign,
            "/verify": self.verified,
        }

    # the folder ---------------------------------------------------------------------------------

    @cached_property
    def _output(self) -> Path:
        """The bundle that the settings name."""
        return self._settings(Private(data="TABLE")).output

    @property
    def private(self) -> Path:
        """The folder of this role alone."""
        return beside(self._output, OFFICE)

    def _settings(self, private: Private) -> Settings:
        """Read the settings, with the table that this role has named.

        Raises:
            InputError: they have mistakes, or there are none.
        """
        path = self.office.folder / FILE
        if not path.is_file():
            raise InputError(
                f"the folder has no {FILE}; whoever prepares the release writes it (dpsynth office "
                "prepare)"
            )
        options: dict[str, Any] = {"accept": list(private.accept)} if private.accept else {}
        if private.data:
            options["data"] = private.data
        return Settings.load(path, **options)

    def _order(self) -> ResolvedSettings:
        """Return what a run would do.

        Raises:
            InputError: the table is not named yet, or something is wrong.
        """
        private = Private.read(self.private)
        if not private.data:
            raise InputError("name the table first, on the page Check")
        return ResolvedSettings.of(self._settings(private))

    def _line(self, *extra: str) -> list[str]:
        """Return the arguments of the command that makes the bundle, in the folder."""
        private = Private.read(self.private)
        schema = self._schema()
        accepted = [word for name in private.accept for word in ("--accept", name)]
        config = str(self.office.folder / FILE)
        return ["run", schema, private.data, "--config", config, *accepted, *extra]

    def _schema(self) -> str:
        path = self.office.schema_path()
        if path is None:
            named = self.office.settings().document.get("schema")
            if not named:
                raise InputError("the folder has no schema")
            return str(named)
        return str(path)

    def home(self, request: Request) -> Response:
        """Show how far the release is."""
        private = Private.read(self.private)
        problems: Sequence[str] = ()
        states: Sequence[Any] = ()
        try:
            self._settings(Private(private.data or "TABLE", private.accept))
            states = planned(self._order()) if private.data else ()
        except DpsynthError as error:
            problems = str(error).splitlines()
        return self.office.show(
            "run_home.html",
            HOME,
            problems=problems,
            data=private.data,
            states=states,
            check=self._state("check"),
            run=self._state("run"),
            bundle=self._output.name if self._output.is_dir() else "",
            signed=(self._output / SIGNATURE).exists(),
        )

    def _state(self, name: str) -> job.JobState:
        return job.job_state(self.private, name)

    # the check ----------------------------------------------------------------------------------

    def check_page(self, request: Request) -> Response:
        """Show what does not fit, why, and what to do."""
        return self._check_page(follow="follow" in request.query_params)

    def _check_page(
        self, sentence: str = "", data: str | None = None, *, follow: bool = False
    ) -> Response:
        private, state = Private.read(self.private), self._state("check")
        found, seconds = self._found(state), _SECONDS if follow else 0
        page = self.office.show(
            "run_check.html",
            CHECK,
            follow=seconds,
            status=400 if sentence else 200,
            sentence=sentence,
            data=private.data if data is None else data,
            state=state,
            means=MEANS.get(state.code or 0, "ended"),
            found=found,
            accepted=private.accept,
            stale=bool(state.about) and state.about != self._inputs(),
            serious=Level.SERIOUS.word,
            command=command(*_checked(self._schema(), private.data)[:-1]) if private.data else "",
        )
        return _again(page, seconds if state.state == job.RUNNING else 0)

    def _found(self, state: job.JobState) -> dict[str, Any] | None:
        """Return the findings of a check that ended; None if there are none to show."""
        if state.state != job.ENDED or state.code not in (0, 3):
            return None
        with suppress(ValueError):
            document = json.loads(job.output_of(self.private, "check"))
            return document if isinstance(document, dict) and "findings" in document else None
        return None

    def _inputs(self) -> str:
        """Return what a check is about, so that a page knows whether it is about something else."""
        path = self.office.schema_path()
        text = "" if path is None else WrittenYaml.read(path).text
        return hashlib.sha256(f"{Private.read(self.private).data}\n{text}".encode()).hexdigest()

    def check(self, request: Request, form: FormData) -> Response:
        """Name the table, and start a check."""
        given = self.office.typed(form, "data")
        try:
            if not given:
                raise InputError("name the table")
            private = Private(_whole(given), Private.read(self.private).accept)
            self._settings(private)
            private.save(self.private)
            line = _checked(self._schema(), private.data)
            job.start(self.private, "check", line, about=self._inputs())
        except DpsynthError as error:
            return self._check_page(str(error), given)
        return to(f"{CHECK}?follow=1")

    def accept(self, request: Request, form: FormData) -> Response:
        """Write down which serious findings do not stop the run."""
        private, state = Private.read(self.private), self._state("check")
        found = self._found(state) or {}
        known = set(found.get("serious", ()))
        names = tuple(name for name in form.getlist("accept") if name in known)
        Private(private.data, tuple(map(str, names))).save(self.private)
        return to(RUN)

    # the run ------------------------------------------------------------------------------------

    def run_page(self, request: Request) -> Response:
        """Show the stages, and what the command says."""
        return self._run_page(follow="follow" in request.query_params)

    def _run_page(self, sentence: str = "", *, follow: bool = False) -> Response:
        state = self._state("run")
        order, stages = None, []
        try:
            order = self._order()
            log = Log.read(order.settings.work_folder)
            begun = {} if log is None else log.stages
            running = state.state == job.RUNNING
            for one in planned(order):
                record = begun.get(one.stage)
                at_work = running and record is not None and record.seconds is None
                seconds = None if record is None else record.seconds
                stages.append((one.stage, "at work" if at_work else one.state, seconds))
        except DpsynthError as error:
            sentence = sentence or str(error)
        there, seconds = self._output.is_dir(), _SECONDS if follow else 0
        page = self.office.show(
            "run_run.html",
            RUN,
            follow=seconds,
            final=_final(state.words),
            bundle=there,
            status=400 if sentence else 200,
            sentence=sentence,
            state=state,
            means=_LOOK if there and state.code == 3 else MEANS.get(state.code or 0, "interrupted"),
            stages=stages,
            settings=None if order is None else order.settings,
            model="" if order is None else order.prepared.reason,
            again=state.state != job.RUNNING and _AGAIN in state.words,
            gate=state.code == 3 and not there and "--override" in state.words,
            command="" if order is None else command(*self._line()),
        )
        return _again(page, seconds if state.state == job.RUNNING else 0)

    def run(self, request: Request, form: FormData) -> Response:
        """Start the run, or go on with it."""
        extra = [_AGAIN] if form.get("again") else []
        reason, by = self.office.typed(form, "override"), self.office.typed(form, "by")
        try:
            if form.get("overriding"):
                if not reason or not by:
                    raise InputError("give both a reason and the name of who is responsible")
                extra += ["--override", reason, "--by", by]
            self._order()
            job.start(self.private, "run", self._line(*extra))
        except DpsynthError as error:
            return self._run_page(str(error))
        return to(f"{RUN}?follow=1")

    # review -------------------------------------------------------------------------------------

    def review_page(self, request: Request) -> Response:
        """Show the answer of the internal results, and their page."""
        order = self._order()
        answer, sentence = None, ""
        try:
            answer = answer_of(order)
        except DpsynthError:
            sentence = "There are no internal results yet. They come with the run."
        return self.office.show(
            "run_review.html",
            REVIEW,
            policy=f"{POLICY}; frame-src 'self'",
            sentence=sentence,
            answer=answer,
            page=order.page.is_file(),
            path=f"{order.internal.name}/{order.page.name}",
            frame=FRAME,
            points=OpenPoints.of(order.bundle, order.internal),
            bundle=order.bundle.is_dir(),
        )

    def frame(self, request: Request) -> Response:
        """Give the internal page to a frame that runs no script and asks for nothing."""
        page = self._order().page
        if not page.is_file():
            raise InputError("there is no internal page yet")
        content = read_whole(page, largest=_MAX_PAGE)
        headers = {"content-security-policy": _FRAMED}
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)

    # release ------------------------------------------------------------------------------------

    def release_page(self, request: Request) -> Response:
        """Show what is missing before the bundle may go out."""
        return self._release_page()

    def _release_page(
        self, sentence: str = "", checks: Sequence[str] = (), done: str = ""
    ) -> Response:
        order = self._order()
        entry, needed = self._entry(order)
        state = self._state("run")
        there = order.bundle.is_dir()
        signed = (order.bundle / SIGNATURE).exists()
        key = "office.key"
        return self.office.show(
            "run_release.html",
            RELEASE,
            status=400 if sentence else 200,
            sentence=sentence,
            done=done,
            bundle=order.bundle.name if there else "",
            signed=signed,
            checks=checks,
            entry=entry,
            needed=needed,
            state=state,
            points=OpenPoints.of(order.bundle, order.internal) if there else None,
            commands={
                "sign_off": ""
                if entry is None
                else f"DPSYNTH_USER=NAME {command('ledger', 'sign', entry.id[:12])}",
                "sign": command("sign", order.bundle, "--key", key),
                "verify": command("verify", order.bundle) + (f" --key {key}.pub" if signed else ""),
            },
        )

    def _entry(self, order: ResolvedSettings) -> tuple[Any, int]:
        """Return the entry of the fit in the ledger, and how many people must still sign it."""
        log = Log.read(order.settings.work_folder)
        book = Ledger.existing()
        if log is None or not log.fits or book is None:
            return None, 0
        state = book.state()
        try:
            entry = state.entry(log.fits[-1].entry, book.place)
        except DpsynthError:
            return None, 0
        policy = 0 if state.policy is None else state.policy.sign_off
        return entry, max(0, max(entry.sign_off, policy) - len(entry.signatures))

    def sign_off(self, request: Request, form: FormData) -> Response:
        """Sign the fit in the ledger, as another person than the one who ran it."""
        name, note = self.office.typed(form, "name"), self.office.typed(form, "note")
        entry, _ = self._entry(self._order())
        if entry is None:
            return self._release_page("there is no fit to sign yet; run the release first")
        if not name or not form.get("read"):
            return self._release_page(
                "write your name, and mark that you have read the internal results"
            )
        line = ["ledger", "sign", entry.id, "--note", note]
        code, words = _now(line, {"DPSYNTH_USER": name})
        if code:
            return self._release_page(words)
        return to(RELEASE)

    def sign(self, request: Request, form: FormData) -> Response:
        """Sign the bundle with the office's key."""
        order = self._order()
        key, phrase = self.office.typed(form, "key"), form.get("passphrase", "")
        if not form.get("read"):
            return self._release_page("mark that you have read the internal results")
        if not key:
            return self._release_page("name the file of the office's private key")
        try:
            secret = phrase if isinstance(phrase, str) and phrase else None
            sign_bundle(order.bundle, key, secret)
        except DpsynthError as error:
            return self._release_page(str(error))
        return to(RELEASE)

    def verified(self, request: Request, form: FormData) -> Response:
        """Verify the bundle, and its signature if a key is named."""
        order, key = self._order(), self.office.typed(form, "key")
        try:
            checks = verify(order.bundle, key=key or None)
        except DpsynthError as error:
            return self._release_page(str(error))
        return self._release_page("", checks, "The bundle verifies.")

    def download(self, request: Request) -> Response:
        """Give the bundle as one file, after it was verified."""
        bundle = self._order().bundle
        if not bundle.is_dir():
            raise InputError("there is no bundle yet")
        verify(bundle)
        name = f"{bundle.name}.zip".encode("ascii", "replace").decode().replace('"', "")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return StreamingResponse(_zipped(bundle), media_type="application/zip", headers=headers)


def _keep_private(folder: Path) -> None:
    """Make a folder for its owner alone; refuse one that somebody else has laid there."""
    with clear_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise InputError(
                f"{folder} was made by somebody else, or is a link, so nothing private can be kept "
                "there; move it away"
            )
        folder.chmod(0o700)
    write_atomically(folder / ".gitignore", b"*\n", private=True)  # figures of real rows


def _again(page: Response, seconds: int) -> Response:
    """Let a browser ask for a page again, unless that is 0."""
    if seconds:
        page.headers["refresh"] = str(seconds)
    return page


def _final(words: str) -> list[str]:
    """Return the sentences with which a command ended."""
    return [line.partition(": ")[2] for line in words.splitlines() if line.startswith("dpsynth: ")]


def _checked(schema: str, data: str) -> list[str]:
    return ["schema", "check", schema, data, "--json"]


def _whole(data: str) -> str:
    """Return the table's path from the root, so that it means the same in every folder."""
    if is_url(data):
        return data
    name, sign, part = data.partition("#")
    if sign and Path(data).exists():
        return os.path.abspath(data)
    return os.path.abspath(name) + sign + part


def _now(line: Sequence[str], more: Mapping[str, str]) -> tuple[int, str]:
    """Carry out a short command; return its exit code and what it says."""
    done = subprocess.run(
        [*job.PROGRAM, *line],
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_WAIT,
    )
    words = done.stderr.strip().removeprefix("dpsynth: ")
    return done.returncode, words or done.stdout.strip()


def _zipped(bundle: Path) -> Iterator[bytes]:
    """Yield a bundle as a zip file."""
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(bundle.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    archive.write(path, Path(bundle.name) / path.relative_to(bundle))
        file.seek(0)
        while block := file.read(_BLOCK):
            yield block
