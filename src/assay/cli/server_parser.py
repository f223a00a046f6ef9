"""What ``assay serve`` and ``assay keys`` take."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

__all__ = ["KEYS_TEXTS", "SERVE_TEXTS", "add_keys", "add_serve"]

_SERVE_MORE = """\
Graders, datasets, jobs and scores over HTTP, from the same store as the command line. Where only
this machine can reach it, it prints a link that logs in once; others need a key (`assay keys`).
Ctrl-C or SIGTERM ends it when the batches in flight are stored.
"""
_SERVE = """\
  assay serve
  assay serve --db postgresql://assay@db.internal/assay --host 0.0.0.0 --create-key first
  assay serve --endpoint-secret ASSAY_SECRET_REWARDS=rewards.example.com"""
_KEYS_MORE = """\
A key is shown once, when it is made; of it only a hash is stored. A viewer reads, an editor stores
and grades, an admin also makes keys.
"""
_KEYS = """\
  assay keys create ci --role editor --project maths
  assay keys list
  assay keys revoke 1a2b3c4d5e6f"""
SERVE_TEXTS = (_SERVE_MORE, _SERVE)
KEYS_TEXTS = (_KEYS_MORE, _KEYS)


def add_serve(parser: ArgumentParser) -> None:
    """Add the options of ``assay serve``."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen; this machine only")
    add("--port", type=_port, default=8400, metavar="N", help="8400 by default; 0 takes a free one")
    _add_db(parser)
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that others call this server by",
    )
    add("--create-key", metavar="NAME", help="make an admin's key for all projects, and print it")
    add(
        "--endpoint-secret",
        action="append",
        default=[],
        type=_secret,
        metavar="VARIABLE=HOST",
        help="let external endpoints send the secret in VARIABLE to HOST, and only there",
    )
    add(
        "--allow-internal-endpoints",
        action="store_true",
        help="let external endpoints be on this machine or its network",
    )
    add(
        "--allow-custom-code",
        action="store_true",
        help="run graders that are classes of installed packages, outside of any sandbox",
    )
    add("--quiet", action="store_true", help="no line for each request")
    add("--json", action="store_true", help="say where it listens as one JSON object")


def add_keys(parser: ArgumentParser) -> None:
    """Add the commands below ``assay keys``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a key", allow_abbrev=False)
    create.add_argument("name", metavar="NAME", help="what to call it")
    create.add_argument("--role", choices=("viewer", "editor", "admin"), default="editor")
    create.add_argument(
        "--project", default="default", metavar="KEY", help="default by default; * for all"
    )
    listing = actions.add_parser("list", help="show the keys, without secrets", allow_abbrev=False)
    revoke = actions.add_parser("revoke", help="make a key useless for good", allow_abbrev=False)
    revoke.add_argument("id", metavar="ID", help="as `assay keys list` shows it")
    for action in (create, listing, revoke):
        _add_db(action)
        action.add_argument("--json", action="store_true", help="print one JSON object")


def _add_db(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--db",
        metavar="WHERE",
        help="a directory, or postgresql://USER@HOST/NAME; $ASSAY_DB or .assay by default",
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _secret(text: str) -> tuple[str, str]:
    name, equals, host = text.partition("=")
    if not (name.startswith("ASSAY_SECRET_") and equals and host) or "/" in host:
        raise ArgumentTypeError(f"{text!r} is not ASSAY_SECRET_...=HOST")
    return name, host.lower()
