"""The table of operations, whole: whoever writes a new file of them names it here."""

from importlib import import_module

from assay.service.operation import OPERATIONS

__all__ = ["OPERATIONS"]

_FILES = (
    "site graders trials datasets jobs scores traces kinds uses runs compare labels calibrations "
    "cells"
)

_MODULES = [f"assay.service.{_file}" for _file in _FILES.split()]
for _module in _MODULES:
    import_module(_module)

# Routes are looked through, and listed, in this order, whichever file was imported first.
OPERATIONS.sort(key=lambda one: _MODULES.index(one.function.__module__))
