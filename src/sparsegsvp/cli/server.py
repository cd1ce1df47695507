"""The server of the page: on this machine alone, for whoever has its token.

Every request must carry the address that the server was started at as its host, and, when it
changes something, as its origin; and the token, which the printed address hands to a cookie.
Pages may load nothing from elsewhere. A report is shown as a page without an origin, so that
nothing in it could speak to the server.
"""

from __future__ import annotations

import hmac
import inspect
import json
import secrets
import socket
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..io.errors import InputError
from .options import explain, fields
from .runs import Run, Runs

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
# The report has a policy of its own inside; this one takes its origin away.
_REPORT_POLICY = "sandbox allow-scripts allow-downloads allow-popups; frame-ancestors 'self'"
_STATIC = Path(__file__).with_name("static")
_MOST_JSON = 1 << 22  # bytes of a request that is no file

Handler = Callable[[Request], Any]


class Guard:
    """Lets pass only requests from the page itself, with the token."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.cookie = f"sparsegsvp-{port}"
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the requests of others; the app sees the rest."""
        refusal = self._refuse(Request(scope)) if scope["type"] == "http" else None
        await (refusal or self.app)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return Response("This server answers only at its own address.", 403)
        origin = request.headers.get("origin")
        if origin is not None and origin != f"http://{host}":
            return Response("Requests of other pages are not answered.", 403)
        if request.method not in ("GET", "HEAD") and origin is None:
            return Response("Requests of other programs are not answered.", 403)
        given = _query(request, "token").encode()
        if request.url.path == "/" and hmac.compare_digest(given, self.token.encode()):
            response = RedirectResponse("/", 303)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return response
        if hmac.compare_digest(request.cookies.get(self.cookie, "").encode(), self.token.encode()):
            return None
        return Response("Open the address that sparsegsvp app has printed, with its token.", 403)


def _query(request: Request, name: str) -> str:
    return request.query_params.get(name, "")


def _headed(response: Response, policy: str = _POLICY) -> Response:
    response.headers["Content-Security-Policy"] = policy
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Cache-Control"] = "no-store"
    return response


def routes(runs: Runs) -> list[Route]:
    """Return the addresses of the page and of what it asks for."""

    def run_of(request: Request) -> Run:
        return runs[request.path_params["id"]]

    def asking(act: Callable[..., Any]) -> Handler:
        """Hand the choices of a request to a run."""

        async def handler(request: Request) -> Any:
            return act(run_of(request), *await _asked(request))

        return handler

    def sending(act: Callable[..., Any]) -> Handler:
        """Hand the file of a request to a run, and what it is for."""
        return lambda r: act(run_of(r), _query(r, "name"), r.stream(), _query(r, "as"))

    def output(request: Request) -> Response:
        path = run_of(request).outputs().get(request.path_params["path"])
        if path is None:
            return Response("There is no such file.", 404)
        if path.name == "index.html":  # to be read; all others to be kept
            return _headed(FileResponse(path, media_type="text/html"), _REPORT_POLICY)
        return _headed(FileResponse(path, filename=path.name))

    handlers: dict[str, Handler] = {
        "GET /": _file,
        "GET /{name}": _file,
        "GET /api/form": lambda _: {"fields": fields(), "folder": str(runs.folder)},
        "GET /api/runs": lambda _: [run.describe() for run in runs],
        "POST /api/runs": lambda r: runs.add(_query(r, "name"), r.stream()),
        "GET /api/runs/{id}": run_of,
        "POST /api/runs/{id}/again": asking(runs.copy),
        "POST /api/runs/{id}/attach": sending(runs.attach),
        "POST /api/runs/{id}/look": asking(runs.look),
        "POST /api/runs/{id}/start": asking(runs.begin),
        "POST /api/runs/{id}/cancel": lambda r: runs.cancel(run_of(r)),
        "POST /api/runs/{id}/predict": sending(runs.predict),
        "GET /runs/{id}/{path:path}": output,
    }
    return [
        Route(path, _answering(handler), methods=[method])
        for (method, path), handler in ((key.split(), value) for key, value in handlers.items())
    ]


def _answering(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Answer with the JSON of what a handler returns, or say in one line why it refuses."""

    async def run(request: Request) -> Response:
        try:
            result = handler(request)
            while inspect.isawaitable(result):
                result = await result
            result = result.describe() if isinstance(result, Run) else result
            return result if isinstance(result, Response) else JSONResponse(result)
        except InputError as error:
            return JSONResponse(explain(error), 400)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception:
            traceback.print_exc()
            fault = "This is a fault of sparsegsvp, not of your file; the terminal shows where."
            return JSONResponse({"error": fault}, 500)

    return run


def _file(request: Request) -> Response:
    """Return the page, its style, its script, or the colours of the report."""
    name = request.path_params.get("name", "index.html")
    if name == "palette.css":
        from ..report.charts import palette_css

        return _headed(Response(palette_css(), media_type="text/css"))
    if name not in ("index.html", "app.css", "app.js"):
        return Response("There is nothing here.", 404)
    return _headed(FileResponse(_STATIC / name))


async def _asked(request: Request) -> tuple[dict[str, Any], str]:
    """Return choices that are not empty, and how careful the estimate is to be."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_JSON:
            raise InputError("the request is too long")
    try:
        asked = json.loads(body)
        choices = {k: v for k, v in asked["choices"].items() if v not in (None, "", [])}
        return choices, str(asked.get("care", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError("the request is not of this page", remedy="reload the page") from None


def serve(folder: Path, *, port: int, announce: Callable[[str], None]) -> None:
    """Serve the page at a port (0 takes a free one) until Ctrl-C.

    ``announce`` is called with the address, token included, as soon as it answers.
    """
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise InputError(
            f"port {port} is taken ({error.strerror})", remedy="choose another, or 0 for a free one"
        ) from error
    port = listener.getsockname()[1]
    token, runs = secrets.token_urlsafe(24), Runs(folder)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await runs.close()

    app = Guard(Starlette(routes=routes(runs), lifespan=lifespan), port=port, token=token)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on")
    announce(f"http://127.0.0.1:{port}/?token={token}")
    with suppress(KeyboardInterrupt):  # that is how it ends
        uvicorn.Server(config).run(sockets=[listener])
