"""The Python SDK: graders, datasets, jobs and scores, on a server or on a store of one's own."""

from assay.client.clients import AsyncClient, Client
from assay.client.errors import ApiError, ArgumentError, AuthError, ServerError, UnreachableError
from assay.client.graders import Grades
from assay.service.graders import Calibration
from assay.service.jobs import ResultPage
from assay.store.pages import Page

__all__ = [
    "ApiError",
    "ArgumentError",
    "AsyncClient",
    "AuthError",
    "Calibration",
    "Client",
    "Grades",
    "Page",
    "ResultPage",
    "ServerError",
    "UnreachableError",
]
