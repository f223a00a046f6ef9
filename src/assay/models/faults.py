"""`CallFault`: what a reply that is no answer means: whose matter it is, and if it is asked again.

What a server says is a stranger's text. It is told on one line, bounded, without the key, and it
decides nothing but what is asked again and what is left out of the next request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

from assay.conversation.wire import items, mapping, text
from assay.errors import ModelError, ModelFault
from assay.frozen import frozen
from assay.models.pace import asked_pause
from assay.scoring.json_safe import Json

_MOST_TOLD = 300
_MOST_READ = 8_192

ENDPOINT_FAULTS: frozenset[ModelFault] = frozenset(
    {"auth", "quota", "overloaded", "unreachable", "timeout"}
)
"""Kinds that say something of the endpoint and not of one request; the breaker counts them."""

_OVERFLOW = re.compile(
    r"context.?(length|window|size)|maximum context|prompt is too long|too many (input )?tokens|"
    r"input (is|length).{0,40}(too long|exceeds)|exceed.{0,40}\b(token|context)|request_too_large|"
    r"reduce the length"
)
# Gemini says "exceeded your current quota" of limits by the minute: that is no such word.
_QUOTA = re.compile(
    r"insufficient_(quota|credits?)|credit balance|billing_(hard_limit|not_active)|"
    r"(quota|credits?) (is|are|has been|have been) (used up|exhausted|depleted)"
)
_TOLD_PAUSE = re.compile(r"(?:retry|try again) in (\d{1,6}(?:\.\d{1,6})?) ?(ms|s)\b")
_FILTER = re.compile(r"content_filter|content management policy|responsibleaipolicy")
_TOP_UP = "top up the account, or use another key"
_REJECTED_HINTS = {
    404: "check the model's name and the base URL",
    405: "check the base URL",
    422: "",
}


@frozen
class CallFault:
    """A try that gave no answer.

    Attributes:
        kind: What to call it if it is the last one.
        reason: In a word or two.
        message: What happened, for people.
        status: The HTTP status, or 0.
        may_repeat: Whether asking again may help.
        pause: Seconds that the endpoint asks to wait; None if it does not say.
        is_crowded: Whether there are too many requests.
        may_teach: Whether it refuses the request's form: something in it could be left out.
        said: All that the server says, for looking at.
        may_be_paid: Whether it may have been worked on, and paid for.
        hint: What the user can do.
    """

    kind: ModelFault
    reason: str
    message: str
    status: int = 0
    may_repeat: bool = False
    pause: float | None = None
    is_crowded: bool = False
    may_teach: bool = False
    said: str = ""
    may_be_paid: bool = False
    hint: str = ""

    def error(self, name: str, tries: int = 1) -> ModelError:
        """The error it is in the end."""
        after = f" (after {tries} tries)" if tries > 1 else ""
        return ModelError(
            f"{name} {self.message}{after}", kind=self.kind, status=self.status, hint=self.hint
        )


def redacted(said: str, *secrets: str) -> str:
    """A stranger's text, to show: one line, printable, bounded, without our secrets."""
    for secret in secrets:
        if secret:
            said = said.replace(secret, "[redacted]")
    line = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return line if len(line) <= _MOST_TOLD else f"{line[: _MOST_TOLD - 3]}..."


def fault_of(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secrets: tuple[str, ...]
) -> CallFault:
    """Say what an error reply means."""
    message, codes = _explained(body)
    said = f"{message} {codes}".lower()
    line = redacted(message, *secrets)
    words = f"answered {status}: {line}" if line else f"answered {status}"
    if 300 <= status < 400:
        hint = "redirects are not followed; name the final URL"
        return CallFault("rejected", "redirect", words, status, hint=hint)
    if status in (400, 413, 422):
        return _of_request(status, said, words)
    if status in (401, 403):
        return CallFault(
            "auth", "auth", words, status, hint="check the key and what it may be used for"
        )
    if status == 402 or (status == 429 and _QUOTA.search(said)):
        return CallFault("quota", "quota", words, status, hint=_TOP_UP)
    if status in (408, 409, 425, 429) or (status >= 500 and status not in (501, 505)):
        return _of_load(status, headers, said, words, now=now)
    hint = _REJECTED_HINTS.get(status, "")
    return CallFault("rejected", f"status {status}", words, status, hint=hint)


def _of_load(
    status: int, headers: Mapping[str, str], said: str, words: str, *, now: float
) -> CallFault:
    """What replies mean that come of there being too much, or of something broken."""
    pause = asked_pause(headers, now)
    if pause is None and (written := _TOLD_PAUSE.search(said)):
        pause = float(written[1]) * (0.001 if written[2] == "ms" else 1.0)
    may_repeat = headers.get("x-should-retry", "").lower() != "false"
    if status == 429:
        return CallFault("rate_limited", "rate limit", words, status, may_repeat, pause, True)
    is_crowded = status in (503, 529)
    return CallFault("overloaded", f"status {status}", words, status, may_repeat, pause, is_crowded)


def _of_request(status: int, said: str, words: str) -> CallFault:
    """What 400, 413 and 422 mean: that there is something wrong with what was asked."""
    if _QUOTA.search(said):
        return CallFault("quota", "quota", words, status, hint=_TOP_UP)
    if _FILTER.search(said):
        return CallFault("refused", "content filter", words, status)
    if status == 413 or _OVERFLOW.search(said):
        # A server whose whole window is smaller than max_tokens says so in these words as well.
        teaches = status != 413
        hint = "shorten what is judged, lower max_tokens, or use a model with a longer context"
        return CallFault(
            "overflow", "overflow", words, status, may_teach=teaches, said=said, hint=hint
        )
    return CallFault("rejected", "rejected", words, status, may_teach=True, said=said)


def broken_reply(content_type: str, body: bytes, *, secrets: tuple[str, ...]) -> CallFault:
    """What a reply with status 200 means that does not follow the protocol."""
    kind = content_type.partition(";")[0].strip().lower()
    if not body:
        return CallFault(
            "unreadable", "empty reply", "answered with nothing", 200, True, may_be_paid=True
        )
    if kind != "application/json" and not kind.endswith("+json"):
        what = redacted(kind) or "something that has no type"
        message = f"answered with {what}, not JSON"
        return CallFault("unreadable", "no JSON", message, 200, hint="check the base URL")
    begin = redacted(body[:200].decode("utf-8", "replace"), *secrets)
    message = f"answered with something that is not a model's reply: {begin}"
    return CallFault("unreadable", "broken reply", message, 200, True, may_be_paid=True)


def _explained(body: bytes) -> tuple[str, str]:
    """The message of an error reply, and its codes and the parameter that it names."""
    begin = body[:_MOST_READ]
    try:
        data = cast("Json", json.loads(body))
    except (ValueError, RecursionError):
        return _without_tags(begin.decode("utf-8", "replace")), ""
    reply = mapping(items(data)[0] if items(data) else data)  # Gemini sends a list of one
    error = reply.get("error")
    inner = mapping(error)
    codes = " ".join(
        text(source.get(name)) for source in (inner, reply) for name in ("code", "type", "param")
    )
    message = text(inner.get("message")) or text(error) or text(reply.get("message"))
    if not message:
        detail = reply.get("detail")
        message = text(detail) or json.dumps(data, ensure_ascii=False)
    return message[:_MOST_READ], codes[:_MOST_READ]


def _without_tags(page: str) -> str:
    if "<" not in page:
        return page
    page = re.sub(r"<(style|script)\b.*?(</\1>|\Z)", " ", page, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"<[^>]*(>|\Z)", " ", page)
