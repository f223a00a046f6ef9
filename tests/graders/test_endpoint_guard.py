"""Which addresses an endpoint may be at, however they are written and whatever names say."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from contextlib import nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import InputError
from assay.graders.endpoints.calling import grade_remote
from assay.graders.endpoints.guard import check_url, refusal
from assay.graders.endpoints.settings import EndpointSettings
from assay.models.pace import Timing
from assay.types import Submission
from tests.each import each
from tests.endpoint_servers import FaultServer, faulty, graded

INTERNAL = {
    "loopback": "127.0.0.1 127.255.3.4 ::1 ::ffff:127.0.0.1 2002:7f00:1::",
    "private": """
        10.1.2.3 172.16.0.1 192.168.1.1 fd12:3456::1 fec0::1 198.18.0.1 198.19.255.255
        64:ff9b::198.18.0.1 ::ffff:a00:1 64:ff9b::10.0.0.1
    """,
    "link-local": "169.254.1.1 fe80::1 fe80::1%eth0 2002:a9fe:101::1",
    "shared (carrier)": "100.64.0.1 100.127.255.255",
}
NEVER = {
    "cloud metadata": """
        169.254.169.254 fd00:ec2::254 168.63.129.16 100.100.100.200 ::ffff:169.254.169.254
        64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: 192.0.0.192 ::ffff:192.0.0.192 64:ff9b::192.0.0.192
        fd20:ce::254 2002:c000:c0::1
    """,
    "multicast": "224.0.0.1 ff02::1",
    "unspecified": "0.0.0.0 ::",
    "reserved": "255.255.255.255 240.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1",
    "special-purpose": """
        0.0.0.1 192.0.0.9 192.0.0.254 192.0.2.1 198.51.100.1 203.0.113.1 192.31.196.1
        192.52.193.1 192.88.99.1 192.175.48.1 64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00::
        100::1 2001:2::1 2001:20::1 2001:db8::1 2620:4f:8000::1 3fff::1 5f00::1
    """,
}


PUBLIC = {"": "8.8.8.8 1.1.1.1 100.63.255.255 172.32.0.1 2606:4700::1111"}


@each(
    ("address", "kind", "may_be_allowed"),
    [
        (address, kind, kinds is not NEVER)
        for kinds in (INTERNAL, NEVER, PUBLIC)
        for kind, addresses in kinds.items()
        for address in addresses.split()
    ],
)
def test_internal_addresses_are_called_only_if_that_is_allowed_and_some_never(
    address: str, kind: str, *, may_be_allowed: bool
) -> None:
    refused = f"a {kind} address" if kind else ""
    assert refusal(address) == refused
    assert refusal(address, allow_internal=True) == ("" if may_be_allowed else refused)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_means_the_same_however_it_is_wrapped(
    address: ipaddress.IPv4Address,
) -> None:
    plain, number = refusal(str(address)), int(address)
    assert refusal(f"::ffff:{address}") == plain
    assert refusal(str(ipaddress.IPv6Address((0x64_FF9B << 96) + number))) == plain
    if plain:
        tunnelled = ipaddress.IPv6Address((0x2002 << 112) + (number << 80) + 1)
        assert refusal(str(tunnelled)) == plain


ODD = """
    http://0x7f000001/ http://2130706433/ http://127.1/ http://0177.0.0.1/
    http://127.0.0.0x1/ http://127.0.0.1./ http://0/ http://[::ffff:127.0.0.1]/
    http://[::1]/ http://localhost:8000 http://LOCALHOST./ http://a.localhost/
    http://169.254.169.254/latest/meta-data/ http://999.1.1.1/ http://[::gg]/
    http://[fe80::1%25eth0]/ http://%31%32%37.0.0.1/ http://user:pass@example.com/
    http://example.com@127.0.0.1/ http://127.0.0.1#@example.com/
    http://example.com/?token=1 http://example.com/#x http://example.com:0/
    http://example.com:65536/ http://example.com:80:80/ http:///v1/grade
    http://example..com/ ftp://example.com/ file:///etc/passwd gopher://example.com/
    //example.com example.com
