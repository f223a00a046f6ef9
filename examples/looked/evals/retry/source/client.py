"""Ask a server."""

from urllib.request import urlopen


def fetch(url: str) -> bytes:
    """The body of a page."""
    with urlopen(url, timeout=10) as reply:
        return reply.read()
