"""What a makefile can be asked for, makes and includes, read without running it.

Lines are read one by one. All branches of conditionals are taken, a variable has every value that
it is given anywhere, and targets are expanded with them, word by word: references, substitutions
and the functions below. What only make can tell is left out: ``$(shell ...)``, ``$(foreach ...)``,
``$(call ...)``, ``$(eval ...)``, what a wildcard finds, what the environment says, and which files
are made by pattern rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product
from posixpath import normpath

_MOST_WORDS = 200_000
_LONGEST_WORD = 512
_DEEPEST = 20
_MOST_INCLUDED = 100

_CONTINUED = re.compile(r"[ \t]*\\\n[ \t]*")
_COMMENT = re.compile(r"(?<!\\)#.*")
_REFERENCE = re.compile(r"\$(?:\(([^(){}$]*)\)|\{([^(){}$]*)\}|([^(){}$\s]))")
_HIDDEN = re.compile(r"\0(\d+)\0")
_MODIFIERS = re.compile(r"(?:(?:export|unexport|override|private)\s+)*")
_CONDITIONAL = re.compile(r"(?:ifn?eq|ifn?def|else|endif)\b(?!\s*[:=])")
_ASSIGNMENT = re.compile(r"([^\s:=]+?)\s*([+?!]|:{1,3})?=\s*(.*)")
_DEFINE = re.compile(r"define\s+([^\s:=+?]+)")
_INCLUDE = re.compile(r"[-s]?include\s+(.+)")
_SUBSTITUTION = re.compile(r"([^\s:=]+):([^=]*)=(.*)")
_UNKNOWN_FILES = re.compile(r"\.d\b|[\0*?]")
_NO_RULE = re.compile(r"(?:vpath|undefine|-?load)\s")
_MAKES_DIRECTORY = re.compile(r"(?:(?:test|\[)\s[^;&|<>`]*\|\|\s*)?mkdir\s[^;&|<>`]*")
_SPECIAL = re.compile(r"\.[A-Z_]+")
_FILE = re.compile(r"(?!/)[^\s$%&*?\[\]|\1]+")


def make_targets(makefile: str, read: Callable[[str], str] = lambda _: "") -> frozenset[str]:
    """What a makefile can be asked for: plain words, such as ``test``, and files that it makes.

    If a file of that name exists, make has nothing to do and ends well, unless the file is older
    than what it is made of. Two are left out, because nothing is earned by their being there: a
    word that is ``.PHONY`` in any case, and a target for which only a directory is made. With them
    are the files of dependencies that a compiler wrote, if the makefile includes such: they could
    say anything that it can.

    Args:
        makefile: Its text.
        read: Gives the text of a file that it includes, or "" if there is none. Asked for every
            one, by its path from the makefile's directory, which may have wildcards in it.
    """
    reader = _Reader(read)
    reader.take(makefile, surely=True)
    return reader.targets()


class _Reader:
    """Gathers the variables and rules of a makefile and of those that it includes."""

    def __init__(self, read: Callable[[str], str]) -> None:
        self._read = read
        self._references: list[str] = []
        self._values = {"CURDIR": ["."], "PWD": ["."], "MAKEFILE_LIST": ["Makefile"]}
        self._surely_set = {*self._values}
        self._rules: list[tuple[str, list[str]]] = []
        self._phony: set[str] = set()
        self._included: set[str] = set()
        self._dependencies: set[str] = set()
        self._words_left = _MOST_WORDS

    def take(self, text: str, *, surely: bool) -> None:
        """Read a makefile; not surely if it may not be included."""
        text = text.replace("\r\n", "\n").replace("\0", "")
        lines = iter(_CONTINUED.sub(" ", text).split("\n"))
        conditions = 0 if surely else 1
        recipe: list[str] | None = None  # of the rule that the next lines may belong to
        for raw in lines:
            if recipe is not None and raw.startswith("\t"):
                recipe.append(raw)
                continue
            hidden = _COMMENT.sub("", self._hide(raw)).strip()
            line = _MODIFIERS.sub("", hidden, count=1)
            if not line:
                continue
            if _CONDITIONAL.match(line):
                conditions += line.startswith("if") - line.startswith("endif")
            elif defined := _DEFINE.match(line):
                recipe = None
                self._assign(defined[1], " ".join(self._definition(lines)), surely=conditions == 0)
            elif assigned := _ASSIGNMENT.match(line):
                recipe = None
                value = self._hide("$(shell :)") if assigned[2] == "!" else assigned[3]
                for name in self._words(assigned[1]):
                    self._assign(name, value, surely=conditions == 0)
            elif included := _INCLUDE.match(line):
                recipe = None
                self._include(included[1], surely=conditions == 0)
            elif ":" in line and not _NO_RULE.match(line):
                recipe = self._rule(line, surely=conditions == 0)

    def targets(self) -> frozenset[str]:
        """What the rules make and can be asked for."""
        made: dict[str, set[str]] = {}
        for targets, recipe in self._rules:
            outcome = _outcome(recipe)
            for word in self._words(targets):
                if _FILE.fullmatch(word) and not _SPECIAL.fullmatch(word):
                    made.setdefault(normpath(word), set()).add(outcome)
        found = {
            target
            for target, outcomes in made.items()
            if "file" in outcomes or ("directory" not in outcomes and not {".", "/"} & set(target))
        }
        return frozenset((found - self._phony | self._dependencies) - {"."})

    def _hide(self, line: str) -> str:
        """A line with a number in place of each reference, so that it has no signs of its own."""

        def number(match: re.Match[str]) -> str:
            self._references.append(match[1] or match[2] or match[3] or "")
            return f"\0{len(self._references) - 1}\0"

        line = line.replace("$$", "\1")
        for _ in range(_DEEPEST):
            line, more = _REFERENCE.subn(number, line)
            if not more:
                break
        return line

    def _definition(self, lines: Iterator[str]) -> Iterator[str]:
        nested = 1
        for raw in lines:
            word = raw.split(maxsplit=1)[:1]
            nested += (word == ["define"]) - (word == ["endef"])
            if nested == 0:
                return
            yield self._hide(raw)

    def _assign(self, name: str, value: str, *, surely: bool) -> None:
        self._values.setdefault(name, []).append(value)
        if surely:
            self._surely_set.add(name)

    def _include(self, names: str, *, surely: bool) -> None:
        if _UNKNOWN_FILES.search(names):
            self._dependencies.add("**/*.d")
        for word in self._words(names):
            name = normpath(word)
            if word and name not in self._included and len(self._included) < _MOST_INCLUDED:
                self._included.add(name)
                self.take(self._read(name), surely=surely)

    def _rule(self, line: str, *, surely: bool) -> list[str] | None:
        """The recipe of a rule so far; nothing where a target only has a variable of its own."""
        targets, _, rest = line.partition(":")
        needed, inline, command = rest.lstrip(":").partition(";")
        if _ASSIGNMENT.match(_MODIFIERS.sub("", needed.strip(), count=1)):
            return None
        if surely and targets.strip() == ".PHONY":
            self._phony.update(needed.split())  # but for references: not all their values may be
        recipe = [command] if inline else []
        self._rules.append((targets.rstrip().removesuffix("&"), recipe))
        return recipe

    def _words(self, text: str, deepest: int = _DEEPEST) -> list[str]:
        """The words of a text, with every word that a reference in them may stand for."""
        found: list[str] = []
        for word in text.split():
            whole = [""]
            for place, part in enumerate(_HIDDEN.split(word)):
                others = self._meant(self._references[int(part)], deepest) if place % 2 else [part]
                whole = self._each(_FUNCTIONS["addprefix"][1], [""], whole, others)
            found += whole
        return found

    def _each(self, apply: Callable[[str, str, str], str], *lists: list[str]) -> list[str]:
        """What a function makes of each combination of words, as far as they may be so many."""
        chosen = list(islice(product(*lists), max(0, self._words_left)))
        self._words_left -= len(chosen)
        return [word for words in chosen if len(word := apply(*words)) <= _LONGEST_WORD]

    def _meant(self, reference: str, deepest: int) -> list[str]:
        """The words that a reference may stand for; none if that cannot be told."""
        self._words_left -= 1
        if deepest == 0 or self._words_left < 0:
            return []
        function, *given = reference.strip().split(maxsplit=1)[:2] or [""]
        if given:
            count, apply = _FUNCTIONS.get(function, (0, _patsubst))
            texts = given[0].split(",", max(0, count - 1))
            if len(texts) != count:
                return []
            lists = [self._words(one, deepest - 1) if one.strip() else [""] for one in texts]
            lists[-1] = [word for word in lists[-1] if word]
            return self._each(apply, *[[""]] * (3 - count), *lists)
        substitution = _SUBSTITUTION.fullmatch(function)
        names = self._words(substitution[1] if substitution else function, deepest - 1)
        values = [value for name in names for value in self._value(name, deepest - 1)]
        if not substitution:
            return values
        old, new = substitution[2], substitution[3]
        old, new = (old, new) if "%" in old else (f"%{old}", f"%{new}")
        old, new = ("".join(self._words(one, deepest - 1)[:1]) for one in (old, new))
        return self._each(_patsubst, [old], [new], [value for value in values if value])

    def _value(self, name: str, deepest: int) -> Iterator[str]:
        for text in self._values.get(name, ()):
            yield from self._words(text, deepest) if text else [""]
        if name not in self._surely_set:
            yield ""


def _outcome(recipe: list[str]) -> str:
    """What a recipe makes: a ``file`` for all that is known, or a ``directory``, or nothing."""
    commands = [line.strip().lstrip("@-+ \t") for line in recipe]
    commands = [command for command in commands if command and not command.startswith("#")]
    if all(map(_MAKES_DIRECTORY.fullmatch, commands)):
        return "directory" if commands else ""
    return "file"


def _patsubst(pattern: str, new: str, word: str) -> str:
    before, wild, after = pattern.partition("%")
    if not wild:
        return new if word == pattern else word
    if len(word) < len(before + after) or not (word.startswith(before) and word.endswith(after)):
        return word
    return new.replace("%", word[len(before) : len(word) - len(after)], 1)


_FUNCTIONS: Mapping[str, tuple[int, Callable[[str, str, str], str]]] = {
    "addprefix": (2, lambda _, prefix, word: prefix + word),
    "addsuffix": (2, lambda _, suffix, word: word + suffix),
    "basename": (1, lambda _, __, word: re.sub(r"\.[^./]*\Z", "", word)),
    "dir": (1, lambda _, __, word: f"{word.rpartition('/')[0] or '.'}/"),
    "filter": (2, lambda _, pattern, word: "" if _patsubst(pattern, "", word) else word),
    "filter-out": (2, lambda _, pattern, word: _patsubst(pattern, "", word)),
    "notdir": (1, lambda _, __, word: word.rpartition("/")[2]),
    "patsubst": (3, _patsubst),
    "subst": (3, lambda old, new, word: word.replace(old, new) if old else word),
    # A wildcard as it stands: a target with one is left out, and an include with one is a pattern.
    **dict.fromkeys(
        ("abspath", "firstword", "lastword", "realpath", "sort", "strip", "wildcard"),
        (1, lambda _, __, word: word),
    ),
}
"""How many arguments a function has, and what it makes of each word of the last one."""
