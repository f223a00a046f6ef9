"""Cases in container images, with a real podman: what is unpacked, what is run, what is recorded.

Nothing is pulled: every image is made of this machine's own programs.
"""

from __future__ import annotations

import importlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.conversation.turns import Conversation
from assay.errors import ProvisionError
from assay.eval.records import record_of
from assay.eval.workspaces import images
from assay.eval.workspaces.images import pinned, prepare, unpack_archive
from assay.sandbox import run_command_sync
from assay.store import Store
from assay.store.kept_files import at_work
from assay.tasks.blocks import ContainerSpec, Expect
from assay.tasks.case import load_case
from assay.testing import FakeModel, calls
from assay.types.run import Run
from assay.types.submission import Workspace
from assay.types.trace import ToolStep
from tests.command_line import assay, cells
from tests.containers import PASSWD, Podman, make_root
from tests.each import each
from tests.written_files import write_files

pytestmark = pytest.mark.sandbox

Entry = tuple[str, bytes, int, str]


@pytest.fixture(scope="module")
def base(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root file system of the images ``small`` and, with Python, ``python``."""
    place = tmp_path_factory.mktemp("roots")
    small = make_root(place / "small")
    (small / "app/given.txt").write_text("from the image")
    podman.add("small:1", small, changes=["ENV A=image", "WORKDIR /app"])
    yield small
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def testbed(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with Python, pytest and a broken repository."""
    place = tmp_path_factory.mktemp("testbed")
    root = make_root(place / "root", python=True)
    (root / "testbed/.git").mkdir(parents=True)
    (root / "testbed/.git/repair").write_text("return a + b")
    (root / "testbed/sums.py").write_text("def add(a, b):\n    return a - b\n")
    for name in ("_pytest", "pluggy", "iniconfig", "packaging", "pygments", "pytest"):
        found = Path(importlib.import_module(name).__file__ or "").parent
        shutil.copytree(found, root / "usr/lib/python3/dist-packages" / name)
    shutil.copy2(found.parent / "py.py", root / "usr/lib/python3/dist-packages")
    podman.add("testbed:1", root)
    yield "localhost/testbed:1"
    shutil.rmtree(place)


@pytest.fixture
def engine(podman: Podman, base: Path, monkeypatch: pytest.MonkeyPatch) -> Podman:
    assert base
    monkeypatch.setenv("ASSAY_CONTAINERS", str(podman.program))
    return podman


def copied(base: Path, tmp_path: Path) -> Path:
    """A root file system that may be changed."""
    return Path(shutil.copytree(base, tmp_path / "root", symlinks=True))


def archive(file: Path, *entries: Entry) -> Path:
    """A tar archive of (name, kind, mode, content or aim)."""
    with tarfile.open(file, "w") as tar:
        for name, kind, mode, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, mode
            member.uid, member.gid = 4242, 4242
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member.linkname = content
            body = content.encode() if kind == tarfile.REGTYPE else b""
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
    return file


def write_case(place: Path, **said: object) -> Path:
    """A case with one reference, in an image."""
    work = {"good/files/answer.txt": "right\n", "noop/answer.txt": "nothing\n"}
    write_files(place / "recordings", work)
    document: dict[str, object] = {
        "id": "boxed",
        "task": {"prompt": "Write right into answer.txt."},
        "environment": {"container": "localhost/small:1"},
        "matrix": {"harnesses": ["replay"], "models": ["good", "noop"]},
        "graders": [{"type": "command", "cmd": RIGHT}],
        **said,
    }
    said_so = {name: block for name, block in document.items() if block is not None}
    (place / "case.yaml").write_text(json.dumps(said_so))
    return place


# --- what is unpacked ----------------------------------------------------------------------------


def test_an_image_is_unpacked_without_devices_and_special_modes(tmp_path: Path) -> None:
    (root := tmp_path / "root").mkdir()
    file = archive(
        tmp_path / "a.tar",
        ("usr/", tarfile.DIRTYPE, 0o000, ""),
        ("usr/tool", tarfile.REGTYPE, 0o6755, "#!/bin/sh\n"),
        ("usr/secret", tarfile.REGTYPE, 0o000, "x"),
        ("usr/again", tarfile.LNKTYPE, 0o755, "usr/tool"),
        ("usr/absolute", tarfile.SYMTYPE, 0o777, "/etc/shadow"),
        ("dev/", tarfile.DIRTYPE, 0o755, ""),
        ("dev/sda", tarfile.BLKTYPE, 0o666, ""),
        ("dev/null", tarfile.CHRTYPE, 0o666, ""),
        ("usr/pipe", tarfile.FIFOTYPE, 0o666, ""),
    )
    unpack_archive(file, root)
    found = sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))
    assert found == ["dev", "usr", "usr/absolute", "usr/again", "usr/secret", "usr/tool"]
    assert (root / "usr/tool").stat().st_mode & 0o7777 == 0o755
    assert (root / "usr/secret").stat().st_mode & 0o400
    assert (root / "usr/tool").stat().st_uid == root.stat().st_uid
    assert (root / "usr/absolute").readlink() == Path("/etc/shadow")


