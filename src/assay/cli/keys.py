"""``assay keys``: who may use the server."""

from __future__ import annotations

import json
from argparse import Namespace

from assay.cli.serve import location
from assay.store.catalog_records import KeyRecord, KeyRole

__all__ = ["make_key", "manage_keys"]


def manage_keys(given: Namespace) -> int:
    """Make, list or revoke keys.

    Returns:
        0.

    Raises:
        InputError: For an unknown project or key.
    """
    where = location(given.db)
    if given.action == "create":
        record, token = make_key(where, given.name, given.role, given.project)
        if given.json:
            print(json.dumps({**record.to_dict(), "token": token}, indent=2))
        else:
            print(f"{token}\n\n{_line(record)}\nThe key is shown this once; keep it safe.")
    elif given.action == "list":
        _show(_all_keys(where), as_json=given.json)
    else:
        _revoke(where, given.id, as_json=given.json)
    return 0


def make_key(where: str, name: str, role: KeyRole, project: str) -> tuple[KeyRecord, str]:
    """Make a key.

    Returns:
        What is stored of it, and the key.

    Raises:
        NotFoundError: For an unknown project.
    """
    from assay.service.site import new_key
    from assay.store.api_keys import ApiKeys
    from assay.store.database import Database

    made = new_key()
    with Database.open(where) as database:
        record = ApiKeys(database).create(name, role, project, made.hashed, made.prefix)
    return record, made.token


def _all_keys(where: str) -> list[KeyRecord]:
    from assay.store.api_keys import ApiKeys
    from assay.store.database import Database

    found: list[KeyRecord] = []
    with Database.open(where) as database:
        after = ""
        while page := ApiKeys(database).page(limit=500, after=after):
            found.extend(page)
            after = page[-1].id
    return found


def _revoke(where: str, key: str, *, as_json: bool) -> None:
    from assay.store.api_keys import ApiKeys
    from assay.store.database import Database

    with Database.open(where) as database:
        record = ApiKeys(database).revoke(key)
    print(json.dumps(record.to_dict(), indent=2) if as_json else _line(record))


def _show(keys: list[KeyRecord], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"items": [key.to_dict() for key in keys]}, indent=2))
    elif keys:
        print("\n".join(map(_line, keys)))
    else:
        print("no keys yet; make one with: assay keys create NAME")


def _line(key: KeyRecord) -> str:
    state = f"revoked {key.revoked_at}" if key.revoked_at else f"used {key.last_used_at or 'never'}"
    return f"{key.id}  {key.prefix}...  {key.role:<6}  {key.project:<12}  {key.name}  ({state})"