"""


@each(
    "url",
    [
        *ODD.split(),
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460\u2461\u2466.0.0.1/",
        "http://127.0.0.1\\@example.com/",
        "http://exa mple.com/",
        "http://example.com/\r\nHost: x",
        "http://example.com\n",
        "",
    ],
)
def test_a_url_that_is_odd_or_internal_is_refused(url: str) -> None:
    with pytest.raises(InputError, match=r"^url "):
        check_url(url)


@each("url", ["http://2130706433/", "http://127.1/", "http://0x7f.1/", "http://169.254.169.254/"])
def test_numbers_that_are_no_plain_address_are_refused_even_where_internal_is_allowed(
    url: str,
) -> None:
    with pytest.raises(InputError, match=r"^url "):
        check_url(url, allow_internal=True)


PLAIN = """
    https://rewards.example.com http://rewards.example.com:8080/serve/p/key
    HTTPS://Example.COM/v1/grade https://my_host/x-y.z~1 https://8.8.8.8/
    https://[2606:4700::1111]:8443/a https://1.example.com/
"""


@each("url", PLAIN.split())
def test_plain_urls_are_accepted(url: str) -> None:
    check_url(url)


def test_a_refused_url_does_not_show_its_password() -> None:
    with pytest.raises(InputError, match="credentials") as caught:
        check_url("https://me:hunter2@example.com/")
    assert "hunter2" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_an_input_error(text: str) -> None:
    for url in (text, f"http://{text}"):
        try:
            check_url(url)
        except InputError:
            continue
        assert url.isascii()
        assert "@" not in url.partition("//")[2].partition("/")[0]


IN_CLEAR = """
    http://rewards.example.com HTTP://rewards.example.com/ http://10.0.0.1/
    http://localhost.example.com/ http://a.localhost/ http://[2606:4700::1111]/
"""
ENCRYPTED_OR_HERE = """
    https://rewards.example.com http://localhost:8000 http://LOCALHOST./ http://127.0.0.2/
    http://[::1]:8000/ http://[::ffff:127.0.0.1]/
"""


@each("url", [*IN_CLEAR.split(), *ENCRYPTED_OR_HERE.split()])
def test_a_secret_is_not_sent_where_the_network_can_read_it(url: str) -> None:
    EndpointSettings(url=url, allow_internal=True)
    EndpointSettings(url=url, secret_env="ASSAY_SECRET_R", auth="hmac", allow_internal=True)
    refused = pytest.raises(InputError, match="over http")
    with refused if url in IN_CLEAR.split() else nullcontext():
        EndpointSettings(url=url, secret_env="ASSAY_SECRET_R", allow_internal=True)


class Changing:
    """A name that resolves to something else every time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = [*answers]
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.asked.append((name, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


ONE = [Submission(answer="x")]


def named(server: FaultServer) -> str:
    """Its URL, by a name that only `Changing` resolves."""
    return f"http://rewards.example.com:{server.url.rpartition(':')[2]}"


@each(
    ("addresses", "allowed", "said"),
    [
        (["10.0.0.1"], False, "is at 10.0.0.1, a private"),
        (["::1"], False, "is at ::1, a loopback"),
        (["8.8.8.8", "192.168.0.1"], False, "192.168.0.1, a private address"),
        (["169.254.169.254"], True, "cloud metadata"),
    ],
)
async def test_a_name_of_an_internal_address_is_not_called(
    addresses: list[str], said: str, *, allowed: bool
) -> None:
    settings = EndpointSettings(url="http://rewards.example.com", retries=0, allow_internal=allowed)
    (outcome,) = await grade_remote(settings, ONE, lookup=Changing(addresses))
    assert (outcome.status, outcome.outcome) == ("error", "unreachable")
    assert said in outcome.error


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """The name is asked once for a connection; a second answer is never used."""
    with faulty(graded) as server:
        names, url = Changing(["127.0.0.1"], ["192.0.2.1"]), named(server)
        (outcome,) = await grade_remote(
            EndpointSettings(url=url, allow_internal=True, retries=0), ONE, lookup=names
        )
        assert outcome.score == 0.5
        assert len(names.asked) == 1
        assert server.asked[0].headers["host"] == url.removeprefix("http://")


async def test_dns_rebinding_gains_nothing() -> None:
    """A name that was public when first asked and is loopback at the next try stays uncalled."""

    async def no_wait(seconds: float) -> None:
        return

    with faulty(graded) as server:
        names = Changing([], ["127.0.0.1"])  # no address at first: tried again
        settings = EndpointSettings(url=named(server), retries=2)
        (outcome,) = await grade_remote(settings, ONE, lookup=names, timing=Timing(sleep=no_wait))
        assert outcome.status == "error"
        assert "127.0.0.1, a loopback address" in outcome.error
        assert len(names.asked) == 2
        assert server.asked == []


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with faulty(graded) as proxy, faulty(graded) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        settings = EndpointSettings(url=server.url, allow_internal=True)
        (outcome,) = await grade_remote(settings, ONE)
        assert outcome.score == 0.5
        assert proxy.asked == []
