"""From the names of tools to kinds of work, the same for every harness."""

from __future__ import annotations

import re
from collections.abc import Mapping

from assay.types.steps import ToolKind

__all__ = ["tool_kind"]

_KINDS: Mapping[ToolKind, str] = {
    "read": "read notebookread readfile viewfile openfile cat view readmanyfiles",
    "write": "write edit multiedit notebookedit writefile writetofile createfile editfile "
    "applypatch patch replace strreplace strreplaceeditor insertcontent deletefile applydiff",
    "execute": "shell exec execute executebash executecommand execcommand runcommand "
    "runshellcommand runterminalcmd terminal python ipython executepython runpython "
    "executeipythoncell localshell localshellcall",
    "search": "glob grep ls search searchfiles searchfilecontent codebasesearch filesearch "
    "grepsearch find findfiles listdir listdirectory listfiles ripgrep",
    "fetch": "fetch httprequest browse browser openurl curl googlewebsearch fetchurl",
}
_BY_NAME: Mapping[str, ToolKind] = {
    name: kind for kind, names in _KINDS.items() for name in names.split()
}
_PUNCTUATION = re.compile(r"[^a-z0-9]")


def tool_kind(name: str) -> ToolKind:
    """The kind of work that a tool of this name does, as far as names tell; else ``other``."""
    plain = _PUNCTUATION.sub("", name.lower())
    if plain.startswith("bash"):
        return "execute"
    if plain.startswith("web"):
        return "fetch"
    return _BY_NAME.get(plain, "other")
