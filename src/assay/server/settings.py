"""What a server is told when it starts: its database, its limits, and what it may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.registry.policy import Permissions

__all__ = ["ServerSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of one server.

    Attributes:
        location: The store: a directory (SQLite) or ``postgresql://user:password@host:port/name``.
        is_local: Whether it listens on this machine only. Then a one-time link logs in, and
            ``/metrics`` is open.
        hosts: Names it may be called by in the ``Host`` header, besides this machine's addresses.
        endpoint_secrets: Environment variables that external endpoints may be sent, each with the
            one host it may be sent to.
        allow_custom_code: Run graders that are classes of installed Python packages.
        allow_internal_endpoints: Let external endpoints be on this machine or its network.
        max_body_bytes: Largest body of a request that is not a dataset.
        max_dataset_bytes: Largest dataset.
        max_line_bytes: Longest line of a dataset.
        max_rows: Most rows of a dataset.
        max_depth: Deepest nesting of JSON.
        job_slots: Jobs worked on at once.
        job_batch: Rows under way at a time; what is lost, and graded again, after a crash.
        lease_seconds: How long a job is this server's without a sign of life, and so how long it
            rests after a crash. The clocks of servers of one database must agree better than that.
        poll_seconds: How often waiting jobs and progress are looked for.
        heartbeat_seconds: How often a quiet stream of events says that it is alive.
        login_failures: Wrong one-time links or keys in a minute, from one address, after which the
            next wrong ones are told to wait.
    """

    location: str
    is_local: bool = True
    hosts: tuple[str, ...] = ()
    endpoint_secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    allow_custom_code: bool = False
    allow_internal_endpoints: bool = False
    max_body_bytes: int = 16 << 20
    max_dataset_bytes: int = 1 << 30
    max_line_bytes: int = 4 << 20
    max_rows: int = 1_000_000
    max_depth: int = 64
    job_slots: int = 2
    job_batch: int = 64
    lease_seconds: float = 6.0
    poll_seconds: float = 0.5
    heartbeat_seconds: float = 15.0
    login_failures: int = 20

    @property
    def permissions(self) -> Permissions:
        """What stored graders may do on this server."""
        return Permissions(
            custom_code=self.allow_custom_code,
            internal=self.allow_internal_endpoints,
            secrets=self.endpoint_secrets,
        )
