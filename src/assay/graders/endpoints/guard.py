"""The guard: which addresses may be called, so that no URL reaches what only this machine can.

A grader's URL may come from someone else: a shared grader file, a client of a server. It must not
make this machine ask its own services, its network or the cloud's metadata service. So a URL has
to be written plainly, every address that its name resolves to is checked, and the connection goes
to exactly the addresses that were checked: a name that changes its mind gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from assay.errors import GraderError, InputError

if TYPE_CHECKING:
    from aiohttp.abc import AbstractResolver, ResolveResult

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a name and a port to addresses; the system's resolver by default."""

_Ip: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

# One plain pattern instead of a parser: there is no second way to read what it accepts.
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:@%-]*)*)",
    re.IGNORECASE,
)
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "192.0.0.192",
            "168.63.129.16",
            "100.100.100.200",
            "fd00:ec2::254",
            "fd20:ce::254",
        ),
    )
)
# What IANA's registries of special-purpose addresses list, and nobody has a service at that a
# grader's author could mean. Not left to `ipaddress`: its tables change with Python's version.
_SPECIAL = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",  # this network
            "192.0.0.0/24",  # protocol assignments; one cloud's metadata
            "192.0.2.0/24",  # documentation, as the next two
            "198.51.100.0/24",
            "203.0.113.0/24",
            "192.31.196.0/24",  # AS112, as 192.175.48.0/24
            "192.175.48.0/24",
            "192.52.193.0/24",  # multicast tunnels
            "192.88.99.0/24",  # 6to4 relays
            "64:ff9b:1::/48",  # translation by local rules: it may stand for any IPv4 address
            "100::/64",  # discarded, as the next
            "100:0:0:1::/64",
            "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
            "2001:db8::/32",  # documentation, as 3fff::/20
            "3fff::/20",
            "2620:4f:8000::/48",  # AS112
            "5f00::/16",  # segment routing
        ),
    )
)
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_INTERNAL = frozenset({"loopback", "link-local", "shared (carrier)", "private"})
"""Kinds of addresses that ``allow_internal`` opens; the others stay closed."""


class RefusedAddressError(GraderError):
    """The endpoint is at an address that may not be called."""


def is_loopback_url(url: str) -> bool:
    """Whether a URL that `check_url` accepts names this machine, whatever resolves names."""
    found = _URL.fullmatch(url)
    host = found["host"].rstrip(".").lower().strip("[]") if found else ""
    if host == "localhost":
        return True
    try:
        return all(ip.is_loopback for ip in _meanings(ipaddress.ip_address(host)))
    except ValueError:
        return False


def check_url(url: str, *, allow_internal: bool = False) -> None:
    """Refuse a URL that is not a plain ``http(s)://host[:port][/path]`` or is plainly internal.

    Names are not resolved here; `checking_resolver` does that when the endpoint is called.

    Raises `InputError` naming what is wrong; it never repeats credentials.
    """
    found = _URL.fullmatch(url)
    if found is None:
        raise InputError(f"url {_why_not(url)}", hint="write it as https://host[:port][/path]")
    port = found["port"]
    if port is not None and not 0 < int(port) < 65_536:
        raise InputError(f"url has the port {port}; ports are from 1 to 65535")
    host = found["host"].rstrip(".").lower()
    if not host or (not host.startswith("[") and ".." in host):
        raise InputError(f"url has no proper host: {found['host']!r}")
    reason = _refused_host(host, allow_internal=allow_internal)
    if reason:
        raise InputError(f"url names {host}, {reason}", hint=_mend(reason))


def _why_not(url: str) -> str:
    scheme, colon, rest = url.partition("://")
    if not colon or scheme.lower() not in ("http", "https"):
        return "must start with http:// or https://"
    if "@" in rest.partition("/")[0].partition("?")[0]:
        return "holds credentials; the secret belongs in secret_env's variable"
    if "?" in rest or "#" in rest:
        return "must have no query and no fragment"
    return "is not a plain URL"


def _mend(reason: str) -> str:
    kind = reason.removeprefix("a ").removesuffix(" address")
    return "allow_internal: true permits it" if kind in _INTERNAL else ""


def _refused_host(host: str, *, allow_internal: bool) -> str:
    """Why a host as it is written may not be called, or nothing."""
    if host == "localhost" or host.endswith(".localhost"):
        return "" if allow_internal else "a loopback address"
    last = host.rpartition(".")[2]
    if host.startswith("["):
        address = host[1:-1]
    elif last.isdecimal() or last.startswith("0x"):
        address = host  # systems read 2130706433, 127.1 and 0x7f.1 as addresses
    else:
        return ""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return "a number that is not a plainly written address"
    return refusal(address, allow_internal=allow_internal)


def refusal(address: str, *, allow_internal: bool = False) -> str:
    """Why an IP address may not be called, such as ``a private address``; empty if it may.

    An IPv6 address that stands for an IPv4 one (mapped, translated, tunnelled) is also checked as
    that.
    """
    for ip in _meanings(ipaddress.ip_address(address.partition("%")[0])):
        kind = _kind(ip)
        if kind and not (allow_internal and kind in _INTERNAL):
            return f"a {kind} address"
    return ""


def _meanings(ip: _Ip) -> Iterator[_Ip]:
    """The IPv4 address that an address stands for; else itself and those inside of it."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            yield ip.ipv4_mapped
            return
        if ip in _TRANSLATED:  # how networks without IPv4 reach it
            yield ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
            return
        if ip.sixtofour is not None:
            yield ip.sixtofour
        if ip.teredo is not None:
            yield from ip.teredo
    yield ip


def _kind(ip: _Ip) -> str:  # noqa: PLR0911 - one return per kind
    """What kind of address it is; empty for a public one."""
    if ip in _METADATA:
        return "cloud metadata"
    if ip.is_multicast:
        return "multicast"
    if ip.is_unspecified:
        return "unspecified"
    if ip.is_loopback:
        return "loopback"
    if ip.is_link_local:
        return "link-local"
    if ip.version == 4 and ip in _SHARED:
        return "shared (carrier)"
    if any(ip in block for block in _SPECIAL):
        return "special-purpose"
    if ip.is_reserved:
        return "reserved"
    if ip.is_private or (isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local):
        return "private"
    return "" if ip.is_global else "non-public"


async def _system_lookup(name: str, port: int) -> Sequence[str]:
    import asyncio

    found = await asyncio.get_running_loop().getaddrinfo(
        name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checking_resolver(*, allow_internal: bool, lookup: Lookup | None = None) -> AbstractResolver:
    """A resolver that hands out only addresses that may be called.

    One refused address refuses the name: who mixes public and internal addresses under one name
    is trying something.
    """
    from aiohttp.abc import AbstractResolver

    find = lookup or _system_lookup

    class Checking(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            del family  # both families: which one works is tried in turn
            addresses = await find(host, port)
            if not addresses:
                raise OSError(f"{host} has no address")
            for address in addresses:
                if reason := refusal(address, allow_internal=allow_internal):
                    raise RefusedAddressError(
                        f"{host} is at {address}, {reason}", hint=_mend(reason)
                    )
            return [_resolved(host, address, port) for address in addresses]

        async def close(self) -> None:
            return None

    return Checking()


def _resolved(host: str, address: str, port: int) -> ResolveResult:
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
        "proto": socket.IPPROTO_TCP,
        "flags": int(socket.AI_NUMERICHOST | socket.AI_NUMERICSERV),
    }
