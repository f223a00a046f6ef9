"""``assay doctor images``: the container images that were unpacked here, and deleting them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace

from assay.cli.options import require_yes, state_home
from assay.errors import InputError
from assay.eval.workspaces.unpacked import Unpacked, delete_images, find_image, unpacked_images
from assay.reports.figures import count
from assay.reports.page import page_on
from assay.reports.plain import one_line
from assay.scoring.json_safe import Json


def run(given: Namespace) -> int:
    """List images, or delete those that are named or unused."""
    return _delete(given) if given.delete or given.unused else _list(given)


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
    if given.delete and given.unused:
        raise InputError("--delete names images, and --unused takes all", hint="give one of them")
    home = state_home()
    known = unpacked_images(home)
    if given.delete:
        doomed = list(
            {one.digest: one for name in given.delete for one in [find_image(known, name)]}.values()
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