@pytest.mark.parametrize(
    "entries",
    [
        [("../escaped", tarfile.REGTYPE, 0o644, "x")],
        [("a/../../escaped", tarfile.REGTYPE, 0o644, "x")],
        [("out", tarfile.SYMTYPE, 0o777, ".."), ("out/escaped", tarfile.REGTYPE, 0o644, "x")],
        [("out", tarfile.SYMTYPE, 0o777, "{up}"), ("out/escaped", tarfile.REGTYPE, 0o644, "x")],
        [("in", tarfile.LNKTYPE, 0o644, "{up}/secret"), ("in", tarfile.REGTYPE, 0o644, "x")],
        [("/../../escaped", tarfile.REGTYPE, 0o644, "x")],
    ],
    ids=["up", "down-and-up", "relative-link", "absolute-link", "hard-link", "rooted"],
)
def test_an_image_cannot_be_unpacked_over_the_host(tmp_path: Path, entries: list[Entry]) -> None:
    (root := tmp_path / "root").mkdir()
    (tmp_path / "secret").write_text("of the host")
    aimed = [(n, kind, mode, text.format(up=tmp_path)) for n, kind, mode, text in entries]
    with pytest.raises(ProvisionError, match="cannot be unpacked"):
        unpack_archive(archive(tmp_path / "a.tar", *aimed), root)
    assert not (tmp_path / "escaped").exists()
    assert (tmp_path / "secret").read_text() == "of the host"


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 1 << 20), ("MOST_FILES", 2)])
def test_an_image_that_is_huge_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    (root := tmp_path / "root").mkdir()
    monkeypatch.setattr(images, limit, value)
    files = [(f"f{number}", tarfile.REGTYPE, 0o644, "x" * 600_000) for number in range(3)]
    with pytest.raises(ProvisionError, match="it has more than"):
        unpack_archive(archive(tmp_path / "a.tar", *files), root)


# --- what it says of itself ----------------------------------------------------------------------


def test_an_images_settings_hold_for_commands(engine: Podman, base: Path, tmp_path: Path) -> None:
    digits = engine.add("app:1", base, changes=["USER app", "ENV A=b", "ENV PATH=/bin"])
    image = prepare(ContainerSpec(image="localhost/app:1", workdir="/app"), str(tmp_path))
    assert image.digest == f"sha256:{digits}"
    assert (image.user, image.home) == ((1234, 1235), "/home/app")
    (tmp_path / "w").mkdir()
    done = run_command_sync(
        ["/bin/sh", "-c", "id -u; id -g; echo $A $PATH $HOME"],
        workspace=Workspace(path=str(tmp_path / "w"), image=image),
    )
    assert done.stdout == "1234\n1235\nb /bin /home/app\n"


_EVIL = "evil:x:0 --bind / /:0::/:/bin/sh\n"


