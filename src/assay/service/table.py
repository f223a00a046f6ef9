"""The table of operations, whole: whoever writes a new file of them names it here."""

from importlib import import_module

from assay.service.operation import OPERATIONS

__all__ = ["OPERATIONS"]

_FILES = (
    "graders trials datasets jobs scores traces kinds uses runs compare labels calibrations cells "
    "site"
)

for _file in _FILES.split():
    import_module(f"assay.service.{_file}")
