"""Asking a fake model by hand."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

__all__ = ["replied"]


def replied(url: str, body: bytes, *, timeout: float = 60, **headers: str) -> tuple[int, Any]:
    """The status of a reply, and its JSON."""
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())
