"""The server of the page: on this machine alone, for whoever has its token.

Every request must carry the address that the server was started at as its host, and, when it
changes something, as its origin; and the token, which the printed address hands to a cookie.
Pages may load nothing from elsewhere. A report is shown as a page without an origin, so that
nothing in it could speak to the server.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from http.cookies import SimpleCookie
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...io.errors import InputError
from .forms import explain, fields
from .runs import Run, Runs

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# The report has a policy of its own inside; this one takes its origin away.
_REPORT_POLICY = "sandbox allow-scripts allow-downloads allow-popups; frame-ancestors 'self'"
_FILES = {"index.html": "text/html", "app.css": "text/css", "app.js": "text/javascript"}
_MOST_JSON = 1 << 22  # bytes of a request that is no file


def answer(
    handler: Callable[[Request], Awaitable[Any]], status: int
) -> Callable[[Request], Awaitable[Response]]:
    """Answer with the JSON of what a handler returns, or say in one line why it refuses."""

    async def run(request: Request) -> Response:
        try:
            result = await handler(request)
            return result if isinstance(result, Response) else JSONResponse(result, status)
        except InputError as error:
            return JSONResponse(explain(error), 400)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            traceback.print_exc()
            fault = "This is a fault of sparsegsvp, not of your file; the terminal shows where."
            return JSONResponse({"error": fault}, 500)

    return run


class Guard:
    """Lets pass only requests from the page itself, with the token."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.cookie = f"sparsegsvp-{port}"
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the requests of others; the app sees the rest."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        await (self._refuse(request) or self.app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return Response("This server answers only at its own address.", 403)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return Response("Requests of other pages are not answered.", 403)
        if request.method not in ("GET", "HEAD") and origin is None:
            return Response("Requests of other programs are not answered.", 403)
        given = request.query_params.get("token")
        if request.url.path == "/" and given is not None and self._right(given):
            response = RedirectResponse("/", 303)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        jar: SimpleCookie = SimpleCookie(request.headers.get("cookie", ""))
        if self.cookie not in jar or not self._right(jar[self.cookie].value):
            return Response(
                "Open the address that sparsegsvp app has printed, with its token.", 403
            )
        return None

    def _right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())


def _headed(response: Response, policy: str = _POLICY) -> Response:
    response.headers["Content-Security-Policy"] = policy
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response


