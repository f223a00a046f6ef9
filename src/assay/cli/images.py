"""``assay doctor images``: the container images that were unpacked here, and deleting them."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

from assay.cli.options import (
    actions,
    add_json,
    add_yes,
    explain,
    moment,
    require_yes,
    state_home,
)
from assay.errors import InputError
from assay.eval.unpacked import Unpacked, delete_images, find_image, unpacked_images
from assay.reports.figures import count
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json

_MORE = """\
Without an action it lists them. IMAGE is a name, or an id or its beginning.

exit status: 0 done, 2 bad input, 3 a run is at work"""
_EXAMPLES = """\
  assay doctor images
  assay doctor images delete docker.io/library/python:3.12
  assay doctor images delete --unused 30d --yes"""
_DELETE_MORE = """\
Only what assay unpacked; podman or docker keep what they have, and the next run that needs an
image unpacks it again. Refused while a process is at work on a run."""


def add(parser: ArgumentParser) -> None:
    """Add the commands below ``assay doctor images``."""
    explain(parser, _MORE, _EXAMPLES)
    action = actions(parser, add_json)
    action("list", "list images, the last used first", "", _EXAMPLES)
    delete = action("delete", "delete the files of images", _DELETE_MORE, _EXAMPLES)
    delete.add_argument("images", nargs="*", metavar="IMAGE")
    delete.add_argument(
        "--unused", type=moment, metavar="WHEN", help="all that were not needed since: 30d, 4w"
    )
    add_yes(delete)


def run(given: Namespace) -> int:
    """Run one of the actions."""
    return {"list": _list, "delete": _delete}[given.action](given)


def _list(given: Namespace) -> int:
    images = unpacked_images(state_home())
    if given.json:
        print(json.dumps({"images": [_told(image) for image in images]}))
        return 0
    page = page_on(sys.stdout)
    if not images:
        page.line("no image was unpacked here")
        return 0
    page.table(("image", "id", "MiB", "last used"), [_row(image) for image in images], left=2)
    return 0


def _row(image: Unpacked) -> tuple[str, ...]:
    name = one_line(image.name, 48) or "-"
    return name, image.digest[7:19], f"{image.bytes / (1 << 20):,.1f}", f"{image.used:%Y-%m-%d}"


def _told(image: Unpacked) -> dict[str, Json]:
    used = image.used.isoformat(timespec="seconds")
    return {"id": image.digest, "name": image.name, "bytes": image.bytes, "last_used": used}


def _delete(given: Namespace) -> int:
    if bool(given.images) == (given.unused is not None):
        raise InputError("name images, or say --unused WHEN", hint="assay doctor images lists them")
    home = state_home()
    known = unpacked_images(home)
    if given.images:
        doomed = list(
            {one.digest: one for name in given.images for one in [find_image(known, name)]}.values()
        )
    else:
        doomed = [image for image in known if image.used < given.unused]
    if doomed:
        named = ", ".join(one_line(image.name, 48) or image.digest[7:19] for image in doomed)
        require_yes(f"Delete the files of {named}?", yes=given.yes)
    freed = delete_images(home, doomed)
    if given.json:
        gone: list[Json] = [image.digest for image in doomed]
        print(json.dumps({"deleted": gone, "freed": freed}))
    else:
        print(f"deleted {count(len(doomed), 'image')}; freed {freed:,} bytes")
    return 0
