"""Be an endpoint: serve any grader over HTTP, in the wire forms that trainers and platforms speak.

A grader as a reward server, in one call::

    from assay.endpoint import serve

    def grade(answer: str, expected: str) -> float:
        return float(answer.strip() == expected)

    serve(grade, port=8000)

Importing this costs nothing; the web framework is loaded when an app is made.
"""

from __future__ import annotations

from assay.endpoint.served import Scorer, Served, ServedOptions
from assay.endpoint.serving import app_for, router_finding, router_for, serve, serve_wire

__all__ = [
    "Scorer",
    "Served",
    "ServedOptions",
    "app_for",
    "router_finding",
    "router_for",
    "serve",
    "serve_wire",
]
