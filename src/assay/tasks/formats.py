"""What files of rows are written in, by their names and by how they begin."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

from assay.scoring.strict_json import json_encoding
from assay.tasks.packed import name_inside
from assay.tasks.tables import TABLE_NAMES, kind_of_table

Format = Literal["jsonl", "json", "csv", "tsv", "parquet", "arrow"]
"""What rows are read from."""

TABLES = ("parquet", "arrow")
Form = Literal["jsonl", "jsonl.gz", "jsonl.zst"]
"""What rows are written as in one file."""
_FORMS: tuple[Form, ...] = ("jsonl", "jsonl.gz", "jsonl.zst")


def has_rows(file: str) -> bool:
    """Whether a file holds rows by its name, packed or not."""
    return name_inside(file.lower()).endswith((".jsonl", ".csv", ".tsv", *TABLE_NAMES))


def format_of(name: str, source: io.BufferedReader) -> Format:
    """What a file is to be read as."""
    ending = Path(name).suffix.lower()
    if ending in (".csv", ".tsv"):
        return "csv" if ending == ".csv" else "tsv"
    head = source.peek(64)[:64]
    if ending in TABLE_NAMES or kind_of_table(head):
        return kind_of_table(head) or ("parquet" if ending == ".parquet" else "arrow")
    text = (head.decode(json_encoding(head), "replace") if head else "").lstrip("\ufeff \t\r\n")
    if not ending and text[:1] not in "[{":  # standard input, whose name says nothing
        head_line = text.partition("\n")[0]
        return "tsv" if "\t" in head_line else "csv" if "," in head_line else "jsonl"
    return "json" if text.startswith("[") else "jsonl"


def form_of(name: str) -> Form | None:
    """What a file is written as, by its name."""
    return next((form for form in _FORMS if name.endswith(f".{form}")), None)
