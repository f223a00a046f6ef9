"""Datasets that are not one file: directories, patterns, and what the ``datasets`` library holds.

Files are read in the order of their names, as ``train-00000-of-00005`` and its kin are meant.
"""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay.errors import InputError
from assay.scoring.json_safe import Json
from assay.tasks.packed import name_inside
from assay.tasks.tables import TABLE_NAMES, arrow, check_columns

if TYPE_CHECKING:
    from assay.tasks.tables import Batch

HUB = "hf:"
"""What the name of a dataset on the Hugging Face Hub begins with."""

_NAMES = (".jsonl", ".csv", ".tsv", *TABLE_NAMES)
_SHARD = re.compile(r"(.+?)-\d+-of-\d+\.")
_STATE, _SPLITS = "state.json", "dataset_dict.json"
_BATCH = 1_024


def files_of(path: str) -> list[str] | None:
    """The files of a dataset that has several, in order; None for what is no such dataset.

    Args:
        path: A directory of files of rows, or one that ``Dataset.save_to_disk`` wrote; or a
            pattern such as ``data/train-*.parquet``.

    Raises:
        InputError: If there are no rows there, or those of several splits.
    """
    place = Path(path)
    if place.is_dir():
        return _of_directory(place)
    if not any(sign in path for sign in "*?[") or place.exists() or path.startswith(HUB):
        return None
    found = sorted(one for one in glob.glob(path) if Path(one).is_file())  # noqa: PTH207 - absolute patterns, too
    if not found:
        raise InputError(f"no file matches {path}")
    _refuse_splits(found, path)
    return found


def _of_directory(place: Path) -> list[str]:
    if (place / _SPLITS).is_file():
        splits = _read(place / _SPLITS).get("splits")
        names = [str(one) for one in splits] if isinstance(splits, list) else []
        if len(names) != 1:
            raise _several(str(place), names, f"{place}/{names[0] if names else 'train'}")
        return _of_directory(place / names[0])
    if (place / _STATE).is_file():
        listed = _read(place / _STATE).get("_data_files")
        entries = listed if isinstance(listed, list) else []
        found = [str(one.get("filename")) for one in entries if isinstance(one, dict)]
        if found:
            return [str(place / one) for one in found]
        raise InputError(f"{place / _STATE} names no files of data")
    if _is_graded(place):
        raise InputError(f"{place} holds graded parts", hint=f"their rows are in {place / 'parts'}")
    found = [str(one) for one in sorted(place.iterdir()) if _is_rows(one)]
    if not found:
        raise InputError(
            f"{place} has no files of rows",
            hint="those are called .jsonl, .csv, .tsv, .parquet or .arrow",
        )
    _refuse_splits(found, str(place))
    return found


def _is_rows(file: Path) -> bool:
    inside = name_inside(file.name.lower())
    return inside.endswith(_NAMES) and not file.name.startswith((".", "_")) and file.is_file()


def holds_rows(path: str) -> bool:
    """Whether a directory holds rows for certain: what has only ``.jsonl`` may hold anything."""
    place = Path(path)
    if any((place / one).is_file() for one in (_STATE, _SPLITS)) or _is_graded(place):
        return True
    named = (name_inside(one.name.lower()) for one in place.iterdir())
    return any(one.endswith(_NAMES[1:]) for one in named)


def _is_graded(place: Path) -> bool:
    """Whether it is what ``assay grade --out DIR/`` wrote."""
    return (place / "manifest.json").is_file() and (place / "parts").is_dir()


def _refuse_splits(files: Sequence[str], where: str) -> None:
    """Refuse files whose names say that they are of several splits: nobody wants them as one."""
    shards = [_SHARD.match(Path(one).name) for one in files]
    splits = sorted({shard[1] for shard in shards if shard})
    if len(splits) > 1:
        folder = Path(files[0]).parent
        raise _several(where, splits, f"'{folder}/{splits[-1]}-*'")


def _several(where: str, splits: Sequence[str], example: str) -> InputError:
    listed = ", ".join(splits)
    return InputError(f"{where} has several splits: {listed}", hint=f"name one: {example}")


def _read(file: Path) -> dict[str, Json]:
    try:
        data = cast("Json", json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {file}: {error}") from error
    return data if isinstance(data, dict) else {}


def hub_batches(name: str) -> Iterator[tuple[int, Batch]]:
    """The rows of ``hf:owner/name[/config][:split]``, read by the ``datasets`` library.

    Each batch comes with how many rows are before it.

    Raises:
        InputError: If there is no such library or dataset.
    """
    try:
        datasets: Any = import_module("datasets")
    except ImportError as error:
        raise InputError(
            f"{name} is read by the library `datasets`, which is not installed",
            hint="pip install datasets; or give the dataset's files: 'data/train-*.parquet'",
        ) from error
    place, _, split = name.removeprefix(HUB).partition(":")
    owner, _, rest = place.partition("/")
    repository, _, config = rest.partition("/")
    if not owner or not repository:
        raise InputError(f"{name} names no dataset", hint="hf:OWNER/NAME[/CONFIG][:SPLIT]")
    # Old releases ran a script that a dataset brings along.
    datasets.config.HF_DATASETS_TRUST_REMOTE_CODE = False
    try:
        found = datasets.load_dataset(f"{owner}/{repository}", config or None, split=split or None)
    except Exception as error:  # what a library of others raises, from the network or the cache
        said = " ".join(str(error).split())[:300]  # its second line has the configurations
        raise InputError(f"cannot load {name}: {type(error).__name__}: {said}") from error
    if isinstance(found, dict):
        splits = cast("dict[str, Any]", found)
        if len(splits) != 1:
            whole = "/".join(filter(None, (owner, repository, config)))
            raise _several(name, list(splits), f"{HUB}{whole}:{next(iter(splits), 'train')}")
        (found,) = splits.values()
    # The arrays of `datasets` are types of its own; what rows have is what those are made of.
    fields = found.features.arrow_schema
    made_of = [one.with_type(getattr(one.type, "storage_type", one.type)) for one in fields]
    check_columns(arrow().schema(made_of), name)
    before = 0
    for table in found.with_format("arrow").iter(batch_size=_BATCH):
        for batch in table.to_batches():
            yield before, batch
            before += batch.num_rows
