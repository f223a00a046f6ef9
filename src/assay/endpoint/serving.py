"""Apps, routers and servers of graders."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from assay.endpoint.served import Access, Scorer, Served, ServedOptions
from assay.errors import InputError, MissingExtraError
from assay.sockets import is_loopback, listen

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI

    from assay.endpoint.routes import Find

_SECONDS_TO_FINISH = 5


def serve_wire(
    scorer: Scorer, *, token_env: str = "", hmac_env: str = "", **options: Unpack[ServedOptions]
) -> FastAPI:
    """An app that serves a scorer in every wire form.

    Args:
        scorer: Grades items.
        token_env: Name of the environment variable with the bearer token.
        hmac_env: Name of the environment variable with the secret that requests are signed with.
        **options: Name, limits and the like; see `Served`.

    Raises:
        InputError: For a variable that is not set, or options that make no sense.
        MissingExtraError: Without the extra ``server``.
    """
    served = Served(scorer=scorer, **options)
    access = Access.from_environment(token_env=token_env, hmac_env=hmac_env)
    _require_server()
    from assay.endpoint.routes import build_app, build_router

    return build_app(build_router(_always(served), access), served)


def router_for(scorer: Scorer, **options: Unpack[ServedOptions]) -> APIRouter:
    """The routes of one scorer, to be mounted in an app that looks after access itself.

    Raises:
        MissingExtraError: Without the extra ``server``.
    """
    return router_finding(_always(Served(scorer=scorer, **options)))


def router_finding(find: Find) -> APIRouter:
    """The routes of graders that are looked up for each request, say by parts of the path.

    Args:
        find: Which grader a request is for; raises `ProblemError` where there is none.

    Raises:
        MissingExtraError: Without the extra ``server``.
    """
    _require_server()
    from assay.endpoint.routes import build_router

    return build_router(find, Access())


def app_for(
    function: Callable[..., object],
    *,
    token_env: str = "",
    hmac_env: str = "",
    **options: Unpack[ServedOptions],
) -> FastAPI:
    """An app that serves a plain Python function, for tests and for servers of one's own.

    Args:
        function: Grades one item; see `serve`.
        token_env: Name of the environment variable with the bearer token.
        hmac_env: Name of the environment variable with the signing secret.
        **options: Name, limits and the like; see `Served`. The name is the function's by default.

    Raises:
        InputError: For a function that cannot be served, or a variable that is not set.
        MissingExtraError: Without the extra ``server``.
    """
    from assay.endpoint.scorers import scorer_of

    name = str(getattr(function, "__name__", type(function).__name__))
    summary = (function.__doc__ or "").strip().partition("\n")[0]
    named: ServedOptions = {"name": name, "description": summary, **options}
    return serve_wire(scorer_of(function), token_env=token_env, hmac_env=hmac_env, **named)


def serve(
    function: Callable[..., object],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token_env: str = "",
    hmac_env: str = "",
    without_auth: bool = False,
    **options: Unpack[ServedOptions],
) -> None:
    """Serve a plain Python function as a reward server until Ctrl-C.

    The function is called for each item, in a thread unless it is async, several at a time. Its
    parameters are named after what it needs (``thread``, ``answer``, ``question``, ``expected``,
    ``metadata``; a single parameter of another name is given the thread) and it returns a
    number, ``(number, reason)`` or ``{"score": ..., "reason": ...}``. An exception, a bool, a NaN
    or a score out of ``score_range`` is an error of that item.

    Args:
        function: Grades one item. It is trusted: it runs in this process.
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        token_env: Name of the environment variable with the bearer token.
        hmac_env: Name of the environment variable with the signing secret.
        without_auth: Whether others may ask without a secret, on an address that others reach.
        **options: Name, limits and the like; see `Served`.

    Raises:
        InputError: For a function that cannot be served, a port that is taken, or an address that
            others reach without a secret.
        MissingExtraError: Without the extra ``server``.
    """
    require_protection(host, token_env or hmac_env, without_auth=without_auth)
    app = app_for(function, token_env=token_env, hmac_env=hmac_env, **options)
    run_app(app, host=host, port=port)


def require_protection(host: str, secret_env: str, *, without_auth: bool) -> None:
    """Refuse to serve others without a secret, unless that is asked for."""
    if not (is_loopback(host) or secret_env or without_auth):
        raise InputError(
            f"others can reach {host}, and nothing would keep them out",
            hint="give token_env or hmac_env (--token-env, --hmac-env), or without_auth"
            " (--without-auth) where callers can send no secret",
        )


def url_of(opened: socket.socket, host: str) -> str:
    """Where a server answers that listens there."""
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{shown}:{opened.getsockname()[1]}"


def run_app(
    app: FastAPI, *, host: str, port: int, on_start: Callable[[str], object] | None = None
) -> None:
    """Serve an app until it is interrupted, and end cleanly."""
    from assay.endpoint.listening import ListeningLimits, run, server_for

    with listen(host, port) as listener:
        url = url_of(listener, host)

        def started() -> None:
            if on_start is None:
                logging.getLogger("uvicorn.error").info("serving at %s", url)
            else:
                on_start(url)

        limits = ListeningLimits(grace_seconds=_SECONDS_TO_FINISH)
        run(server_for(app, limits, start=started, is_told=on_start is None).serve([listener]))


def _always(served: Served) -> Find:
    async def find(_: object) -> Served:
        return served

    return find


def _require_server() -> None:
    from importlib.util import find_spec

    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("serving a grader", extra="server")
