"""How many modules and functions of assay do one small thing: ``python -m tools.walks NAME``."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType

_SOURCE = str(Path(__file__).parents[1] / "src" / "assay")
_CASE = """\
id: mean
task: {prompt: "Write mean(xs) in kit.py."}
matrix: {harnesses: [replay], models: [reference]}
graders: [{type: pytest, inject: [{src: test_kit.py, dest: test_kit.py}], isolation: shared}]
"""


def _commanded(*words: str) -> Callable[[], None]:
    from assay.cli.main import main

    def act() -> None:
        sys.argv = ["assay", *words]
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise

    return act


def _case() -> Callable[[], None]:
    work = Path("evals/mean/recordings/reference/files")
    work.mkdir(parents=True)
    Path("evals/mean/case.yaml").write_text(_CASE)
    (work / "kit.py").write_text("def mean(xs): return sum(xs) / len(xs)\n")
    test = "import kit\ndef test_mean(): assert kit.mean([1, 3]) == 2\n"
    Path("evals/mean/test_kit.py").write_text(test)
    return _commanded("run", "evals")


def _row() -> Callable[[], None]:
    Path("rows.jsonl").write_text('{"id": "a", "answer": "4", "expected": "4"}\n')
    Path("grader.yaml").write_text("graders: [{type: exact_match}]\n")
    return _commanded("grade", "rows.jsonl", "grader.yaml")


def _request() -> Callable[[], None]:
    import httpx

    from assay.server.app import context_of, create_app
    from assay.server.context import ServerSettings
    from assay.service.site import new_key
    from assay.store.projects import ApiKeys

    async def ask() -> None:
        app = create_app(ServerSettings(location="assay.db"))
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client,
        ):
            made = new_key()
            await context_of(app).storage.run(
                lambda store: ApiKeys(store).create("a", "admin", "*", made.hashed, made.prefix)
            )
            client.headers["Authorization"] = f"Bearer {made.token}"
            body = {
                "key": "exact",
                "kind": "declared",
                "definition": {"graders": [{"type": "exact_match"}]},
            }
            place = "/api/v1/projects/default/graders"
            (await client.post(place, json=body)).raise_for_status()
            _seen.clear()
            items = {"items": [{"answer": "4", "expected": "4"}]}
            (await client.post(f"{place}/exact/grade", json=items)).raise_for_status()

    return lambda: asyncio.run(ask())


WALKS = {
    "a case with one pytest test": _case,
    "a row with one comparison": _row,
    "a grade over HTTP": _request,
}
_seen: set[CodeType] = set()


def _note(frame: FrameType, event: str, _: object) -> None:
    if event == "call":
        _seen.add(frame.f_code)


def walked(act: Callable[[], None]) -> tuple[int, int]:
    """How many modules and functions of assay run, without what runs when modules are loaded."""
    threading.setprofile(_note)
    sys.setprofile(_note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    functions = [
        code
        for code in _seen
        if code.co_filename.startswith(_SOURCE)
        and code.co_flags & inspect.CO_OPTIMIZED
        and not code.co_name.startswith("<")
    ]
    return len({code.co_filename for code in functions}), len(functions)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.chdir(home)
        print(*walked(WALKS[sys.argv[1]]()))
