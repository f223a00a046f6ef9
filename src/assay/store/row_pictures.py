"""Pictures of a run's rows, kept as files by their digest: the same one once, whoever has it.

A row says ``kept:sha256:...`` where it had a data URL, and the files of a row are its snapshot, as
a workspace is that of other results. So whatever frees, exports and imports files knows of them.
A database that other machines write to keeps rows whole: their files would be on one machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from assay.errors import AssayError, StoreError
from assay.scoring.json_safe import Json
from assay.store.blobs import Blobs, is_digest

_KEPT = "kept:sha256:"
_DATA = "data:image/"


def put_aside(home: str, detail: Mapping[str, Json]) -> tuple[dict[str, Json], str]:
    """What is kept beside a row, its pictures put among the files; and the snapshot that has them.

    Whoever calls it is at work on the store (`assay.store.kept_files.at_work`).
    """
    entries: dict[str, Json] = {}
    with Blobs(Path(home, "blobs")) as blobs:

        def put(url: str) -> str:
            if url[: len(_DATA)].lower() != _DATA:
                return url
            from assay.types.picture import Picture

            try:
                picture = Picture.of_url(url)
            except AssayError:  # nobody was shown it
                return url
            digest = blobs.put(picture.data)
            size, mode = len(picture.data), 0o644
            entries[digest] = {"type": "file", "mode": mode, "size": size, "sha256": digest}
            return f"{_KEPT}{digest}"

        row = _each_url(detail.get("row"), put)
    if not entries:
        return dict(detail), ""
    manifest = json.dumps(entries, sort_keys=True, separators=(",", ":")).encode("ascii")
    with Blobs(Path(home, "snapshots")) as manifests:
        return {**detail, "row": row}, manifests.put(manifest)


def put_back(home: str, detail: dict[str, Json]) -> dict[str, Json]:
    """What was kept beside a row, with its pictures in it.

    Raises:
        StoreError: If one is missing or damaged.
    """
    if "row" not in detail:
        return detail

    def back(url: str) -> str:
        if not url.startswith(_KEPT) or not is_digest(digest := url.removeprefix(_KEPT)):
            return url
        from assay.types.picture import MOST_BYTES, Picture

        with Blobs(Path(home, "blobs")) as blobs:
            content = blobs.get(digest, most=MOST_BYTES)
        try:
            return Picture(content).url
        except AssayError as error:
            raise StoreError(f"artifact {digest} is no picture: {error}") from error

    return {**detail, "row": _each_url(detail["row"], back)}


def _each_url(value: Json, change: Callable[[str], str]) -> Json:
    """A row with every text that may be a picture's URL changed."""
    if isinstance(value, str):
        is_one = value.startswith(_KEPT) or value[: len(_DATA)].lower() == _DATA
        return change(value) if is_one else value
    if isinstance(value, list):
        return [_each_url(one, change) for one in value]
    if isinstance(value, dict):
        return {name: _each_url(one, change) for name, one in value.items()}
    return value
