"""A server for one person on this machine: who may ask it, and what each answer allows a browser.

It listens on the loopback address alone. The printed address holds a token that works once: the
browser that opens it gets a session, and no other browser can have one. Every request names this
server as its host, every form comes from one of its pages and carries the session's own sign, and
every answer forbids scripts, other origins and caches. Errors are a sentence. Nothing is logged.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpsynth.errors import DpsynthError, InputError
from dpsynth.office.rendering import render, style

ENTER, STYLE = "/enter", "/style.css"
MAX_BYTES = 16 * 2**20  # of a form, with an uploaded dictionary
MAX_FIELDS = 20_000  # of a form: a check box and a line for each of 4,096 columns
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, a browser hides the origin of a form
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

Page = Callable[[Request], Response]
Action = Callable[[Request, FormData], Response]


@dataclass
class Gate:
    """Who may ask: the hosts by which this server is called, and the one browser that has entered.

    Attributes:
        hosts: what a request may name as its host.
        token: of the printed address; None once it was used.
        session: the cookie's value; None before somebody entered.
        sign: what every form of the session carries.
    """

    hosts: tuple[str, ...]
    token: str | None = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    session: str | None = field(default=None, repr=False)
    sign: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)

    @property
    def cookie(self) -> str:
        """The name of the cookie; a browser keeps cookies of all ports of a host together."""
        return f"dpsynth-office-{self.hosts[0].rpartition(':')[2]}"

    def refusal(self, method: str, path: str, headers: Headers, cookies: Mapping[str, str]) -> str:
        """Say why a request is refused, and what to do; empty if it is not."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return f"This office answers at http://{self.hosts[0]} only."
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "The request comes from another page. Type the address into the address line."
        if method not in ("GET", "HEAD", "POST"):
            return "The office reads pages and takes forms; it does nothing else."
        if method == "POST" and headers.get("origin") != f"http://{host}":
            return "The form does not come from a page of this office. Open its page again."
        if path in (ENTER, STYLE):
            return ""
        given = cookies.get(self.cookie, "")
        if self.session is None or not secrets.compare_digest(
            given.encode(), self.session.encode()
        ):
            return (
                "This browser has not entered the office. Open the address that the command "
                "printed. It works once, in one browser; for a new one, stop the command with "
                "Ctrl-C and start it again. Nothing is lost."
            )
        return ""

    def enter(self, token: str) -> str | None:
        """Exchange the token for a session; None if it is wrong or was used."""
        with self._lock:
            known, self.token = self.token, None
            if known is None or not secrets.compare_digest(token.encode(), known.encode()):
                self.token = known  # a wrong guess does not lock the right person out
                return None
            self.session = secrets.token_urlsafe(32)
            return self.session


