"""Takes what the channel hands down, a listening socket, and becomes the program that uses it.

Node can use an inherited descriptor, but cannot receive one. The line that comes with it stays in
the channel, for whoever reads it next.
"""

from __future__ import annotations

import os
import socket
import sys


def main() -> None:
    """Run the rest of the command line with ``ASSAY_CHANNEL`` and ``ASSAY_LINK`` set."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        channel.connect("/opt/assay/channel")
        _, beside, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_PEEK)
    except OSError:
        beside = []
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            link = int.from_bytes(data[:4], sys.byteorder)
            os.set_inheritable(link, True)
            os.environ["ASSAY_LINK"] = str(link)
    os.set_inheritable(channel.fileno(), True)
    os.environ["ASSAY_CHANNEL"] = str(channel.fileno())
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - node, and what it is to run


if __name__ == "__main__":
    main()
