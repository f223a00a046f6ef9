"""Every Python block of the README and the docs runs, page by page, as a reader would run it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest

from assay.models import register_model
from assay.tasks.grader_files import load_graders
from assay.testing import FakeJudge
from tests.children import Children
from tests.client_modes import running
from tests.command_line import COMMAND, assay

_ROOT = Path(__file__).parent.parent
_PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def _blocks(page: Path, language: str) -> list[str]:
    return [m[2] for m in _BLOCK.finditer(page.read_text("utf-8")) if m[1] == language]


def _each_page(pages: list[Path]) -> pytest.MarkDecorator:
    """One test of every page, named after it."""
    names = {page.relative_to(_ROOT).as_posix(): page for page in pages}
    rows = [
        pytest.param(page, id=name, marks=[pytest.mark.slow] if name in _LONG else [])
        for name, page in names.items()
    ]
    return pytest.mark.parametrize("page", rows)


_LONG = {"README.md", "docs/tutorial.md"}
"""Pages whose commands take seconds."""

_WORKED = [page for page in _PAGES if any(m[2] for m in _STEP.finditer(page.read_text("utf-8")))]
_PYTHON = [page for page in _PAGES if _blocks(page, "python") and page not in _WORKED]


@pytest.fixture(autouse=True)
def own_model() -> Generator[None]:
    """The model that a page registers is there for no test behind it."""
    yield
    register_model("my-judge", None)


@_each_page(_PYTHON)
@pytest.mark.sandbox
def test_every_python_block_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")  # where dataclasses look up the names of their annotations
    monkeypatch.setitem(sys.modules, "page", module)
    for number, block in enumerate(_blocks(page, "python"), 1):
        file = tmp_path / f"block_{number}.py"  # a reader's own file: its source can be read
        file.write_text(block, "utf-8")
        _execute(file, block, module)


@_each_page(_WORKED)
@pytest.mark.sandbox
def test_a_worked_page_does_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks with a title are files; of console blocks, every command gives the output below it."""
    reader = _Reader(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASSAY_DB", str(tmp_path / ".assay"))
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    with reader.servers:
        for number, step in enumerate(_STEP.finditer(page.read_text("utf-8")), 1):
            language, title, text = step.groups()
            if title:
                reader.write(title, text)
            elif language == "python":
                file = reader.write(f"block_{number}.py", text)
                _execute(file, file.read_text("utf-8"), module)
            elif language == "console":
                reader.follow(text)


def test_pictures_of_pages_are_there_and_small() -> None:
    for page in _PAGES:
        for name in re.findall(r'(?:src|srcset)="([^"]+\.png)"', page.read_text("utf-8")):
            assert (page.parent / name).stat().st_size < 200_000, f"{page}: {name}"


class _Reader:
    """Somebody who follows a page word for word, but lets servers choose their ports."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env: dict[str, str] = {}
        self.servers = contextlib.ExitStack()
        self._chosen: dict[str, str] = {}
        """What a page writes, and what it is here: ports, keys."""

    def write(self, name: str, text: str) -> Path:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self._here(text), "utf-8")
        return file

    def follow(self, console: str) -> None:
        for step in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]:
            line, _, output = step.partition("\n")
            command = re.sub(r"\s#.*", "", self._here(line))  # within a word, as in a URL, # is a #
            said = self._run(shlex.split(command))
            for chosen, written in self._chosen.items():
                said = said.replace(written, chosen)
            assert _shows(output, said), f"$ {line}\nsays\n{said}\nand not\n{output}"

    def _run(self, words: list[str]) -> str:
        match words:
            case ["export", *assigned]:
                self.env |= dict(each.split("=", 1) for each in assigned)
                return ""
            case ["mkdir", "-p", *names]:
                for name in names:
                    (self.home / name).mkdir(parents=True, exist_ok=True)
                return ""
            case ["assay", "fake", "--judge", *answers, "--port", port, "&"]:
                return self._serve(port, answers[0] if answers else None)
            case ["assay", "serve", "--port", port, "--create-key", _, "&"]:
                return self._serve_all(port)
            case ["assay", "serve", "env", file, "--port", port, *options, "&"]:
                return self._serve_env(file, port, options)
            case ["python", file]:
                env = {**os.environ, **self.env}
                command = [sys.executable, file]
                done = subprocess.run(
                    command, cwd=self.home, env=env, capture_output=True, text=True, check=True
                )
                return done.stdout
            case ["assay", *arguments]:
                done = assay(*arguments, cwd=self.home, env=self.env)
                return done.stdout or done.stderr
            case _:
                raise AssertionError(f"no reader of the docs types {words}")

    def _serve(self, port: str, answers: str | None) -> str:
        script = (self.home / answers).read_text("utf-8").splitlines() if answers else None
        fake = FakeJudge(None if script is None else [json.loads(line) for line in script])
        self.servers.enter_context(fake)
        self._chosen[f"127.0.0.1:{port}"] = fake.root_url.removeprefix("http://")
        return f"serving fake-judge at {fake.base_url} (Ctrl-C ends it)"

    def _serve_env(self, file: str, port: str, options: list[str]) -> str:
        children = self.servers.enter_context(Children())
        env = {**os.environ, **self.env}
        command = [*COMMAND, "serve", "env", file, *options]
        served = children.start(command, cwd=self.home, env=env)
        assert served.stdout is not None
        said = served.stdout.readline() + served.stdout.readline()
        found = re.search(r"tcp://(\S+)", said)
        assert found, said
        self._chosen[f"127.0.0.1:{port}"] = found[1]
        return said

    def _serve_all(self, port: str) -> str:
        server = self.servers.enter_context(running(str(self.home / ".assay")))
        token = server.key()
        self._chosen |= {f"127.0.0.1:{port}": server.url.removeprefix("http://")}
        self._chosen |= {"assay_...": token}
        said = f"assay listens on {server.url}\nlog in, once: ...\n"
        return f"{said}the new key:     {token}   (shown this once)"

    def _here(self, text: str) -> str:
        for written, chosen in self._chosen.items():
            text = text.replace(written, chosen)
        return text


def _shows(expected: str, said: str) -> bool:
    """Whether a command said what a page shows; `...` stands for what the page leaves out."""
    shown = [line.rstrip() for line in expected.strip().splitlines()]
    parts = [
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in shown
    ]
    text = "".join(f"{line.rstrip()}\n" for line in said.strip().splitlines())
    return re.fullmatch("".join(parts), text) is not None


def _execute(file: Path, block: str, module: ModuleType) -> None:
    """Run a block; where each `print(...)` has a comment, that is what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block, str(file), "exec"), vars(module))
    comments = re.findall(r"^\s*print\(.*\)  # (.*)$", block, re.MULTILINE)
    if len(comments) == block.count("print("):
        assert said.getvalue().splitlines() == comments