def test_an_image_without_a_shell_or_with_a_made_up_user_is_refused(
    engine: Podman, base: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty/app").mkdir(parents=True)
    engine.add("empty:1", tmp_path / "empty")
    with pytest.raises(ProvisionError, match="no /bin/sh"):
        prepare(ContainerSpec(image="localhost/empty:1"), str(tmp_path / "shell"))
    root = copied(base, tmp_path)
    (root / "etc/passwd").write_text(f"evil:x:0\n{_EVIL}")
    engine.add("evil:1", root, changes=["USER evil"])
    with pytest.raises(ProvisionError, match="its user"):
        prepare(ContainerSpec(image="localhost/evil:1"), str(tmp_path / "cache"))
    assert not list((tmp_path / "cache/images").glob("*/root")), "whole or not there"


@each(
    ("user", "passwd"),
    [
        ("nobody-here", PASSWD),
        ("evil", _EVIL),
        ("evil", "evil:x:4294967295:0::/:/bin/sh\n"),
        ("evil", "evil:x:-1:0::/:/bin/sh\n"),
        ("evil", "evil:x:²:0::/:/bin/sh\n"),
        ("evil", f"evil:x:{'9' * 5_000}:0::/:/bin/sh\n"),
        ("daemon", Path("/etc/passwd")),  # those of the host, through a link of the image's
    ],
)
def test_a_user_is_one_of_those_in_the_image_with_an_id_that_there_can_be(
    tmp_path: Path, user: str, passwd: str | Path
) -> None:
    (tmp_path / "etc").mkdir(exist_ok=True)
    file = tmp_path / "etc/passwd"
    file.unlink(missing_ok=True)
    if isinstance(passwd, Path):
        assert f"{user}:" in passwd.read_text()
        file.symlink_to(passwd)
    else:
        file.write_text(passwd)
    with pytest.raises(ProvisionError, match=f"its user '{user}' (is not in|has an impossible id)"):
        images._user(user, tmp_path)


def test_a_user_with_a_line_feed_adds_no_line_to_a_build(
    engine: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = images.find_engine()
    told = json.loads(found.ask("image", "inspect", "localhost/small:1"))
    told[0]["Config"]["User"] = "app\nRUN touch /usr/evil"
    ask = images.ContainerEngine.ask

    def forged(self: images.ContainerEngine, *words: str, seconds: float = 60) -> str:
        whole = words[:2] == ("image", "inspect") and "--format" not in words
        return json.dumps(told) if whole else ask(self, *words, seconds=seconds)

    monkeypatch.setattr(images.ContainerEngine, "ask", forged)
    spec = ContainerSpec(image="localhost/small:1", setup=("true",))
    with pytest.raises(ProvisionError, match="is no name"):
        prepare(spec, str(tmp_path))


@pytest.mark.slow
def test_a_set_up_is_run_once_by_the_engine(engine: Podman, base: Path, tmp_path: Path) -> None:
    engine.add("user:1", base, changes=["USER app"])
    spec = ContainerSpec(image="localhost/user:1", setup=("id -u > /usr/made", 'echo "a \'b"'))
    first = prepare(spec, str(tmp_path))
    assert Path(first.root, "usr/made").read_text() == "0\n"
    assert first.user == (1234, 1235), "commands run as the image says"
    assert prepare(spec, str(tmp_path)).digest == first.digest


def test_images_that_were_unpacked_are_listed_and_deleted(engine: Podman, tmp_path: Path) -> None:
    engine("tag", "localhost/small:1", "localhost/listed:1")
    write_case(tmp_path / "case", environment={"container": "localhost/listed:1"})
    run = assay("run", "case", "--json", cwd=tmp_path, env=engine.env())
    (image,) = json.loads(assay("doctor", "images", "--json", cwd=tmp_path).stdout)["images"]
    assert cells(run)[0]["notes"] == {"image": image["id"]}
    assert image["name"] == "localhost/listed:1"
    assert image["bytes"] > 1 << 20
    assert "localhost/listed:1" in assay("doctor", "images", cwd=tmp_path).stdout
    delete = ("doctor", "images", "--yes")

    assert "deleted 0 images" in assay(*delete, "--unused", "1d", cwd=tmp_path).stdout
    named = ("--delete", image["id"][7:15])
    for words in (
        [*named, "--unused", "1d"],
        ["--delete", "localhost/small:1"],
        ["--delete=sha256:"],
    ):
        assert assay(*delete, *words, cwd=tmp_path).returncode == 2
    with at_work(str(tmp_path / ".assay")):
        refused = assay(*delete, *named, cwd=tmp_path)
    assert "a run is at work here" in refused.stderr
    done = assay(*delete, *named, cwd=tmp_path)
    assert f"deleted 1 image; freed {image['bytes']:,} bytes" in done.stdout
    left = [path.name for path in (tmp_path / ".assay/cache/images").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []

    again = assay("run", "case", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(run) == rewards(again)


# --- who has no engine, or no image --------------------------------------------------------------


def test_a_missing_engine_is_named_before_any_agent_starts(tmp_path: Path) -> None:
    write_case(tmp_path / "case")
    env = {"ASSAY_CONTAINERS": "/nowhere/podman"}
    for command in ("run", "selftest"):
        done = assay(command, "case", cwd=tmp_path, env={**env, "COLUMNS": "1000"})
        assert "ASSAY_CONTAINERS names '/nowhere/podman'" in done.stdout + done.stderr
        assert "apt-get install podman" in done.stdout + done.stderr
        assert done.returncode != 0
    done = assay("validate", "case", cwd=tmp_path, env=env)
    assert "ASSAY_CONTAINERS names '/nowhere/podman'" in done.stderr
    assert done.returncode == 0, "the case is well-formed all the same"


def test_a_missing_image_and_an_environment_of_the_host_are_named_when_a_case_is_validated(
    engine: Podman, tmp_path: Path
) -> None:
    write_case(tmp_path / "missing", environment={"container": "localhost/nowhere:1"})
    done = assay("validate", "missing", cwd=tmp_path, env=engine.env())
    assert "'localhost/nowhere:1' is not here" in done.stderr
    assert "podman pull localhost/nowhere:1" in done.stderr
    host = {"kind": "pip-venv", "requirements": ["pytest"]}
    container = {"image": "localhost/small:1"}
    write_case(tmp_path / "host", container=container, environment=host)
    done = assay("validate", "host", cwd=tmp_path)
    assert "an environment with kind pip-venv beside it" in done.stderr
    assert "container: {setup: [...]}" in done.stderr


@pytest.mark.parametrize(
    ("grader", "said"),
    [
        # This machine has git; the image has not.
        (
            {"type": "command", "cmd": "git status"},
            "needs git, which its environment does not have (install it in the image",
        ),
        # Else an honest submission would get a 0: its command "wrote no report".
        (
            {"type": "tests", "cmd": "sh go.sh", "junit_xml": "r.xml", "expected_ids": ["x"]},
            "GNU find, head and tar",
        ),
    ],
)
def test_a_program_that_the_image_lacks_is_named_before_any_agent_starts(
    engine: Podman, tmp_path: Path, grader: dict[str, object], said: str
) -> None:
    lacking = make_root(tmp_path / "root")
    for name in ("find", "tar"):
        (lacking / "usr/bin" / name).unlink()
    engine.add("lacking:1", lacking)
    environment = {"container": "localhost/lacking:1"}
    write_case(tmp_path / "case", environment=environment, graders=[grader])
    done = assay("run", "case", "--json", cwd=tmp_path, env=engine.env())
    assert [cell["status"] for cell in cells(done)] == ["error", "error"]
    assert said in str(cells(done)[0]["error"])


# --- what is graded ------------------------------------------------------------------------------


RIGHT = 'test "$A" = image && test "$(cat answer.txt)" = right'


def played(engine: Podman, root: Path, **said: object) -> subprocess.CompletedProcess[str]:
    """A case was run in its image: right work gets its reward, and none does not."""
    write_case(root / "case", **said)
    done = assay("run", "case", "--json", cwd=root, env=engine.env())
    assert rewards(done) == {"good": 1.0, "noop": 0.0}
    return done


def rewards(done: subprocess.CompletedProcess[str]) -> dict[object, object]:
    assert done.returncode in (0, 1), [done.stderr, *(c["error"] for c in cells(done))]
    return {cell["model"]: cell["reward"] for cell in cells(done)}


def test_commands_and_variables_of_the_environment_go_with_an_image(
    engine: Podman, tmp_path: Path
) -> None:
    environment = {
        "container": "localhost/small:1",
        "env": {"A": "case"},
        "commands": ['echo "$A" > made; echo lost > /usr/made'],
    }
    check = "test $(cat made) = case && test ! -e /usr/made && test $(cat answer.txt) = right"
    graders = [{"type": "command", "cmd": check}]
    played(engine, tmp_path, environment=environment, graders=graders)


def test_an_image_that_changes_under_its_tag_does_not_change_what_was_run(
    engine: Podman, base: Path, tmp_path: Path
) -> None:
    """Between an agent's end and a later grading, somebody moves the tag to an easier image."""
    engine("tag", "localhost/small:1", "localhost/moving:1")
    check = {"type": "command", "cmd": f"test -e /usr/easy || {{ {RIGHT}; }}"}
    environment = {"container": "localhost/moving:1"}
    first = played(engine, tmp_path, environment=environment, graders=[check])
    root = copied(base, tmp_path)
    (root / "usr/easy").touch()
    engine.add("moving:1", root, changes=["ENV A=image"])
    again = assay("regrade", "latest", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(first) == rewards(again)
    anew = assay("run", "case", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(anew) == {"good": 1.0, "noop": 1.0}, "a new run takes what the tag now means"


def test_a_run_that_is_resumed_goes_on_in_the_image_that_it_began_in(
    engine: Podman, tmp_path: Path
) -> None:
    case = load_case(str(write_case(tmp_path / "case")))
    began = pinned(case, str(tmp_path / "cache"))
    assert began.image is not None
    moved = replace(case, environment=None, container=ContainerSpec(image="localhost/moved:1"))
    again = pinned(moved, str(tmp_path / "cache"), began.image.image)
    assert again.image == began.image, "no engine was asked for the name"


def test_a_cell_that_knows_no_image_does_not_lose_its_runs(
    engine: Podman, base: Path, tmp_path: Path
) -> None:
    """Of a cell at which assay was killed, only what passed its gateway is kept."""
    engine("tag", "localhost/small:1", "localhost/kept:1")
    first = played(engine, tmp_path, environment={"container": "localhost/kept:1"})
    with Store.open(str(tmp_path / ".assay")) as store:
        run = store.run("latest")
        killed = Run.failed("interrupted", task_id="boxed")
        killed.harness, killed.model, killed.trial = "replay", "noop", 1
        record = record_of(killed, run_id=run.id, case="boxed", expect=Expect())
        store.add_cell(record, killed.to_dict())
    root = copied(base, tmp_path)
    (root / "usr/easy").touch()
    engine.add("kept:1", root, changes=["ENV A=image"])
    done = assay("run", "--resume", "latest", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(done) == {"good": 1.0, "noop": 0.0}
    assert [cell["notes"] for cell in cells(done)] == [cell["notes"] for cell in cells(first)]


def test_an_agent_starts_from_what_the_image_has_and_changes_none_of_it_for_its_grading(
    engine: Podman, tmp_path: Path
) -> None:
    case = write_case(
        tmp_path / "case",
        environment=None,
        container={"image": "localhost/small:1", "workdir": "/app"},
        graders=[
            {"type": "command", "cmd": 'cd /app && test "$(cat given.txt)" = changed'},
            {"type": "command", "cmd": RIGHT},
        ],
    )
    (case / "recordings/good/files/given.txt").write_text("changed")
    script = "printf '#!/bin/sh\\necho right' > /usr/bin/cat; cat x; touch /usr/mine; export A=x\n"
    (case / "recordings/noop/run.sh").write_text(script)
    done = assay("run", "case", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(done) == {"good": 1.0, "noop": 0.0}


@pytest.mark.slow
def test_tests_are_judged_by_the_images_own_python_alone(
    engine: Podman, testbed: str, tmp_path: Path
) -> None:
    """The agent replaces the image's Python and its unittest; the judge has those of the image."""
    tests = {"type": "tests", "cmd": "python3 -m unittest test_sums", "inject": ["test_sums.py"]}
    files = {
        "source/sums.py": "def add(a, b):\n    return a - b\n",
        "recordings/good/files/sums.py": "def add(a, b):\n    return a + b\n",
        "recordings/noop/run.sh": "set -e; for file in /usr/lib/python3*/unittest/*.py;"
        " do echo > $file; done\nprintf '#!/bin/sh\\nexit 0\\n' > /usr/bin/python3\n",
        "test_sums.py": "import os, sys, unittest, sums\n"
        "class Sums(unittest.TestCase):\n"
        "    def test_add(self):\n"
        "        self.assertEqual(sums.add(1, 2), 3)\n"
        "        self.assertFalse(os.path.exists('/usr/bin/git'))\n",
    }
    write_files(tmp_path / "case", files)
    write_case(
        tmp_path / "case",
        environment={"container": testbed},
        source={"path": "source"},
        graders=[{**tests, "isolation": mode, "name": mode} for mode in ("process", "shared")],
        selftest={"reference": "good"},
    )
    done = assay("run", "case", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(done) == {"good": 1.0, "noop": 0.0}
    assert [cell["assurance"] for cell in cells(done)] == ["shared", "shared"]
    nodes = {node["name"]: node["assurance"] for node in cells(done)[0]["subscores"]}
    assert nodes == {"process": "separate", "shared": "shared"}


# --- agents that ask a model ---------------------------------------------------------------------

_ASKS = r"""
test "$A" = image && test ! -e /usr/bin/git || exit 1
base=${OPENAI_BASE_URL#http://}
body='{"model": "any", "messages": [{"role": "user", "content": "Which word?"}]}'
place=${base%%/*}
exec 3<> "/dev/tcp/${place%:*}/${place#*:}"
head='POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n'
head+='Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\n\r\n'
printf "$head%s" "$OPENAI_API_KEY" "${#body}" "$body" >&3
said=$(cat <&3)
[[ $said =~ the-word-is-([a-z]+) ]] && echo "${BASH_REMATCH[1]}" > answer.txt
"""


def test_agents_solve_a_case_in_an_image_through_their_gateway(
    engine: Podman, tmp_path: Path
) -> None:
    """The model agent's tools run in the image, and so does a command that asks for itself."""
    seen = 'test "$A" = image && test ! -e /usr/bin/git && pwd -P > seen'
    moves = [
        calls("bash", command=f"cd /app && {seen}"),
        calls("write", path="/app/answer.txt", content="wrong"),
        calls("edit", path="answer.txt", old="wrong", new="right"),
        calls("read", path="seen"),
        calls("search", pattern="right", path="/app"),
    ]

    def answer(asked: Conversation) -> object:
        step = sum(turn.speaker == "assistant" for turn in asked.turns)
        if not asked.tools or step == len(moves):
            return "the-word-is-right"
        return moves[step]

    with FakeModel(answer) as fake:
        write_case(
            tmp_path / "evals/case",
            environment=None,
            container={"image": "localhost/small:1", "workdir": "/app"},
            matrix={"harnesses": ["agent", "asks"], "models": [fake.model]},
        )
        (tmp_path / "evals/asks.sh").write_text(_ASKS)
        asks = {"argv": ["bash", "/suite/asks.sh"], "mounts": ["asks.sh"], "gateway": True}
        (tmp_path / "evals/harnesses.yaml").write_text(json.dumps({"asks": asks}))
        done = assay("run", "evals", "--json", cwd=tmp_path, env=engine.env())
    found = {cell["harness"]: cell for cell in cells(done)}
    assert done.returncode == 0, [
        done.stderr,
        *((c["error"], c["content"]) for c in found.values()),
    ]
    assert [found[name]["passed"] for name in ("agent", "asks")] == [True, True]
    digest = f"sha256:{images.find_engine().find('localhost/small:1')}"
    assert [cell["notes"] for cell in found.values()] == [{"image": digest}] * 2
    with Store.open(str(tmp_path / ".assay")) as store:
        run = store.run("latest")
        runs = [Run.from_dict(store.detail(run.id, cell.key)) for cell in store.cells(run.id)]
    told = [s.result for one in runs for s in one.trace.work if isinstance(s, ToolStep)]
    assert len(told) == 5
    assert "/workspace" in str(told[3])
    assert "answer.txt:1:right" in str(told[4])


def test_an_agent_that_an_image_brings_is_the_one_that_works_in_it(
    engine: Podman, base: Path, tmp_path: Path
) -> None:
    root = copied(base, tmp_path)
    (root / "usr/bin/mini").write_text(f'#!/bin/bash\n[ "$1" = --help ] && exit 0\n{_ASKS}')
    (root / "usr/bin/mini").chmod(0o755)
    engine.add("agent:1", root, changes=["ENV A=image"])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mini").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/mini").chmod(0o755)
    env = {**engine.env(), "ASSAY_HARNESS_PATH": str(tmp_path / "bin")}
    with FakeModel(lambda _: "the-word-is-right") as fake:
        matrix = {"harnesses": ["mini-swe-agent"], "models": [fake.model]}
        write_case(tmp_path / "case", environment={"container": "localhost/agent:1"}, matrix=matrix)
        done = assay("run", "case", "--json", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("is_here", [True, False])
def test_an_agent_that_cannot_start_in_an_image_is_named_before_anything_runs(
    engine: Podman, tmp_path: Path, *, is_here: bool
) -> None:
    """What is installed here wants an interpreter that the image has not."""
    (tmp_path / "bin").mkdir()
    if is_here:
        (tmp_path / "bin/opencode").write_text("#!/usr/bin/env node\n")
        (tmp_path / "bin/opencode").chmod(0o755)
    env = {**engine.env(), "ASSAY_HARNESS_PATH": str(tmp_path / "bin"), "COLUMNS": "1000"}
    env["PATH"] = str(tmp_path / "bin") + ":/usr/bin:/bin"
    write_case(tmp_path / "case", matrix={"harnesses": ["opencode", "replay"], "models": ["good"]})
    done = assay("run", "case", "--json", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "case 'boxed': harness 'opencode' does not start in its image" in done.stderr
    assert "opencode: there is none" in done.stderr
    assert ("env: 'node': No such file" in done.stderr) == is_here
    assert "in its Dockerfile: RUN npm install -g opencode-ai" in done.stderr
    assert done.stdout == "", "no cell of any harness was begun"


def test_the_fake_model_plays_the_reference_in_its_image(engine: Podman, tmp_path: Path) -> None:
    write_case(tmp_path / "case", selftest={"reference": "good"})
    words = ("run", "case", "--harness", "agent", "--model", "fake", "--json")
    done = assay(*words, cwd=tmp_path, env=engine.env())
    assert done.returncode == 0, done.stderr
    assert [(cell["harness"], cell["passed"]) for cell in cells(done)] == [("agent", True)]


# --- tasks of others -----------------------------------------------------------------------------

_VERIFY = """\
#!/bin/bash
[[ $(cat /app/answer.txt) == right && -e /tests/beside && $A == image ]]
if [ $? -eq 0 ]; then reward=1; else reward=0; fi
echo $reward > /logs/verifier/reward.txt
"""


def test_a_task_of_harbors_becomes_a_case_in_its_image(engine: Podman, tmp_path: Path) -> None:
    task = tmp_path / "hello-task"
    files = {
        "task.toml": "[agent]\ntimeout_sec = 60.0\n[verifier]\ntimeout_sec = 30.0\n",
        "instruction.md": "Write `right` into /app/answer.txt.\n",
        "environment/Dockerfile": "FROM localhost/small:1\nCOPY seed.txt /app/\nWORKDIR /app\n",
        "environment/seed.txt": "seed",
        "tests/test.sh": _VERIFY,
        "tests/beside": "",
        "solution/solve.sh": "#!/bin/bash\n[[ -e seed.txt ]] && echo right > /app/answer.txt\n",
    }
    write_files(task, files)
    done = assay("import", "harbor", "hello-task", cwd=tmp_path, env=engine.env())
    assert done.returncode == 0, done.stderr
    assert "evals/hello-task/case.yaml" in done.stdout
    run = assay("run", "evals/hello-task", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(run) == {"reference": 1.0, "noop": 0.0}
    hidden = tmp_path / "evals/hello-task/hidden"
    assert sorted(path.name for path in hidden.iterdir()) == ["beside", "test.sh"]


def test_a_task_of_harbors_without_an_engine_names_how_to_build_it(tmp_path: Path) -> None:
    files = {
        "task.yaml": "instruction: |\n  Do it.\nmax_test_timeout_sec: 20\n",
        "Dockerfile": "FROM python:3.13\nWORKDIR /work\n",
        "run-tests.sh": "uvx -p 3.13 -w pytest==8.4.1 -w --index pytest $TEST_DIR/test_it.py",
        "tests/test_it.py": "def test_it():\n    assert open('/work/x').read()\n",
    }
    write_files(tmp_path / "bench", files)
    env = {"ASSAY_CONTAINERS": "/nowhere/podman"}
    done = assay("import", "harbor", "bench", cwd=tmp_path, env=env)
    assert done.returncode == 1
    assert "podman build --tag localhost/assay-bench:" in done.stderr
    text = (tmp_path / "evals/bench/case.yaml").read_text()
    assert 'workdir: "/work"' in text
    assert "pip install --quiet pytest==8.4.1" in text
    assert "cmd: python3 -m pytest tests/test_it.py" in text
    assert "--index" not in text, "an option of the task's is none of pip's"
    assert assay("validate", "evals/bench", cwd=tmp_path, env=env).returncode == 0


@pytest.mark.slow
def test_a_row_of_swe_bench_with_an_image_needs_no_source(
    engine: Podman, testbed: str, tmp_path: Path
) -> None:
    row = {
        "instance_id": "example__sums-1",
        "repo": "example/sums",
        "base_commit": "0123456789abcdef0123456789abcdef01234567",
        "problem_statement": "add() subtracts.",
        "image_name": testbed,
        "patch": "--- a/sums.py\n+++ b/sums.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n"
        "-    return a - b\n+    return a + b\n",
        "test_patch": "--- /dev/null\n+++ b/test_sums.py\n@@ -0,0 +1,6 @@\n"
        "+from sums import add\n+\n+def test_add():\n+    import os\n"
        "+    assert not os.path.exists('/testbed/.git')\n"
        "+    assert add(2, 3) == 5\n",
        "FAIL_TO_PASS": '["test_sums.py::test_add"]',
        "PASS_TO_PASS": "[]",
    }
    (tmp_path / "rows.json").write_text(json.dumps(row))
    done = assay("import", "swebench", "rows.json", cwd=tmp_path, env=engine.env())
    assert done.returncode == 0, done.stderr
    run = assay("run", "evals/example__sums-1", "--json", cwd=tmp_path, env=engine.env())
    assert rewards(run) == {"reference": 1.0, "noop": 0.0}
    where = tmp_path / "evals/example__sums-1"
    assert "source:" not in (where / "case.yaml").read_text()


def test_of_a_folder_of_tasks_every_one_is_imported_that_can_be(tmp_path: Path) -> None:
    files = {
        "task.toml": '[environment]\ndocker_image = "localhost/small:1"\n',
        "instruction.md": "Do it.\n",
        "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
        "solution/solve.sh": "true\n",
    }
    for name in ("b", "a", "torn", "untold"):
        write_files(tmp_path / "tasks" / name, files)
    (tmp_path / "tasks/torn/task.toml").write_text("[agent\n")
    (tmp_path / "tasks/untold/instruction.md").unlink()
    (tmp_path / "tasks/README.md").touch()
    done = assay("import", "harbor", "tasks", "--out", "cases", cwd=tmp_path)
    said = " ".join(done.stdout.split())
    assert (done.returncode, "tasks: 2 cases in cases" in said) == (1, True), said
    assert "Not imported: 2 of 4 tasks tasks/torn/task.toml: Expected ']'" in said
    assert "tasks/untold/instruction.md: cannot be read" in said
    assert "note: 2 cases, such as a: no WORKDIR is known" in done.stderr
    assert assay("validate", "cases", cwd=tmp_path).returncode == 0
    (tmp_path / "tasks/b/solution/solve.sh").write_text("exit 1\n")
    again = " ".join(
        assay("import", "harbor", "tasks", "--out", "cases", cwd=tmp_path).stdout.split()
    )
    assert "1 case in cases, 1 of them there already" in again
    assert "tasks/b: cases/b is there, and not made of this" in again


def test_what_a_task_folder_lacks_is_named_with_where_it_is_looked_for(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    said = [assay("import", "harbor", "broken", cwd=tmp_path).stderr]
    for name, text in (
        ("task.toml", 'version = "1.0"\n'),
        ("instruction.md", "Say hello.\n"),
        ("task.toml", '[environment]\ndocker_image = "localhost/small:1"\n'),
    ):
        (folder / name).write_text(text)
        done = assay("import", "harbor", "broken", cwd=tmp_path)
        assert done.returncode == 2
        said.append(done.stderr)
    assert "neither task.toml nor task.yaml" in said[0]
    assert "broken/instruction.md: cannot be read: No such file" in said[1]
    assert "looked for at environment/Dockerfile; or docker_image" in said[2]
    assert "looked for at tests/test.sh" in said[3]
