"""Which files are source code, in which language, and what the others are for, by their names."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_LANGUAGES = {
    "python": "py pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hpp hh hxx",
    "ruby": "rb",
    "other-slashes": "kt kts swift scala php cs dart m mm zig sol groovy fs d v proto",
    "other-hashes": "sh bash zsh fish pl pm r ex exs jl nim ps1 tcl awk cr",
    "haskell": "hs elm",
    "other-dashes": "sql lua adb ads vhd",
}

_BY_SUFFIX = {
    f".{suffix}": language
    for language, suffixes in _LANGUAGES.items()
    for suffix in suffixes.split()
}

_STYLES = {
    "c": "c",
    "cpp": "c",
    "rust": "rust",
    "haskell": "haskell",
    "ruby": "hashes",
    "other-hashes": "hashes",
    "other-dashes": "dashes",
}

BROUGHT_IN = frozenset(
    {
        *("__pycache__", "node_modules", "bower_components", "vendor", "third_party"),
        *("venv", "site-packages", ".git", ".venv"),
    }
)
"""Directories whose code was brought in and not written here."""

BUILT = frozenset({"dist", "build", "target", "coverage", "env"})
"""Directories whose code was built or brought in, unless the source has it."""

_TEST_DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing"})

_TEST_NAME = (
    r"(?s)test_.*|conftest\.py|.*_test\.[^.]+|.*_spec\.rb|.*\.(?:test|spec)\.[^.]+"
    r"|.*Tests?\.(?:java|kt|cs|scala|swift)"
)


_PROSE = frozenset({".txt", ".md", ".markdown", ".mdx", ".rst", ".adoc", ".org", ".log", ".text"})
_WORKING = frozenset(
    {
        *(".json", ".jsonl", ".json5", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"),
        *(".env", ".properties", ".xml", ".xsd", ".xsl", ".csv", ".tsv", ".lock", ".ipynb", ".rc"),
        *(".html", ".htm", ".css", ".scss", ".sass", ".less", ".svg", ".vue", ".svelte", ".astro"),
        *(".jinja", ".jinja2", ".j2", ".tmpl", ".tpl", ".template", ".erb", ".ejs", ".hbs"),
        *(".mako", ".mustache", ".liquid", ".pug", ".haml", ".in", ".po", ".pot", ".plist"),
        *(".tf", ".tfvars", ".hcl", ".nix", ".bzl", ".bazel", ".cmake", ".mk", ".gradle", ".sbt"),
        *(".mod", ".sum", ".gemspec", ".csproj", ".sln", ".bat", ".cmd", ".dockerfile", ".service"),
        *(".timer", ".socket", ".desktop", ".rules", ".graphql", ".gql", ".prisma", ".patch"),
    }
)
"""Suffixes of files that are no programs and no prose either: something reads and uses them."""

_WELL_KNOWN = (
    r"(?:Dockerfile|Containerfile|Makefile|Procfile|Jenkinsfile|Vagrantfile|Gemfile|Rakefile"
    r"|Brewfile|Justfile|Pipfile|Caddyfile|Tiltfile|CODEOWNERS|BUILD|WORKSPACE)(?:\.[\w-]+)?"
    r"|(?:requirements|constraints)(?:[-_.][\w-]+)?\.txt|CMakeLists\.txt|robots\.txt"
    r"|\.env(?:\.[\w-]+)?|\.[\w-]+(?:rc|ignore|attributes|modules|config|version)"
)
"""Names that say so where a suffix does not."""

_DOCUMENTS = (
    r"(?i)(?:readme|change(?:log|s)|history|news|release(?:s|[-_]notes)|licen[sc]e|copying|notice"
    r"|authors|contribut(?:ors|ing)|maintainers|security|support|code[-_]of[-_]conduct"
    r"|governance|install|upgrading|migration|roadmap)(?:\.\w+)*"
)
"""Prose that a project has by custom: a note that an agent leaves is called otherwise."""


_NAMEABLE = frozenset({"LICENSE", "README", "CHANGELOG"})


def language_of(name: str) -> str | None:
    """The programming language of a file, or None for prose, data and configuration."""
    return _BY_SUFFIX.get(PurePosixPath(name).suffix.lower())


def comment_style(language: str) -> str:
    """How a language writes comments: ``slashes``, ``hashes``, ``dashes``, or its own name."""
    return _STYLES.get(language, "slashes")


def is_test(name: str) -> bool:
    """Whether a path is that of a test by the customs of its language."""
    *directories, file = PurePosixPath(name).parts
    return (
        not _TEST_DIRECTORIES.isdisjoint(directories) or re.fullmatch(_TEST_NAME, file) is not None
    )


def is_working(path: PurePosixPath) -> bool:
    """Whether a file that is no program is used by one: settings, data, templates."""
    return path.suffix.lower() in _WORKING or re.fullmatch(_WELL_KNOWN, path.name) is not None


def is_document(path: PurePosixPath) -> bool:
    """Whether prose is what a project has by custom, not a note."""
    prose = path.suffix.lower() in _PROSE if path.suffix else path.name.isupper()
    return prose and re.fullmatch(_DOCUMENTS, path.name) is not None


def looks_like_a_file(path: PurePosixPath) -> bool:
    """Whether a name is that of a text, settings, data or a template, not any word with a dot."""
    return path.suffix.lower() in _PROSE or path.name in _NAMEABLE or is_working(path)