class Guarded:
    """Puts a gate before every request, and what a browser may do behind every answer."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        """Guard an application."""
        self.app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        size, started = 0, False

        async def receiving() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BYTES:
                raise InputError("the form is larger than 16 MiB; send less at a time")
            return message

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", POLICY)
            await send(message)

        refusal = self.gate.refusal(
            scope["method"], scope["path"], request.headers, request.cookies
        )
        try:
            if refusal:
                await _sentence(refusal, 403)(scope, receive, sending)
            else:
                await self.app(scope, receiving, sending)
        except Exception as error:  # whatever it is, its text may quote anything
            if not started:  # else the application answered itself, and only says so once more
                await _failure(error)(scope, receive, sending)


def application(gate: Gate, pages: Mapping[str, Page], actions: Mapping[str, Action]) -> ASGIApp:
    """Make the application of an office.

    Args:
        gate: who may ask.
        pages: by path, what a GET shows; each is a function of the files and the request.
        actions: by path, what a form does. It is called only with the session's sign, one form at
            a time.
    """
    doing = Lock()

    async def enter(request: Request) -> Response:
        token = request.query_params.get("token", "")
        session = gate.enter(token) if request.method == "GET" else None
        if session is None:
            return _sentence(
                "This address was used already, or is not the one that the command printed. For a "
                "new one, stop the command with Ctrl-C and start it again. Nothing is lost.",
                403,
            )
        response = RedirectResponse("/", 303)
        response.set_cookie(gate.cookie, session, httponly=True, samesite="strict", path="/")
        return response

    async def sheet(request: Request) -> Response:
        return Response(style(), media_type="text/css")

    def page(show: Page) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return await run_in_threadpool(show, request)

        return answer

    def action(do: Action) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            async with _form(request) as form:
                given = form.get("sign")
                if not isinstance(given, str) or not secrets.compare_digest(
                    given.encode(), gate.sign.encode()
                ):
                    return _sentence(
                        "The form was not made by this office, or by the office before it was "
                        "started again. Open its page again.",
                        403,
                    )

                def one_at_a_time() -> Response:
                    with doing:
                        return do(request, form)

                return await run_in_threadpool(one_at_a_time)

        return answer

    async def failed(request: Request, error: Exception) -> Response:
        return _failure(error)

    async def missing(request: Request, error: Exception) -> Response:
        code = error.status_code if isinstance(error, HTTPException) else 404
        words = "There is no such page." if code == 404 else "The request could not be read."
        return _sentence(words, code)

    routes = [Route(ENTER, enter), Route(STYLE, sheet)]
    routes += [Route(path, page(show)) for path, show in pages.items()]
    routes += [Route(path, action(do), methods=["POST"]) for path, do in actions.items()]
    app = Starlette(routes=routes, exception_handlers={HTTPException: missing, Exception: failed})
    app.state.gate = gate
    return Guarded(app, gate)


class _InMemory(MultiPartParser):
    """Keeps an upload in memory: nothing of it gets into a temporary file."""

    spool_max_size = MAX_BYTES


class _form:  # noqa: N801  a context manager that reads like a function
    """Reads a form, and forgets its uploads at the end."""

    def __init__(self, request: Request) -> None:
        self._request, self._form = request, FormData()

    async def __aenter__(self) -> FormData:
        request = self._request
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if kind == "multipart/form-data":
                parser = _InMemory(
                    request.headers,
                    request.stream(),
                    max_files=1,
                    max_fields=MAX_FIELDS,
                    max_part_size=MAX_BYTES,
                )
                self._form = await parser.parse()
            elif kind == "application/x-www-form-urlencoded":
                self._form = await FormParser(request.headers, request.stream()).parse()
        except (MultiPartException, KeyError, UnicodeError, LookupError):
            raise InputError("the form could not be read; open its page again") from None
        return self._form

    async def __aexit__(self, *_: object) -> None:
        await self._form.close()


def _sentence(words: str, status: int) -> Response:
    """Answer with a sentence, or with an error's lines."""
    first, *items = words.splitlines() or [""]
    page = render("sentence.html", sentence=first, items=[one.strip() for one in items])
    return HTMLResponse(page, status)


def _failure(error: Exception) -> Response:
    """Answer with what an error says, or only with where it happened."""
    if isinstance(error, DpsynthError):
        return _sentence(str(error), 400)
    return _sentence(_withheld(error), 500)


def _withheld(error: Exception) -> str:
    """Word an unexpected error by its kind and place alone, as the command line does."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__} at {os.path.basename(place.filename)}:{place.lineno}; "
        "its message is hidden because it may quote private data"
    )


def listening(port: int) -> socket.socket:
    """Listen on the loopback address; 0 is any free port.

    Raises:
        InputError: the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # so that a browser that is quicker than the server waits
    except OSError:
        listener.close()
        raise InputError(
            f"port {port} of this machine is taken; choose another with --port"
        ) from None
    return listener


def hosts_of(listener: socket.socket) -> tuple[str, ...]:
    """Return what a browser may call the server, the printed name first."""
    port = listener.getsockname()[1]
    return tuple(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))


def serve(
    listener: socket.socket,
    gate: Gate,
    pages: Mapping[str, Page],
    actions: Mapping[str, Action],
    tell: Callable[[Sequence[str]], None],
) -> None:
    """Serve an office until the process is asked to end.

    Args:
        listener: where; see `listening`.
        gate: who may ask.
        pages: as in `application`.
        actions: as in `application`.
        tell: called with the lines that say where to enter.
    """
    import uvicorn

    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        log = logging.getLogger(name)
        log.addHandler(logging.NullHandler())
        log.propagate = False
    settings = uvicorn.Config(
        application(gate, pages, actions),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=2**16,
        proxy_headers=False,
    )
    tell(
        [
            f"open        http://{gate.hosts[0]}{ENTER}?token={gate.token}",
            "            in a browser on this machine; the address works once. Ctrl-C ends.",
        ]
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listener])
