"""The Python SDK: graders, datasets, jobs and scores, on a server or on a store of one's own."""

from assay.client.clients import AsyncClient, Client
from assay.client.errors import ApiError, ArgumentError, AuthError, ServerError, UnreachableError
from assay.client.graders import Grades
from assay.service.data import Results
from assay.service.graders import Calibration
from assay.service.pages import Page

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
