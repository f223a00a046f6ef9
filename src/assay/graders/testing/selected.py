"""Which hidden tests of Go, Rust, Jest and the like a command runs at all, by its own words.

What is run for nobody is missed of nobody: a test that ``-run`` leaves out, a package that is not
named, a file whose build constraint does not hold. And no canary is planted there: it would never
be heard. Each question has three answers: yes, no, and None where that cannot be told. There the
canary tells: if it is not heard, nothing that the report says of that file counts.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Protocol

from assay.frozen import frozen
from assay.graders.conditions import all_of, any_of, condition
from assay.graders.testing.commands import Invocation
from assay.graders.testing.hidden import Language, language_of
from assay.graders.testing.static_ids import GO_HERE, cfg_of_file

_STARTS = re.compile(r"(?:go|cargo)(?:\s+\+\S+)?\s+test\b")
_GO_VALUED = frozenset((
    "-C", "-asmflags", "-bench", "-benchtime", "-blockprofile", "-buildmode",
    "-count", "-covermode", "-coverpkg", "-coverprofile", "-cpu", "-cpuprofile",
    "-exec", "-fuzz", "-fuzztime", "-gcflags", "-installsuffix", "-ldflags", "-list",
    "-memprofile", "-mod", "-modfile", "-mutexprofile", "-o", "-outputdir",
    "-overlay", "-p", "-parallel", "-pkgdir", "-run", "-shuffle", "-skip", "-tags",
    "-timeout", "-toolexec", "-trace", "-vet",
))  # fmt: skip
_CARGO_VALUED = frozenset((
    "--bench", "--bin", "--color", "--config", "--example", "--exclude", "--features",
    "--format", "--jobs", "--logfile", "--manifest-path", "--message-format", "--package",
    "--profile", "--shuffle-seed", "--skip", "--target", "--target-dir", "--test",
    "--test-threads", "-C", "-F", "-Z", "-j", "-p",
))  # fmt: skip
_GO_SYSTEM = re.compile(
    r"aix|android|darwin|dragonfly|freebsd|hurd|illumos|ios|js|linux|nacl|netbsd|openbsd|plan9"
    r"|solaris|wasip1|windows|zos|386|amd64|arm(?:64)?|loong64|mips(?:64)?(?:le)?|ppc64(?:le)?"
    r"|riscv64|s390x|wasm"
)
_GO_TAGS = frozenset({"unix", "gc", *GO_HERE.values()})
_GO_OPEN = re.compile(r"go1\.\d+|cgo|race|[ma]san|boringcrypto|goexperiment\..*")
_RELATIVE = re.compile(r"\.\.?(?:/[\w.-]+)*/?")
_PLAIN = re.compile(r"[\w ]+")
_BY_NAME = frozenset({"-t", "--testNamePattern", "-g", "--grep", "--fgrep"})
_SCRIPT = re.compile(r"[\w./-]*(?:/[\w.-]*|\.[cm]?[jt]sx?)")


class _Selects(Protocol):
    """What one runner's words say."""

    def runs(self, path: str, text: str) -> bool | None:
        """Whether a file is one of those whose tests are run."""
        ...

    def picks(self, path: str, name: str) -> bool | None:
        """Whether a test of such a file is run."""
        ...

    def canaries(self, names: Iterable[str], name: str) -> Iterator[str]:
        """Names of a canary, one of which may be picked."""
        ...


@frozen
class Selection:
    """What the words of a command say of the tests of each language; of others, all are run."""

    by: Mapping[Language, _Selects] = field(default_factory=dict[Language, _Selects])
    # Whether Rust runs only what is ignored, whether Go leaves out what takes long, and whether
    # the words say where programs are looked for.
    ignored: bool = False
    short: bool = False
    sets_path: bool = False

    def runs(self, path: str, text: str) -> bool:
        """Whether the tests of a file are certainly run."""
        one = self._of(path)
        return one is None or one.runs(path, text) is True

    def may_run(self, path: str, text: str) -> bool:
        """Whether they are, for all that can be told."""
        one = self._of(path)
        return one is None or one.runs(path, text) is not False

    def picks(self, path: str, name: str) -> bool:
        """Whether a test of such a file certainly is, one that its author does not leave out."""
        one = self._of(path)
        return one is None or (one.picks(path, name) is True and not self.ignored)

    def canary(self, path: str, names: Iterable[str], name: str) -> str | None:
        """What a canary is called, so that it is run with those; None if nothing will do."""
        one = self._of(path)
        if one is None:
            return name
        return next((n for n in one.canaries(names, name) if one.picks(path, n) is True), None)

    def carriers(self, path: str, names: Iterable[str]) -> list[str]:
        """Tests of Go that are certainly run with all their subtests: a canary may be one."""
        go = self._of(path)
        if go is None:
            return [*names]
        if not isinstance(go, _Go) or any("/" in one for one in (*go.run, *go.skip)):
            return []
        return [name for name in names if go.picks(path, name)]

    def _of(self, path: str) -> _Selects | None:
        language = language_of(path)
        return None if language is None else self.by.get(language)


