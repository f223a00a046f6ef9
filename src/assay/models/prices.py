"""What models cost: a dated table, the user's own rows over it, and honest gaps.

Prices change. ``prices.json`` is made by ``make prices``, which names the release of genai-prices;
what is not there is not known, and a cost that is not known is None, never 0. A file of the user's
own adds rows and replaces them::

    prices:
      - {model: claude-haiku-5-5, input: 0.08, cached_input: 0.01, output: 0.4}
      - {model: "http://127.0.0.1:8000/v1#*", input: 0, output: 0}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeAlias, cast

from assay.conversation.messages import ReplyUsage, Request
from assay.conversation.schemas import schema_text
from assay.errors import InputError, Location
from assay.frozen import frozen
from assay.scoring.json_safe import Json, plain
from assay.types.codec import Path as CodecPath
from assay.types.codec import Problem, Within, read

_MILLION = 1_000_000
_STORED, _STORED_HOUR = 0.25, 1.0
"""What keeping a token costs above reading it, of a token's price: at Anthropic, for five minutes
and for an hour. Others ask nothing for it, and tell of none."""
_PROVIDERS = ("anthropic:", "google:", "openai:", "models/")
# What providers write after a model's name for one snapshot of it: a date, or ``latest``.
_SNAPSHOT = re.compile(r"(?:[-@]\d{4}-?\d{2}-?\d{2}|-\d{2}-\d{2}|-\d{4}|[-@]latest)\Z")
_CHARACTERS_PER_TOKEN = 3
_OVERHEAD_TOKENS = 200  # roles and the frame of tools, which no message shows
_IMAGE_TOKENS = 3_000
_SHORT_REPLY = 20
_REMEMBERED = 1_024
_Dollars: TypeAlias = Annotated[float, Within(0)]


@frozen(kw_only=True)
class Price:
    """One row of the table, as it stands in a file; beside it ``from`` says when it begins to hold.

    Attributes:
        model: The provider's name for it; a last ``*`` stands for anything.
        input: US dollars per million tokens read.
        cached_input: Likewise for those from the provider's own cache; None if that is not known,
            when they are counted as any others.
        output: US dollars per million tokens written.
        tokens: Of the row of long requests, how many are read by more than these.
        above: The row for long requests.
        source: The page it was read on, for people.
        date: When it was, for people.
    """

    model: str = ""
    input: _Dollars
    cached_input: _Dollars | None = None
    output: _Dollars
    tokens: Annotated[int, Within(0)] = 0
    above: Price | None = None
    source: str = ""
    date: str = ""

    def of(
        self, read: int, cached: int, written: int, *, stored: int = 0, stored_hour: int = 0
    ) -> float:
        """US dollars for tokens.

        Args:
            read: All that were read.
            cached: Of them, from the provider's cache.
            written: Of the reply.
            stored: Of those read, kept in the provider's cache for minutes.
            stored_hour: Likewise for an hour.
        """
        if self.above is not None and read > self.above.tokens:
            return self.above.of(read, cached, written, stored=stored, stored_hour=stored_hour)
        cached = min(max(cached, 0), read)
        stored = min(max(stored, 0), read - cached)
        stored_hour = min(max(stored_hour, 0), read - cached - stored)
        cheap = self.input if self.cached_input is None else self.cached_input
        fresh = read - cached + stored * _STORED + stored_hour * _STORED_HOUR
        return (fresh * self.input + cached * cheap + written * self.output) / _MILLION


class Prices:
    """A table of prices.

    Args:
        rows: By model; see `Price`.
        own: Those of them that the user gave.
    """

    def __init__(self, rows: Mapping[str, Price], own: Iterable[str] = ()) -> None:
        self._rows = dict(rows)
        self._own = frozenset(own)
        self._patterns = sorted(
            (name for name in self._rows if name.endswith("*")), key=len, reverse=True
        )
        self._found: dict[str, Price | None] = {}

    @classmethod
    def load(cls, user_file: str = "", *, today: str = "") -> Prices:
        """Read the table that comes with assay, and the user's rows over it.

        Args:
            user_file: A YAML or JSON file, or "".
            today: The day, as ``2026-01-31``, whose prices are wanted; by default the present one.

        Raises:
            InputError: The user's file cannot be read, or a row of it is wrong; names the row.
        """
        today = today or _this_day()
        rows = _packaged(today)
        own = _rows(_document(user_file), file=user_file, today=today) if user_file else {}
        return cls(rows | own, own)

    def cost(self, model: str, usage: ReplyUsage) -> float | None:
        """What a reply cost, in US dollars; None if its price or its tokens are not known.

        Args:
            model: The model's name, or a reference to it. A snapshot has the price of its model,
                unless it has its own.
            usage: Its tokens.
        """
        price, read, written = self.price(model), usage.input_tokens, usage.output_tokens
        if price is None or read is None or written is None or read < 0 or written < 0:
            return None
        return price.of(
            read,
            usage.cached_tokens or 0,
            written,
            stored=usage.stored_tokens or 0,
            stored_hour=usage.stored_hour_tokens or 0,
        )

    def estimate(self, model: str, request: Request) -> float | None:
        """The most that a request should cost, in US dollars; None if the price is not known.

        A token is taken to be three characters of ASCII, or three bytes of other text; the reply
        to be as long as it may be; nothing to be cached.
        """
        price = self.price(model)
        if price is None:
            return None
        return price.of(_OVERHEAD_TOKENS + _read(request), 0, request.max_tokens)

    def range(self, model: str, request: Request) -> tuple[float, float] | None:
        """What a request costs at least and at most, in US dollars; None as `estimate`.

        The least is that of a short verdict, and of a prompt of few tokens that the provider has in
        its own cache already.
        """
        price, most = self.price(model), self.estimate(model, request)
        if price is None or most is None:
            return None
        read = _read(request) // 2
        return price.of(read, read, min(_SHORT_REPLY, request.max_tokens)), most

    def price(self, model: str) -> Price | None:
        """The row of a model, or None."""
        if model in self._found:
            return self._found[model]
        found = self._look_up(model)
        if len(self._found) < _REMEMBERED:
            self._found[model] = found
        return found

    def is_own(self, model: str) -> bool:
        """Whether the user's file has a row for a model."""
        price = self.price(model)
        return price is not None and price.model in self._own

    def _look_up(self, model: str) -> Price | None:
        name = model
        for prefix in _PROVIDERS:
            name = name.removeprefix(prefix)
        for known in (model, name, _SNAPSHOT.sub("", name)):
            if known in self._rows:
                return self._rows[known]
        for pattern in self._patterns:
            if model.startswith(pattern[:-1]):
                return self._rows[pattern]
        return None