class Pages:
    """What the server answers: the page, and what the page asks for."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def routes(self) -> list[Route]:
        """Return the addresses."""
        made: list[tuple[str, str, Callable[[Request], Awaitable[Any]], int]] = [
            ("/", "GET", self.file, 200),
            ("/{name}", "GET", self.file, 200),
            ("/api/form", "GET", self.form, 200),
            ("/api/runs", "GET", self.all_runs, 200),
            ("/api/runs", "POST", self.add, 201),
            ("/api/runs/{id}", "GET", self.one, 200),
            ("/api/runs/{id}/again", "POST", self.again, 201),
            ("/api/runs/{id}/files/{option}", "POST", self.attach, 201),
            ("/api/runs/{id}/look", "POST", self.look, 200),
            ("/api/runs/{id}/start", "POST", self.start, 200),
            ("/api/runs/{id}/cancel", "POST", self.cancel, 200),
            ("/api/runs/{id}/predict", "POST", self.predict, 201),
            ("/runs/{id}/{path:path}", "GET", self.output, 200),
        ]
        return [
            Route(path, answer(handler, status), methods=[method])
            for path, method, handler, status in made
        ]

    async def file(self, request: Request) -> Response:
        """The page, its style, its script, and the colours of the report."""
        name = request.path_params.get("name", "index.html")
        if name == "palette.css":
            from ...report.charts import palette_css

            return _headed(Response(palette_css(), media_type="text/css"))
        if name not in _FILES:
            return Response("There is nothing here.", 404)
        text = resources.files(__package__).joinpath(f"static/{name}").read_text(encoding="utf-8")
        return _headed(Response(text, media_type=_FILES[name]))

    async def form(self, request: Request) -> Any:
        """The options that the page may set."""
        self.runs.warm()
        return {"fields": fields(), "folder": str(self.runs.folder)}

    async def all_runs(self, request: Request) -> Any:
        """The list of runs, the latest first."""
        return [run.describe() for run in self.runs]

    async def one(self, request: Request) -> Any:
        """One run."""
        return self._run(request).describe()

    async def add(self, request: Request) -> Any:
        """A file that was dropped: a new run."""
        return (await self.runs.add(_name(request), request.stream())).describe()

    async def again(self, request: Request) -> Any:
        """A new run on the file of another, with further choices."""
        asked = await _object(request)
        return self.runs.copy(self._run(request), _choices(asked)).describe()

    async def attach(self, request: Request) -> Any:
        """A second file: labels, or another cohort."""
        run, option = self._run(request), request.path_params["option"]
        await self.runs.attach(run, option, _name(request), request.stream())
        return run.describe()

    async def look(self, request: Request) -> Any:
        """How the table is read with what is chosen: roles, classes, notices."""
        asked = await _object(request)
        return await self.runs.look(self._run(request), _choices(asked), str(asked.get("care")))

    async def start(self, request: Request) -> Any:
        """Begin the run with what is chosen."""
        run, asked = self._run(request), await _object(request)
        await self.runs.begin(run, _choices(asked), str(asked.get("care")))
        return run.describe()

    async def cancel(self, request: Request) -> Any:
        """End a run."""
        run = self._run(request)
        self.runs.cancel(run)
        return run.describe()

    async def predict(self, request: Request) -> Any:
        """Classify the samples of a new file with the model of a finished run."""
        size = request.query_params.get("size")
        return await self.runs.predict(self._run(request), _name(request), request.stream(), size)

    async def output(self, request: Request) -> Response:
        """A file that a run has written: the report to be read, all others to be kept."""
        path = self._run(request).outputs().get(request.path_params["path"])
        if path is None:
            return Response("There is no such file.", 404)
        if path.name == "index.html":
            return _headed(FileResponse(path, media_type="text/html"), _REPORT_POLICY)
        return _headed(FileResponse(path, filename=path.name))

    def _run(self, request: Request) -> Run:
        return self.runs[request.path_params["id"]]


def _name(request: Request) -> str:
    """Return the name of the file that a request brings."""
    return request.query_params.get("name", "")


def _choices(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the choices in a request, without those that are empty."""
    choices = asked.get("choices", {})
    if not isinstance(choices, dict):
        raise InputError("the choices are no JSON object", remedy="reload the page")
    return {name: value for name, value in choices.items() if value not in (None, "", [])}


async def _object(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_JSON:
            raise InputError("the request is too long")
    try:
        asked = json.loads(body)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise InputError("the request is no JSON object", remedy="reload the page")
    return asked


def make_app(runs: Runs, *, port: int, token: str) -> ASGIApp:
    """Put runs, pages and guard together; requests must name the port and carry the token."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await runs.close()

    return Guard(Starlette(routes=Pages(runs).routes(), lifespan=lifespan), port=port, token=token)


def serve(folder: Path, *, port: int, memory: int | None, announce: Callable[[str], None]) -> None:
    """Serve the page at a port (0 takes a free one) until Ctrl-C.

    ``memory`` is how many bytes a run may use; ``announce`` is called with the address, token
    included, as soon as it answers.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise InputError(
            f"port {port} is taken ({error.strerror})", remedy="choose another, or 0 for a free one"
        ) from error
    listener.listen(64)
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = make_app(Runs(folder, memory=memory), port=port, token=token)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")
    announce(f"http://127.0.0.1:{port}/?token={token}")
    with suppress(KeyboardInterrupt):  # that is how it ends
        uvicorn.Server(config).run(sockets=[listener])
