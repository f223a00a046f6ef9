"""Write assay's table of prices from the data of the package genai-prices (MIT).

``make prices`` runs this beside the newest release of the package, which assay itself does not
need: its import costs more than a run, and it would bring an HTTP client. Models of three providers
are taken that read and write text and are paid by the token; also by the further names that the
package knows them by, each as it is written: a name that only begins like one has no known price.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

_PROVIDERS = ("anthropic", "openai", "google")
_OF_TEXT = {"input": "input_mtok", "cached_input": "cache_read_mtok", "output": "output_mtok"}
_OTHERWISE = {  # what a judge or an agent does not use, or what `Price` knows already
    *("cache_write_mtok", "cache_write_1h_mtok", "web_searches_kcount", "storage_searches_kcount"),
    *("input_audio_mtok", "cache_audio_read_mtok", "input_image_mtok", "cache_image_read_mtok"),
}
_NOT_OF_TEXT = re.compile(r"image|audio|tts|transcribe|robotics|embedding|[^a-z0-9]\Z")
"""Also what is no name but the beginning of some."""

Row = dict[str, Any]


def names(match: object) -> list[str]:
    """The names in a rule of which names a model has."""
    if parts := getattr(match, "or_", None):
        return [name for part in parts for name in names(part)]
    found = getattr(match, "equals", None) or getattr(match, "starts_with", None)
    return [found] if found else []


def figures(prices: object) -> Row | None:
    """A row's figures; None if not every token of text has a price, or other things have one."""
    given = {key: value for key, value in vars(prices).items() if value is not None}
    if not {"input_mtok", "output_mtok"} <= given.keys() <= {*_OF_TEXT.values(), *_OTHERWISE}:
        return None
    given = {key: given[key] for key in given if key in _OF_TEXT.values()}
    tiers = [getattr(value, "tiers", []) for value in given.values()]
    starts = sorted({tier.start for each in tiers for tier in each}, reverse=True)
    above: Row | None = None
    for start in (*starts, 0):
        row: Row = {"tokens": start} if start else {}
        for name, key in _OF_TEXT.items():
            if (price := given.get(key)) is not None:
                at = getattr(price, "base", price)
                for tier in getattr(price, "tiers", []):
                    at = tier.price if tier.start <= start else at
                row[name] = float(at) if at % 1 else int(at)
        above = row if above is None else {**row, "above": above}
    return above if above and above["input"] and above["output"] else None


def rows(providers: list[Any]) -> list[Row]:
    """The table: by provider and model, the earlier prices of a model first."""
    found: dict[str, list[Row]] = {}
    of_id = {provider.id: provider for provider in providers}
    for provider in map(of_id.__getitem__, _PROVIDERS):
        for model in provider.models:
            several: list[Any] = model.prices if hasattr(model.prices, "append") else [model.prices]
            written = [
                (getattr(one, "constraint", None), figures(getattr(one, "prices", one)))
                for one in several
            ]
            if any(row is None or not hasattr(when, "start_date") for when, row in written if when):
                continue  # not known from a day on, or a price by the time of day
            for name in dict.fromkeys([model.id, *names(model.match)]):
                if name in found or _NOT_OF_TEXT.search(name) or provider.find_model(name) != model:
                    continue
                found[name], before = [], None
                for when, row in written:
                    since = {"from": when.start_date.isoformat()} if when else {}
                    if row and row != before:
                        found[name].append({"model": name, **row, **since})
                    before = row
    return [row for name in found for row in found[name]]


def main() -> None:
    """Write the table to the path that is given."""
    providers: list[Any] = import_module("genai_prices.data").providers
    package = distribution("genai-prices")
    licence = next(str(file.read_text()) for file in package.files or () if file.name == "LICENSE")
    head = {
        "unit": "USD per million tokens",
        "source": f"genai-prices {package.version}, https://github.com/pydantic/genai-prices",
        "licence": licence,
    }
    lines = ",\n".join(f"    {json.dumps(row)}" for row in rows(providers))
    text = json.dumps(head, indent=2)[:-2] + f',\n  "prices": [\n{lines}\n  ]\n}}\n'
    Path(sys.argv[1]).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
