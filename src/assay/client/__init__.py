"""The Python SDK: graders, datasets, jobs and scores, on a server or on a store of one's own."""

from assay.client.backend import Page
from assay.client.calibration import Calibration, Grades, Results
from assay.client.clients import AsyncClient, Client
from assay.client.errors import ApiError, ArgumentError, AuthError, ServerError, UnreachableError

__all__ = [
    "ApiError",
    "ArgumentError",
    "AsyncClient",
    "AuthError",
    "Calibration",
    "Client",
    "Grades",
    "Page",
    "Results",
    "ServerError",
    "UnreachableError",
]
