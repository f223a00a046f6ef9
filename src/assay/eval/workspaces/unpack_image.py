"""Unpack an image's files, in the sandbox: whatever they are, they reach nothing but one directory.

Run there by its path, by assay's own Python: standard library only, nothing of assay.
Arguments: the archive, the most bytes, the most files. The working directory is the target.
"""

from __future__ import annotations

import sys
import tarfile


def _as_it_is(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    return member


def unpack(archive: str, most_bytes: int, most_files: int) -> None:
    """Take files, directories and links, as one user's and without any special right.

    Devices and pipes are left out: the sandbox brings its own. Set-user-ID bits, owners and
    capabilities mean nothing where there is one user.
    """
    size = count = 0
    with tarfile.open(archive, "r:") as tar:
        # What an entry may be is decided here, for every version of Python alike.
        setattr(tar, "extraction_filter", _as_it_is)  # noqa: B010 - not every 3.11 has it
        for member in tar:
            name = member.name.removeprefix("./").strip("/")
            if name in ("", ".") or not (
                member.isreg() or member.isdir() or member.issym() or member.islnk()
            ):
                continue
            count, size = count + 1, size + member.size
            if size > most_bytes or count > most_files:
                sys.exit(f"it has more than {most_bytes >> 20} MiB or {most_files} files")
            if ".." in name.split("/"):
                sys.exit(f"an entry leads out of it: {member.name!r}")
            member.name = name
            member.mode = (member.mode & 0o777) | (0o700 if member.isdir() else 0o400)
            tar.extract(member, ".", numeric_owner=True)


if __name__ == "__main__":
    try:
        unpack(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    except (OSError, tarfile.TarError, ValueError) as error:
        sys.exit(str(error))
