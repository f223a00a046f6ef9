"""Environments: templates that mint tasks, and typed answers."""

from assay.environment.answer import Answer
from assay.environment.environment import Environment
from assay.environment.state import Resource, State
from assay.environment.template import Template
from assay.types.run import Observation

__all__ = ["Answer", "Environment", "Observation", "Resource", "State", "Template"]
