"""What an import costs, and that every public name is there and explained."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import sys
import typing
from pathlib import Path

import pytest

import assay
from assay.cli.main import COMMANDS, _function
from assay.store.database import Database
from tests.children import alone, printed
from tests.each import each

HEAVY = ["pydantic", "rich", "typer", "yaml", "rapidfuzz", "re2", "jsonschema_rs", "zstandard"]
LATE = ["sqlite3", "asyncio", "subprocess", "difflib", "tempfile"]


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a statement loads in a new interpreter."""
    code = (
        "import json, sys\nbefore = set(sys.modules)\n"
        f"{statement}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    return {str(name).partition(".")[0] for name in json.loads(alone(code))}


def foreign(modules: set[str]) -> set[str]:
    return modules - set(sys.stdlib_module_names) - {"assay"}


def test_importing_light_rooms_and_using_a_name_loads_no_package_of_others() -> None:
    rooms = ", ".join(
        f"assay.{room}" for room in ("graders", "models", "types", "scoring", "native")
    )
    loaded = loaded_by(f"import assay, {rooms}\nassay.SubScore(name='x', value=1.0)")
    assert foreign(loaded) == set()
    assert loaded.isdisjoint([*HEAVY, *LATE])


def test_neither_an_environment_an_endpoint_nor_a_fake_loads_a_package_before_it_is_used() -> None:
    rooms = "assay.testing, assay.endpoint, assay.graders.endpoint"
    statement = f"from assay import Environment, Task, Taskset\nimport {rooms}"
    assert foreign(loaded_by(statement)) == set()


def test_a_transcript_loads_the_reader_of_its_own_format() -> None:
    code = """
        import sys
        import assay.agents.transcripts as package
        found = [[name for name in sys.modules if "transcripts." in name]]
        line = '{"type": "thread.started", "thread_id": "t"}'
        package.read_transcript(line, "codex")
        found.append([name for name in sys.modules if "transcripts." in name])
        readers = {"codex", "claude_code", "otel", "inspect_log", "provider", "atif"}
        print([sorted(readers & {name.rpartition(".")[2] for name in names}) for names in found])
    """
    assert alone(code) == "[[], ['codex']]\n"


def test_a_misspelt_name_is_an_error_and_all_names_are_listed() -> None:
    misspelt = "SubScor"
    with pytest.raises(AttributeError, match="no attribute 'SubScor'"):
        getattr(assay, misspelt)
    assert set(assay.__all__) <= set(dir(assay))


_ECHO = """\
id: echo
task: {prompt: Say where the river runs.}
matrix: {harnesses: [echo], models: [none]}
graders: [{type: files, patterns: ["river runs"]}]
"""


def _loaded_by(arguments: list[str], place: Path) -> list[str]:
    """The modules that are loaded when a command has ended well."""
    code = (
        "import json, sys\nfrom assay.cli.main import main\n"
        f"try:\n    main({arguments!r})\n"
        "except SystemExit as ended:\n    print(json.dumps([ended.code, sorted(sys.modules)]))"
    )
    env = {**os.environ, "ASSAY_DB": str(place / "home")}
    said = printed([sys.executable, "-c", code], cwd=place, env=env)
    status, modules = json.loads(said.splitlines()[-1])
    assert status == 0
    return modules


def test_a_run_loads_what_its_case_uses(tmp_path: Path) -> None:
    (tmp_path / "echo.yaml").write_text(_ECHO)
    modules = _loaded_by(["run", "echo.yaml", "--fail-under", "0"], tmp_path)
    unused = {
        "assay.agents.command",
        "assay.agents.presets.declaration",
        "assay.agents.transcripts",
        "assay.cli.calibrate",
        "assay.gateway",
        "assay.graders.signs.other",
        "assay.graders.tool_calls",
        "assay.models.client",
        "assay.registry",
        "assay.reports.grader_cards",
        "assay.scoring.notebook",
        "assay.statistics.agreement",
        "assay.store.catalog",
        "assay.testing",
        "pydantic",
        "tarfile",
    }
    assert unused.isdisjoint(modules)
    assert len(modules) < 400


@pytest.mark.parametrize("noun", ["server list scores", "runs list"])
def test_a_command_on_what_is_stored_loads_no_grader(tmp_path: Path, noun: str) -> None:
    Database.open(str(tmp_path / "home")).close()
    modules = _loaded_by(noun.split(), tmp_path)
    assert "assay.store.database" in modules
    assert not [name for name in modules if name.startswith(("assay.graders", "assay.types"))]


def test_every_command_adds_its_options_and_runs() -> None:
    for command in COMMANDS:
        assert callable(_function("add", command))
        assert callable(_function("run", command))


_ROOMS = (
    "agents agents.types client endpoint environment errors eval graders models native registry "
    "sandbox scoring store tasks testing text types"
)
FACADES = ["assay", *(f"assay.{room}" for room in _ROOMS.split())]


@each("facade", FACADES)
def test_every_public_name_is_there_and_has_a_docstring(facade: str) -> None:
    module = importlib.import_module(facade)
    assert module.__doc__
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isroutine(value):
            doc = inspect.getdoc(value)
            assert doc, name
            assert not doc.startswith(f"{name}("), f"{name} has only a generated docstring"
        else:
            assert typing.get_origin(value) or type(value) in (str, dict), name
        if inspect.isclass(value):
            methods = {n: m for n, m in vars(value).items() if inspect.isfunction(m)}
            bare = [n for n, m in methods.items() if not n.startswith("_") and not m.__doc__]
            assert bare == [], name


def test_every_name_in_every_modules_list_exists() -> None:
    for found in pkgutil.walk_packages(assay.__path__, "assay."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{found.name}.{name}"


def test_the_type_checkers_view_of_assay_is_the_real_one() -> None:
    for name in assay.__all__:
        home = assay._HOME_OF[name]
        assert name in importlib.import_module(home).__all__
        assert getattr(assay, name) is getattr(importlib.import_module(home), name)


_SOURCE = Path(assay.__file__).parent
_ON_DEMAND = [
    ".".join(("assay", *init.parent.relative_to(_SOURCE).parts))
    for init in sorted(_SOURCE.rglob("__init__.py"))
    if "__getattr__" in init.read_text("utf-8")
]


@each("room", _ON_DEMAND)
def test_no_module_hides_what_its_room_gives_on_demand(room: str) -> None:
    """Importing a module puts it into its room, in place of a function of the same name."""
    found = importlib.import_module(room)
    modules = {module.name for module in pkgutil.iter_modules(found.__path__)}
    assert modules.isdisjoint(found.__all__)
