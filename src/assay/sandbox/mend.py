"""What to do when this machine refuses a sandbox."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from assay.errors import SandboxError, SandboxUnavailableError

__all__ = ["CONTAINER", "apparmor", "namespaces", "refusal"]

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
    """Why user namespaces are refused here, as a mend."""
    import sys

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
    """The exception for a set-up that failed before the command started.

    Args:
        step: ``namespace``, ``tree ...``, ``stage`` or ``bubblewrap``.
        number: The kernel's errno, or 0.
        text: What was tried and what was answered.
    """
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
        return SandboxUnavailableError(what, hint="Linux 5.12 or newer is needed")
    return SandboxError(what)
