"""Commands in the file system of an image: what they see of it, and what a hostile image gets.

An image is data from somebody: its links, modes, users and variables reach nothing of the host.
No engine is needed here; `test_eval_images.py` has a real one.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.errors import InputError, SandboxUnavailableError
from assay.sandbox import CommandResult, Limits, Mount, open_command, run_command_sync
from assay.types.submission import UnpackedImage, Workspace
from tests.containers import make_root
from tests.each import each
from tests.sandbox.door_servers import PORT, Keeper
from tests.sandbox.ordinary_user import NOBODY, Drive

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A root file system that no test changes."""
    place = Path(tempfile.mkdtemp(prefix="assay-image-"))
    place.chmod(0o755)
    yield make_root(place / "root")
    shutil.rmtree(place)


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return Path(shutil.copytree(made, tmp_path / "root", symlinks=True))


def place(root: Path, path: Path | None = None, **said: object) -> Workspace:
    (workspace := path or root.parent / "workspace").mkdir(exist_ok=True)
    image = replace(UnpackedImage(digest="sha256:0", root=str(root)), **said)
    return Workspace(path=str(workspace), image=image)


def shell(line: str, where: Workspace, **options: object) -> CommandResult:
    words = ["/bin/sh", "-c", line]
    options.setdefault("limits", Limits(wall_seconds=20))
    return run_command_sync(words, workspace=where, **options)  # pyright: ignore[reportArgumentType] - as given


def test_a_command_sees_the_image_and_nothing_of_the_host(made: Path) -> None:
    line = "ls /usr/bin/git /root/.ssh /home; cat /etc/passwd; id -u; echo $HOME $A $PATH; pwd"
    result = shell(line, place(made, env={"A": "1"}))
    assert "app:x:1234" in result.stdout
    assert "\n0\n/root 1 /usr/local/sbin:" in result.stdout
    assert result.stdout.endswith("/workspace\n")
    assert result.stderr.count("No such file") == 3


async def test_a_talk_with_a_command_in_an_image_behind_a_door(made: Path) -> None:
    line = "cd /app; read -r w; echo $w $A $(pwd -P) > said; cat said; "
    where = replace(place(made, workdir="/app", env={"A": "image"}), env={"B": "case"})
    line += f'cat < /dev/tcp/127.0.0.1/{PORT}; echo " $B $C"; ls /usr/bin/git'
    words = ["/bin/bash", "-c", line]
    with Keeper() as keeper:
        async with open_command(
            words, workspace=where, changes="keep", env={"C": "own"}, door=keeper.door
        ) as opened:
            opened.stdin.write(b"well\n")
            assert await opened.stdout.read() == b"well image /workspace\nhello case own\n"
            assert "No such file" in (await opened.wait(), opened.stderr)[1]
    assert Path(where.path, "said").read_text() == "well image /workspace\n"


def test_what_a_command_changes_in_the_image_dies_with_it(made: Path) -> None:
    where = place(made)
    line = "touch /usr/new && echo evil > /etc/passwd && rm /usr/bin/env && ls /usr/new && cat "
    assert shell(f"{line} /etc/passwd", where, changes="keep").stdout == "/usr/new\nevil\n"
    again = shell("ls /usr/new; cat /etc/passwd; ls /usr/bin/env", where)
    assert "evil" not in again.stdout
    assert "/usr/bin/env" in again.stdout
    assert not (made / "usr/new").exists()


def test_workdir_leads_to_the_workspace_which_is_the_hosts_where_changes_are_kept(
    root: Path, tmp_path: Path
) -> None:
    (root / "app/old").touch()
    where = place(root, tmp_path / "w", workdir="/app")
    line = "cd /app && ls && pwd -P; echo kept > /app/one; cat one"
    assert shell(line, where, changes="keep").stdout == "/workspace\nkept\n"
    assert (tmp_path / "w/one").read_text() == "kept\n"
    assert not (root / "app/one").exists()
    deep = shell("cd /srv/a/b && pwd -P", place(root, workdir="/srv/a/b"))
    assert deep.stdout == "/workspace\n"


def test_a_workdir_over_a_mount_is_refused(made: Path, tmp_path: Path) -> None:
    mounts = [Mount(source=str(tmp_path), target="/srv/tools")]
    for workdir in ("/srv", "/srv/tools", "/tmp", "/etc"):
        with pytest.raises(InputError, match="lies over"):
            shell("true", place(made, workdir=workdir), mounts=mounts)
    assert shell("pwd", place(made, workdir="/workspace/")).stdout == "/workspace\n"


def test_a_command_has_no_power_though_it_looks_like_root(made: Path) -> None:
    line = "while read name rest; do case $name in Cap*|NoNewPrivs*) echo $rest;; esac; done"
    result = shell(f"{line} < /proc/self/status", place(made))
    assert set(result.stdout.split()) == {"0000000000000000", "1"}
    for denied in ("echo x > /proc/sys/kernel/hostname", "echo 1 > /proc/self/oom_score_adj"):
        assert shell(denied, place(made)).exit_code != 0


