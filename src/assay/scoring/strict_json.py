"""JSON of users and strangers, read so that it means the same to every reader.

A key that stands twice in one object means the first value to some readers and the last to others:
whoever writes it chooses what each of them sees. So it is refused, like what is no JSON at all.
"""

from __future__ import annotations

import json
import sys
from typing import cast

from assay.errors import InputError, Location
from assay.scoring.json_safe import Json

__all__ = ["KeyTwiceError", "read_json", "unique_keys"]


class KeyTwiceError(ValueError):
    """A key stands twice in one object.

    Attributes:
        key: Which one.
    """

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r:.100} stands twice in one object")
        self.key = key


class _NotANumberError(ValueError):
    """NaN or an infinity."""


def unique_keys(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object of its keys and values, for the ``object_pairs_hook`` of `json`.

    Raises:
        KeyTwiceError: For a key that stands there twice.
    """
    whole = dict(pairs)
    if len(whole) != len(pairs):
        seen: set[str] = set()
        raise KeyTwiceError(next(key for key, _ in pairs if key in seen or seen.add(key)))
    return whole


def _refuse(name: str) -> Json:
    raise _NotANumberError(f"{name} is not JSON")


# Made once: `json.loads` makes one for each call that asks for anything, which takes longer than
# to read a short row.
_STRICT = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=_refuse)
_WITH_NAN = json.JSONDecoder(object_pairs_hook=unique_keys)


def read_json(
    text: str | bytes, where: Location | None = None, *, wrong: str = "not JSON", nan: bool = False
) -> Json:
    """Read one JSON value.

    Args:
        text: The JSON; as bytes in any of the encodings that JSON knows.
        where: Where it stands, for messages.
        wrong: What it is called if it cannot be read.
        nan: Whether NaN and infinities are let through, which are no JSON.

    Raises:
        InputError: For anything else than one JSON value, a key that stands twice in one object, a
            number of too many digits, or nesting that is too deep; with the place and the mend.
    """
    decoder = _WITH_NAN if nan else _STRICT
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return cast("Json", decoder.decode(text))
    except KeyTwiceError as error:
        raise InputError(str(error), location=where, hint="keep one of them") from None
    except RecursionError:
        raise InputError(f"{wrong}: it is nested too deeply", location=where) from None
    except (json.JSONDecodeError, UnicodeDecodeError, _NotANumberError) as error:
        raise InputError(f"{wrong}: {error}", location=where) from None
    except ValueError:  # the interpreter's own words would tell a user to change its settings
        most = sys.get_int_max_str_digits()
        raise InputError(
            f"a number has more than {most:,} digits", location=where, hint="write it as text"
        ) from None