def packaged_models() -> list[str]:
    """The names of the models whose prices come with assay."""
    return [name for name in _packaged(_this_day()) if not name.endswith("*")]


def _this_day() -> str:
    return datetime.now(UTC).date().isoformat()


def _packaged(today: str) -> dict[str, Price]:
    packaged = Path(__file__).with_name("prices.json")
    rows: list[dict[str, Any]] = json.loads(packaged.read_text("utf-8"))["prices"]
    # It is ours: what a stranger's file is asked takes longer than all else that a client does.
    return {row["model"]: _made(row) for row in rows if row.pop("from", "") <= today}


def _made(row: dict[str, Any]) -> Price:
    above = row.pop("above", None)
    return Price(**row, above=above and _made(above))


def _read(request: Request) -> int:
    """Tokens of what is asked, its schema included."""
    read = 0
    for message in request.messages:
        if isinstance(message.content, str):
            read += _tokens(message.content)
            continue
        for part in message.content:
            text = part.get("text")
            read += _tokens(text) if isinstance(text, str) else _IMAGE_TOKENS
    if request.schema is not None:
        # It is sent as a schema and stated in words.
        read += 2 * _tokens(schema_text(request.schema))
    return read


def _tokens(text: str) -> int:
    length = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return length // _CHARACTERS_PER_TOKEN + 1


# --- Reading rows --------------------------------------------------------------------------------


def _document(file: str) -> Json:
    import yaml

    try:
        return cast("Json", yaml.safe_load(Path(file).read_text("utf-8")))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(
            f"the prices cannot be read: {error}", location=Location(file=file)
        ) from None


def _rows(document: Json, *, file: str, today: str) -> dict[str, Price]:
    entries = document.get("prices") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InputError(
            "a file of prices has one list", location=Location(file=file, field="prices")
        )
    rows: dict[str, Price] = {}
    for index, entry in enumerate(entries):
        place: CodecPath = ("prices", index)
        given = plain(entry)
        since = given.pop("from", "") if isinstance(given, dict) else ""
        problems: list[Problem] = []
        price = read(Price, given, place, problems)
        if isinstance(price, Price):
            if not price.model:
                problems.append(Problem(place, "a price needs the name of its model"))
            if price.above is not None and not price.above.tokens:
                problems.append(Problem((*place, "above"), "'above' needs 'tokens' and prices"))
        if problems:
            where = Location(file=file, field=problems[0].field)
            raise InputError(problems[0].message, location=where, hint=problems[0].hint)
        # Of several rows for a model the last one that holds already counts.
        if isinstance(price, Price) and str(since) <= today:
            rows[price.model] = price
    return rows
