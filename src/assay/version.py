"""Which version of assay this is."""

__version__ = "0.1.0"
