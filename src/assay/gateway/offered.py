"""Tools of a run for its agent in a sandbox: MCP over HTTP, at the gateway's door.

Of the protocol only what one reply answers: no streams, no sessions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from assay.conversation.protocols import ProtocolError
from assay.errors import AssayError, TaskEndedError
from assay.scoring.json_safe import Json
from assay.version import __version__

if TYPE_CHECKING:
    from assay.types.run import Run

SERVER = "assay"
"""What agents are told that the server is called; most put it before the names of its tools."""

_VERSIONS = ("2025-06-18", "2025-03-26")
_MOST_CALLS = 10_000
_MOST_KEPT = 64 << 20
_NO_METHOD, _WRONG = -32601, -32602


class OfferedTools:
    """The tools of a run, answered by JSON-RPC.

    Args:
        run: It.

    Attributes:
        failure: Why a call could not be made, where that was not the agent's doing.
    """

    def __init__(self, run: Run) -> None:
        self.failure: AssayError | None = None
        self._run = run
        self._calls = self._kept = 0

    async def answer(self, frame: Mapping[str, Json]) -> dict[str, Json] | None:
        """The reply to a frame; None where it wants none.

        Raises:
            ProtocolError: If it is no frame.
        """
        method, number = frame.get("method"), frame.get("id")
        if not isinstance(method, str) or frame.get("jsonrpc") != "2.0":
            raise ProtocolError(400, "this is not JSON-RPC 2.0")
        if "id" not in frame:
            return None
        if not isinstance(number, int | str):
            raise ProtocolError(400, "the id of a call is a number or a text")
        params = frame.get("params")
        said = await self._said(method, params if isinstance(params, dict) else {})
        return {"jsonrpc": "2.0", "id": number, **said}

    async def _said(self, method: str, params: Mapping[str, Json]) -> dict[str, Json]:
        if method == "initialize":
            wanted = params.get("protocolVersion")
            about: dict[str, Json] = {
                "protocolVersion": wanted if wanted in _VERSIONS else _VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": SERVER, "version": __version__},
            }
            return {"result": about}
        if method == "ping":
            return {"result": {}}
        if method == "tools/list":
            return {"result": {"tools": self._listed()}}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if method != "tools/call":
            return {"error": {"code": _NO_METHOD, "message": "there is no such method"}}
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return {"error": {"code": _WRONG, "message": "a call has a name and arguments"}}
        content, is_error = await self._call(name, arguments)
        told: list[Json] = [{"type": "text", "text": content}]
        return {"result": {"content": told, "isError": is_error}}

    def _listed(self) -> list[Json]:
        return [
            {"name": tool.name, "description": tool.description, "inputSchema": dict(tool.schema)}
            for tool in self._run.tools.values()
        ]

    async def _call(self, name: str, arguments: dict[str, Json]) -> tuple[str, bool]:
        self._calls += 1
        self._kept += len(json.dumps(arguments))
        if self._calls > _MOST_CALLS or self._kept > _MOST_KEPT:  # all of it is in the trace
            return "error: no more calls are taken", True
        try:
            result = await self._run.call(name, arguments)
        except TaskEndedError as error:
            return f"error: {error}", True
        except AssayError as error:
            self.failure = error
            return f"error: {error}", True
        found = result.content
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        self._kept += len(text)
        return text, result.is_error