def select(
    cmd: str, invocation: Invocation, *, flags: str = "", modules: Collection[str] = ()
) -> Selection:
    """Read the words of a command.

    Args:
        cmd: The line.
        invocation: What it starts.
        flags: Further flags of Go, from the environment.
        modules: Directories that hold a module of Go's.
    """
    words = [word for word in invocation.args if not word.startswith("+")]
    program = invocation.program.rpartition("/")[2]
    several = len(_STARTS.findall(cmd)) > 1
    if program == "go" and words[:1] == ["test"] and not several:
        go = _read_go(words[1:], f"{cmd} {flags}", invocation.cwd, frozenset(modules))
        return Selection({"go": go}, short="-short" in words, sets_path="PATH=" in cmd)
    if program == "cargo" and words[:1] == ["test"] and not several:
        cargo = _read_cargo(words[1:])
        return Selection({"rust": cargo}, cargo.ignored)
    if program in ("npx", "yarn", "pnpm", "jest", "vitest", "mocha"):
        return Selection({"javascript": _read_script(words)})
    return Selection()


def _options(words: Sequence[str], valued: Collection[str]) -> Iterator[tuple[str, str]]:
    """Options with their values; what is none has no name."""
    left = [*words]
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            yield "", word
        elif equals or name not in valued:
            yield name, value
        else:
            yield name, left.pop(0) if left else ""


@frozen
class _Go:
    packages: tuple[str, ...]
    run: tuple[str, ...]
    skip: tuple[str, ...]
    tags: frozenset[str]
    # Whether the words say which tags there are, or leave that to a variable.
    is_told: bool
    # Whether it is built for another system or machine.
    is_elsewhere: bool
    cwd: str
    modules: frozenset[str]

    def runs(self, path: str, text: str) -> bool | None:
        name = PurePosixPath(path).name
        if name.startswith(("_", ".")):
            return False
        parts = [*name.removesuffix(".go").removesuffix("_test").split("_")[1:]]
        named = [part for part in parts[-2:] if _GO_SYSTEM.fullmatch(part)]
        return all_of([self._is_named(path), *map(self._holds, named), self._is_built(text)])

    def picks(self, path: str, name: str) -> bool | None:
        del path
        test = name.partition("/")[0]
        try:
            left_out = any("/" not in skip and re.search(skip, test) for skip in self.skip)
            chosen = all(re.search(run.partition("/")[0], test) for run in self.run[-1:])
        except re.error:
            return None
        return chosen and not left_out

    def canaries(self, names: Iterable[str], name: str) -> Iterator[str]:
        own = f"Test{name.capitalize()}"
        yield own
        for other in names:
            yield from (f"{other}_{name}", f"{own}_{other}")

    def _is_named(self, path: str) -> bool | None:
        return any_of([self._names(package, path) for package in self.packages or (".",)])

    def _names(self, package: str, path: str) -> bool | None:
        place, dots, _ = package.partition("...")
        if package.endswith(".go"):
            return posixpath.normpath(posixpath.join(self.cwd, package)) == path
        if not _RELATIVE.fullmatch(place):
            return None
        base = PurePosixPath(posixpath.normpath(posixpath.join(self.cwd, place)))
        directory = PurePosixPath(path).parent
        if not dots:
            return directory == base
        if not directory.is_relative_to(base):
            return False
        below = directory.relative_to(base).parts
        other = any(str(base.joinpath(*below[: n + 1])) in self.modules for n in range(len(below)))
        return not other and not any(
            part in ("testdata", "vendor") or part.startswith(("_", ".")) for part in below
        )

    def _is_built(self, text: str) -> bool | None:
        head = re.split(r"^package\s", text, maxsplit=1, flags=re.MULTILINE)[0]
        if found := re.search(r"^//go:build\s+(.*)$", head, re.MULTILINE):
            return self._says(found[1])
        lines = re.findall(r"^//\s*\+build\s+(.*)$", head, re.MULTILINE)
        said = [[self._says(" && ".join(w.split(","))) for w in line.split()] for line in lines]
        return all_of([any_of(one) for one in said])

    def _says(self, expression: str) -> bool | None:
        return condition(re.findall(r"&&|\|\||[!()]|[\w.]+", expression), self._holds)

    def _holds(self, tag: str) -> bool | None:
        if tag in self.tags:
            return True
        is_of_system = bool(_GO_SYSTEM.fullmatch(tag)) or tag in _GO_TAGS
        if (is_of_system and self.is_elsewhere) or _GO_OPEN.fullmatch(tag) or not self.is_told:
            return None
        return tag in _GO_TAGS


