"""The wire forms of graders behind HTTP: assay's own, Adaptive's, OpenRLHF's and NeMo Gym's."""

from __future__ import annotations

from collections.abc import Mapping

from assay.graders.endpoints.forms import adaptive, native, nemo_gym, openrlhf
from assay.graders.endpoints.forms.form import WireForm
from assay.graders.endpoints.settings import Protocol

__all__ = ["FORMS", "base_url"]

FORMS: Mapping[Protocol, WireForm] = {
    "assay": native.FORM,
    "adaptive": adaptive.FORM,
    "openrlhf": openrlhf.FORM,
    "nemo_gym": nemo_gym.FORM,
}
"""Every wire form by its name."""


def base_url(url: str, form: WireForm) -> str:
    """An endpoint's URL without the route, if it was written with it."""
    trimmed = url.rstrip("/")
    for each in form.each():
        if trimmed.endswith(each.route):
            return trimmed.removesuffix(each.route)
    return trimmed