def test_the_readme_names_every_kind_that_runs() -> None:
    from assay.graders.kinds import KINDS

    text = (_ROOT / "README.md").read_text("utf-8")
    assert [kind for kind in KINDS if f"`{kind}`" not in text] == []


def test_every_page_is_in_the_navigation() -> None:
    docs = _ROOT / "docs"
    listed = (_ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.name for page in docs.glob("*.md")]
    assert [page for page in pages if f": {page}\n" not in listed] == []

    decided = (docs / "decisions" / "index.md").read_text("utf-8")
    pages = [page.name for page in (docs / "decisions").glob("0*.md")]
    assert [page for page in pages if f"({page})" not in decided] == []


def test_every_link_leads_to_a_page_and_its_heading() -> None:
    lost: list[str] = []
    for page in [*_PAGES, _ROOT / "CHANGELOG.md"]:
        for link in re.findall(r"\]\(([^)\s:]+)\)", _BLOCK.sub("", page.read_text("utf-8"))):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            if not target.exists() or (anchor and anchor not in _anchors(target)):
                lost.append(f"{page.relative_to(_ROOT)}: {link}")
    assert lost == []


def test_every_page_that_a_message_names_is_there() -> None:
    lost: list[str] = []
    for file in [*(_ROOT / "src").rglob("*.py"), *(_ROOT / "bench").rglob("*.py")]:
        for name, anchor in re.findall(
            r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", file.read_text("utf-8")
        ):
            page = _ROOT / name
            if not page.exists() or (anchor and anchor not in _anchors(page)):
                lost.append(f"{file.relative_to(_ROOT)}: {name}#{anchor}")
    assert lost == []


def test_every_file_that_the_laws_name_is_there() -> None:
    """Whoever follows AGENTS.md or CONTRIBUTING.md opens the file that they name."""
    lost: list[str] = []
    for laws in ("AGENTS.md", "CONTRIBUTING.md"):
        text = (_ROOT / laws).read_text("utf-8")
        for name in re.findall(r"`((?:[\w]+/)+[a-z_]+\.(?:py|ts|md|txt|cjs))`", text):
            places = (_ROOT, _ROOT / "src/assay", _ROOT / "src/assay/graders")
            if not any((place / name).exists() for place in places):
                lost.append(f"{laws}: {name}")
    assert lost == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", _STEP.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-")) for heading in headings}


def test_commands_of_shell_blocks_are_ones_that_assay_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What a shell block shows is not run: it wants a key, a cluster or files that nobody has."""
    from assay.cli.main import parse

    blocks = [block for page in _PAGES for name in ("sh", "bash") for block in _blocks(page, name)]
    lines = re.sub(r"\\\n|[ \t]#.*|>.*", "", "".join(blocks)).splitlines()
    commands = [part for line in lines for part in re.split(r"&&|[|;&]", line)]
    shown = [found[1] for each in commands if (found := re.match(r"\s*(?:\S*/)?assay (.*)", each))]
    assert len(shown) > 100
    for command in shown:
        with contextlib.suppress(SystemExit):
            parse(shlex.split(command))
        assert capsys.readouterr().err == "", command


def test_grader_lists_of_the_pages_load() -> None:
    loaded = [
        load_graders(block)
        for page in _PAGES
        for block in _blocks(page, "yaml")
        if block.startswith("- {type")
    ]
    assert loaded