def _read_go(words: Sequence[str], said: str, cwd: str, modules: frozenset[str]) -> _Go:
    own = [re.sub("^--", "-", word) for word in takewhile(lambda one: one != "-args", words)]
    options = [*_options(own, _GO_VALUED)]
    tags = ",".join(re.findall(r"-tags[= ]['\"]?([^\s'\"]*)", said))
    return _Go(
        packages=tuple(value for name, value in options if not name),
        run=tuple(value for name, value in options if name in ("-run", "-test.run")),
        skip=tuple(value for name, value in options if name in ("-skip", "-test.skip")),
        tags=frozenset(tags.split(",")),
        is_told="$" not in tags,
        is_elsewhere=bool(re.search(r"\bGO(?:OS|ARCH)=", said)),
        cwd=cwd,
        modules=modules,
    )


@frozen(kw_only=True)
class _Cargo:
    filters: tuple[str, ...]
    skips: tuple[str, ...]
    exact: bool
    ignored: bool
    targets: tuple[str, ...] | None
    units: bool
    features: frozenset[str]

    def runs(self, path: str, text: str) -> bool | None:
        parts = PurePosixPath(path).with_suffix("").parts
        named: bool | None = True
        if self.targets is not None:
            at = parts.index("tests") + 1 if "tests" in parts[:-1] and "src" not in parts else 0
            globs = [target for target in self.targets if set(target) & set("*?[")]
            named = (parts[at] in self.targets or (None if globs else False)) if at else self.units
        return all_of([named, cfg_of_file(text, self.features)])

    def picks(self, path: str, name: str) -> bool | None:
        if any(skip in name for skip in self.skips):
            return False
        is_whole = "src" not in PurePosixPath(path).parts  # modules are part of a unit test's name
        if not is_whole and (self.skips or self.exact):
            return None
        chosen = name in self.filters if self.exact else any(one in name for one in self.filters)
        return chosen or not self.filters or (False if is_whole else None)

    def canaries(self, names: Iterable[str], name: str) -> Iterator[str]:
        del names
        yield name
        yield from (f"{name}_{one}" for one in self.filters if one.isidentifier())


def _read_cargo(words: Sequence[str]) -> _Cargo:
    at = words.index("--") if "--" in words else len(words)
    builds = [*_options(words[:at], _CARGO_VALUED)]
    runs = [*_options(words[at + 1 :], _CARGO_VALUED)]
    given = {name for name, _ in builds}
    flags = {name for name, _ in runs}
    chosen = given & {"--lib", "--bins", "--bin", "--test", "--example", "--examples", "--doc"}
    chosen |= given & {"--bench", "--benches"}
    every = given & {"--tests", "--all-targets"}
    features = [value for name, value in builds if name in ("-F", "--features")]
    return _Cargo(
        filters=tuple(value for name, value in [*builds, *runs] if not name),
        skips=tuple(value for name, value in runs if name == "--skip"),
        exact="--exact" in flags,
        ignored="--ignored" in flags and "--include-ignored" not in flags,
        targets=tuple(v for n, v in builds if n == "--test") if chosen and not every else None,
        units=bool(given & {"--lib", "--bins", "--bin"}),
        features=frozenset(re.split(r"[\s,]+", " ".join(features)))
        | {name for name in given if name == "--all-features"},
    )


@frozen
class _Script:
    patterns: tuple[str, ...]
    places: tuple[str, ...]

    def runs(self, path: str, text: str) -> bool | None:
        del text
        return not self.places or any(one in path for one in self.places) or None

    def picks(self, path: str, name: str) -> bool | None:
        del path
        return all(_PLAIN.fullmatch(one) and one in name for one in self.patterns) or None

    def canaries(self, names: Iterable[str], name: str) -> Iterator[str]:
        del names
        yield " ".join([name, *self.patterns])


def _read_script(words: Sequence[str]) -> _Script:
    options = [*_options(words, _BY_NAME)]
    places: list[str] = []
    for before, word in zip(["", *words], words, strict=False):
        if _SCRIPT.fullmatch(word) and not before.startswith("-"):
            places.append(posixpath.normpath(word).strip("./"))
    return _Script(
        patterns=tuple(value for name, value in options if name in _BY_NAME),
        places=tuple(place for place in places if place),
    )


def modules_of(source: str | None, files: Iterable[str]) -> set[str]:
    """Directories of some files, and of those above them, with a module of Go's of their own."""
    above = {up for path in files for up in PurePosixPath(path).parents}
    hidden = {str(PurePosixPath(path).parent) for path in files if path.endswith("go.mod")}
    return hidden | {str(up) for up in above if source and Path(source, up, "go.mod").is_file()}