def test_setuid_programs_of_an_image_give_nobody_anything(root: Path) -> None:
    (root / "usr/bin/id").chmod(0o4755)
    result = shell("id -u; id -r -u", place(root, user=(1234, 1235), home="/home/app"))
    assert result.stdout == "1234\n1234\n"


def test_device_nodes_of_an_image_cannot_be_opened(root: Path) -> None:
    try:
        os.mknod(root / "usr/kmsg", 0o666 | stat.S_IFCHR, os.makedev(1, 11))
        os.mknod(root / "usr/zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices cannot be made here")
    result = shell("dd if=/usr/zero bs=1 count=1; dd if=/usr/kmsg bs=1 count=1", place(root))
    assert result.exit_code != 0
    assert result.stderr.count("Permission denied") == 2


@pytest.mark.parametrize("name", ["opt", "workspace", "etc", "proc", "dev", "tmp", "app"])
def test_links_of_an_image_lead_no_mount_elsewhere(root: Path, tmp_path: Path, name: str) -> None:
    """bubblewrap makes missing mount points: along a link, it would make them on the host."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    (tmp_path / "tool").write_text("ours")
    if (root / name).exists():
        shutil.rmtree(root / name)
    (root / name).symlink_to(f"/oldroot{outside}")
    mounts = [Mount(source=str(tmp_path / "tool"), target="/opt/assay/tool")]
    where = place(root, workdir="/app")
    result = shell("cat /opt/assay/tool; cd /app; pwd -P; ls /proc/self/stat", where, mounts=mounts)
    assert result.stdout == "ours/workspace\n/proc/self/stat\n"
    assert list(outside.iterdir()) == []


def test_links_of_an_image_do_not_lead_out_of_it(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the host")
    (root / "usr/absolute").symlink_to(tmp_path / "secret")
    (root / "usr/relative").symlink_to("../" * 20 + str(tmp_path / "secret").lstrip("/"))
    result = shell("cat /usr/absolute /usr/relative", place(root))
    assert result.stdout == ""
    assert result.exit_code != 0


def test_variables_of_an_image_are_its_own_and_tell_nothing_to_ours(made: Path) -> None:
    env = {"ASSAY_CHANNEL": "/tmp/forged", "LD_PRELOAD": "/usr/lib/none.so", "A": "image"}
    result = shell("env", place(made, env=env), env={"A": "case"})
    assert "ASSAY_CHANNEL" not in result.stdout
    assert "A=case" in result.stdout.splitlines()
    assert result.exit_code == 0, "what a program inside says of its preload is its own matter"


@each("env", [{"A": "1\0--bind\0/\0/host"}, {"A=B": "1"}, {"": "1"}])
def test_a_variable_of_an_image_is_no_argument_of_ours(made: Path, env: dict[str, str]) -> None:
    with pytest.raises(InputError):
        shell("ls /host", place(made, env=env))


def test_what_is_written_over_an_image_is_limited(made: Path) -> None:
    limits = Limits(wall_seconds=20, workspace_bytes=1 << 20)
    result = shell("dd if=/dev/zero of=/usr/big bs=1M count=4", place(made), limits=limits)
    assert result.exit_code != 0
    assert "No space left" in result.stderr


def test_a_command_in_an_image_has_no_network_and_a_loopback_by_name(made: Path) -> None:
    line = "while read line; do echo $line; done"
    result = shell(f"{line} < /proc/net/dev; cat /etc/hosts", place(made))
    assert "eth" not in result.stdout
    assert "127.0.0.1 localhost" in result.stdout


def test_an_image_is_never_copied_where_overlays_are_refused(
    made: Path, planned: Callable[..., None]
) -> None:
    planned(overlay=False)
    with pytest.raises(SandboxUnavailableError, match="an image needs an overlay") as caught:
        shell("true", place(made))
    assert "5.19" in caught.value.hint


def test_an_ordinary_user_runs_images_that_are_his(root: Path, drive: Drive) -> None:
    home = Path(tempfile.mkdtemp(prefix="assay-image-"))
    try:
        mine = Path(shutil.copytree(root, home / "root", symlinks=True))
        (home / "workspace").mkdir()
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        where = place(mine, home / "workspace", workdir="/app")
        line = "touch /usr/x /app/y && id -u && ls /usr/x && cd /app && pwd -P"
        options: dict[str, object] = {"workspace": where, "changes": "keep"}
        result = drive(run_command_sync, ["/bin/sh", "-c", line], options)
        assert isinstance(result, CommandResult)
        assert result.stdout == "0\n/usr/x\n/workspace\n"
        assert (home / "workspace/y").exists()
        assert not (mine / "usr/x").exists()
    finally:
        shutil.rmtree(home)
