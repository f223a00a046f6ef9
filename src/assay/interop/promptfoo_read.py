"""Read a configuration of promptfoo: its prompts, providers and tests, with where each stands.

It is data from anyone. No code that it names is run, nothing is fetched, no file outside of its
directory is read, and of templates only names of variables are filled in. What is not understood
is left, and listed.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.documents import Document, parse_document, read_text
from assay.errors import InputError, Location
from assay.graders.openai.rewards import FaultError
from assay.graders.openai.template import TemplateScope, parse_template
from assay.models.reference import parse_reference
from assay.scoring.json_safe import Json
from assay.types import codec
from assay.types.codec import Problem

MOST_CASES = 5_000
"""Cases that one configuration may become: lists of variables multiply."""

_CODE = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".sh")
_DATA = (".yaml", ".yml", ".json")
_PROMPTS = (*_CODE, *_DATA, ".txt", ".md", ".j2", ".jsonl", ".csv")
_NAME = re.compile(r"\{\{\s*([A-Za-z_]\w*(?:\.\w+|\[\d+\])*)\s*\}\}")
_OUTSIDE = "it lies outside of the configuration's directory"
_NO_CODE = "it is code, and nothing is run at an import"

_CARRIED = frozenset({"prompts", "providers", "targets", "tests", "scenarios", "defaultTest"})
_NO_MATTER = frozenset(
    {
        "$schema",
        "assertionTemplates",
        "commandLineOptions",
        "description",
        "evaluateOptions",
        "metadata",
        "outputPath",
        "sharing",
        "tags",
        "writeLatestResults",
    }
)
"""What changes no grade: how it was run, shown and shared over there."""

_PROVIDERS = (
    ("openai:responses:", "openai:"),
    ("openai:chat:", "openai:"),
    ("openai:completion:", ""),
    ("openai:embedding:", ""),
    ("openai:", "openai:"),
    ("anthropic:messages:", "anthropic:"),
    ("anthropic:completion:", ""),
    ("anthropic:", "anthropic:"),
    ("google:", "google:"),
    ("ollama:chat:", "http://localhost:11434/v1#"),
    ("ollama:completion:", ""),
    ("ollama:embeddings:", ""),
    ("ollama:", "http://localhost:11434/v1#"),
)
"""How models are named over there, and here; "" for what answers no conversation."""


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """A value of a document, and where it stands.

    Attributes:
        value: The value.
        document: The document.
        path: Where in it.
        parts: Of a set of assertions, the assertions.
    """

    value: Json
    document: Document
    path: codec.Path = ()
    parts: tuple[ConfigPart, ...] = ()

    @property
    def place(self) -> Location:
        """Where it stands."""
        return self.document.locate(Problem(self.path, ""))

    def get(self, name: str) -> ConfigPart | None:
        """A field of a mapping; None where it is not there, or null."""
        found = self.value.get(name) if isinstance(self.value, dict) else None
        return None if found is None else ConfigPart(found, self.document, (*self.path, name))

    def fields(self) -> Iterator[tuple[str, ConfigPart]]:
        """The fields of a mapping."""
        for name in self.value if isinstance(self.value, dict) else ():
            if (found := self.get(name)) is not None:
                yield name, found

    def items(self) -> list[ConfigPart]:
        """The items of a list; what is no list is an item itself."""
        if not isinstance(self.value, list):
            return [self]
        return [ConfigPart(one, self.document, (*self.path, n)) for n, one in enumerate(self.value)]

    def but(self, value: Json) -> ConfigPart:
        """Another value in the same place."""
        return replace(self, value=value)


@dataclass(frozen=True, slots=True)
class Left:
    """What is not carried over, and what to write instead.

    Attributes:
        place: Where it stands.
        what: What it is.
        hint: What to write instead.
        is_note: Whether nothing has to be written: it is of how work is done, not of its grading.
    """

    place: Location
    what: str
    hint: str = ""
    is_note: bool = False

    def __str__(self) -> str:
        said = f"{self.place}: {self.what}{f' ({self.hint})' if self.hint else ''}"
        return f"note: {said}" if self.is_note else said


@dataclass(frozen=True, slots=True)
class PromptText:
    """A prompt: a template, and what it is called."""

    raw: str
    label: str
    place: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptfooTest:
    """A test with one value for each variable, what `defaultTest` and scenarios say among it.

    Attributes:
        place: Where it stands.
        variables: By name, with no template in them.
        asserts: The assertions, each as it is written.
        options: What else it says, by name.
        description: What it is called.
        threshold: Score from which it passes; without one every assertion has to.
        missing: Assertions that could not be read.
    """

    place: Location
    variables: Mapping[str, Json]
    asserts: Sequence[ConfigPart]
    options: Mapping[str, ConfigPart]
    description: str = ""
    threshold: float | None = None
    missing: Sequence[Left] = ()


@dataclass(slots=True)
class Config:
    """What a configuration says.

    Attributes:
        file: The file.
        prompts: The prompts.
        models: Models as they are named here.
        providers: What providers are called over there, each with the model here, or "".
        tests: The tests.
        repeat: How often each is run.
        left: What is not carried over.
        results: A file of results that lies beside it; "" for none.
    """

    file: str
    prompts: list[PromptText] = field(default_factory=list[PromptText])
    providers: dict[str, str] = field(default_factory=dict[str, str])
    tests: list[PromptfooTest] = field(default_factory=list[PromptfooTest])
    repeat: int = 1
    left: list[Left] = field(default_factory=list[Left])
    results: str = ""

    @property
    def models(self) -> list[str]:
        """The models as they are named here."""
        return [name for name in dict.fromkeys(self.providers.values()) if name]


def read_config(file: str) -> Config:
    """Read a configuration and the files that it names.

    Raises:
        InputError: For one that cannot be read, with file and line.
    """
    return _Reading(file).config


def rendered(text: str, variables: Mapping[str, Json]) -> str:
    """A template with its variables filled in.

    Raises:
        InputError: For a variable that is not there, or a template that does more than name one.
    """
    if "{%" in text or "{#" in text:
        raise InputError("it has a block of Nunjucks", hint=_ONLY_NAMES)
    if "{{" not in text:
        return text
    named = _NAME.sub(r"{{ item.\1 }}", text)
    try:
        return parse_template(named).render(TemplateScope(dict(variables), {}))
    except FaultError as error:
        message = error.message.replace("item.", "")
        raise InputError(message, hint="give it among 'vars'") from error
    except InputError as error:
        raise InputError("it does more than name a variable", hint=_ONLY_NAMES) from error


_ONLY_NAMES = "only {{ name }} and {{ name.field[0] }} are filled in: write the text out"


def variable_of(text: Json) -> str:
    """The variable that a template is nothing but; "" for any other value."""
    found = _NAME.fullmatch(text.strip()) if isinstance(text, str) else None
    return found[1] if found and found[1].isidentifier() else ""


class _Reading:
    def __init__(self, file: str) -> None:
        path = Path(file)
        if path.suffix in _CODE:
            raise InputError(f"{file} is code, and nothing is run at an import", hint="YAML, JSON")
        document = parse_document(read_text(file), file=file)
        self.shown, self.base = path.parent, path.resolve().parent
        self.config = Config(file)
        said = ConfigPart(document.data, document)
        if not isinstance(said.value, dict):
            raise InputError("expected a mapping with prompts and tests", location=said.place)
        self.templates = said.get("assertionTemplates")
        for name, part in said.fields():
            if name not in _CARRIED | _NO_MATTER:
                self.leave(part, f"{name!r} has no counterpart here", _HINTS.get(name, ""))
        self._prompts(said)
        for name in ("providers", "targets"):
            if (listed := said.get(name)) is not None:
                self._providers(listed)
        repeat = said.get("evaluateOptions")
        repeat = repeat.get("repeat") if repeat else None
        if repeat and isinstance(repeat.value, int) and 1 <= repeat.value <= 1_000:
            self.config.repeat = repeat.value
        self._tests(said)
        written = said.get("outputPath")
        names = [str(one.value) for one in written.items()] if written else []
        for name in (*names, "results.json"):
            if Path(name).name == name and name.endswith(".json") and (self.base / name).is_file():
                self.config.results = str(self.shown / name)

    def leave(self, said: ConfigPart, what: str, hint: str = "", *, is_note: bool = False) -> None:
        """List something that is not carried over."""
        self.config.left.append(Left(said.place, what, hint, is_note))

    # --- files ---

    def _files(self, said: ConfigPart, name: str) -> list[str]:
        """The files that a name or pattern means, all of them below the configuration's directory.

        What cannot be read from there is listed.
        """
        name = name.removeprefix("file://")
        why, found = "", list[Path]()
        try:
            if re.match(r"[a-z]+:", name) or Path(name).is_absolute() or ".." in Path(name).parts:
                why = _OUTSIDE
            else:
                plain = not re.search(r"[*?\[]", name)
                found = [self.base / name] if plain else sorted(self.base.glob(name))
                inside = all(path.resolve().is_relative_to(self.base) for path in found)
                is_there = found and all(path.is_file() for path in found)
                why = _OUTSIDE if not inside else "" if is_there else "there is no such file"
        except (OSError, ValueError, RuntimeError) as error:
            why = str(error)
        if why:
            self.leave(said, f"{name[:200]}: {why}", "copy it beside the configuration")
            return []
        return [str(self.shown / path.relative_to(self.base)) for path in found]

    def included(self, said: ConfigPart) -> Iterator[ConfigPart]:
        """What ``file://`` names in place of a value, as data or text; else the value itself."""
        name = said.value
        if not (isinstance(name, str) and name.startswith("file://")):
            yield said
            return
        for file in self._files(said, name):
            if Path(file).suffix in _CODE:
                self.leave(said, f"{file}: {_NO_CODE}", "write what it makes into a file")
                continue
            try:
                yield from _read(file)
            except InputError as error:
                self.leave(said, f"it cannot be read: {error}")

    # --- prompts and providers ---

    def _prompts(self, config: ConfigPart) -> None:
        listed = config.get("prompts")
        if listed is None:
            first = PromptText("{{prompt}}", "{{prompt}}", config.place)
            self.config.prompts.append(first)
            return
        for said in listed.items():
            self._prompt(said)

    def _prompt(self, said: ConfigPart) -> None:
        raw, label = said, ""
        if isinstance(said.value, dict):
            told = said.get("raw") or said.get("prompt") or said.get("id")
            if told is None:
                return self.leave(said, "a prompt without 'raw'")
            label, raw = str(said.value.get("label") or ""), told
        text = raw.value
        if not isinstance(text, str):
            return self.leave(raw, "a prompt is a text, or a file", "file://chat.json")
        is_path = text.startswith("file://") or (
            "\n" not in text and "{{" not in text and Path(text).suffix in _PROMPTS
        )
        if not is_path:
            self.config.prompts.append(PromptText(text, label or text, raw.place))
            return None
        for file in self._files(raw, text.rpartition(":")[0] if ".py:" in text else text):
            if Path(file).suffix in _CODE:
                self.leave(raw, f"{file}: {_NO_CODE}", "write the prompt out")
                continue
            whole = read_text(file)
            pieces = [whole]
            if file.endswith(".txt"):
                pieces = re.split(r"(?m)^---[ \t]*\r?$", whole)
            elif file.endswith(".csv"):
                pieces = [str(row.get("prompt") or "") for _, row in _table(whole, file)]
            elif file.endswith(".jsonl"):
                pieces = whole.split("\n")
            for piece in filter(None, map(str.strip, pieces)):
                self.config.prompts.append(PromptText(piece, label or piece, Location(file=file)))
        return None

    def _providers(self, listed: ConfigPart) -> None:
        for outer in listed.items():
            for said in (one for part in self.included(outer) for one in part.items()):
                name, told = provider_of(said)
                model = model_of(name)
                self.config.providers[str(told.get("label") or name)] = model
                self.config.providers.setdefault(name, model)
                if not model and name != "echo":
                    hint = "name a model or a harness with --model or --harness"
                    what = f"the provider {name[:100]!r} is none of assay's"
                    self.leave(said, what, hint, is_note=True)
                if isinstance(settings := told.get("config"), dict) and settings:
                    names = ", ".join(list(settings)[:8])
                    what = f"settings of {name[:100]}: {names}"
                    self.leave(said, what, "see docs/agents.md#models", is_note=True)

    # --- tests ---

    def _tests(self, config: ConfigPart) -> None:
        layers: list[list[ConfigPart]] = []
        default = config.get("defaultTest")
        beneath = list(self.included(default))[:1] if default else []
        listed = config.get("tests")
        layers += [[*beneath, said] for said in (self._listed(listed) if listed else ())]
        scenarios = config.get("scenarios")
        for scenario in self._listed(scenarios) if scenarios else ():
            with_, tests = scenario.get("config"), scenario.get("tests")
            for one in self._listed(with_) if with_ else ():
                layers += [[*beneath, one, t] for t in (self._listed(tests) if tests else ())]
        if listed is None and scenarios is None:
            layers.append(beneath or [config.but({})])
        for each in layers:
            self._test(each)
            if len(self.config.tests) * max(1, len(self.config.prompts)) > MOST_CASES:
                message = f"it becomes more than {MOST_CASES} cases"
                raise InputError(message, location=each[-1].place, hint="fewer variables' values")

    def _listed(self, listed: ConfigPart) -> list[ConfigPart]:
        """The tests of a list, and of the files that are named in it or instead of it."""
        found: list[ConfigPart] = []
        for outer in listed.items():
            value = outer.value
            if isinstance(value, dict) and isinstance(value.get("path"), str):
                self.leave(outer, f"{value['path']}: {_NO_CODE}", "write the tests into a file")
                continue
            if isinstance(value, str):
                if re.match(r"(?!file:)[a-z]+://", value):
                    self.leave(outer, f"{value[:200]}: nothing is fetched", "save it as a file")
                    continue
                value = value.rpartition(":")[0] if ".py:" in value else value
                value = f"file://{value.removeprefix('file://')}"
            for said in self.included(outer.but(value)):
                is_row = said.document.file.endswith(".csv")
                found += [_of_row(said)] if is_row else said.items()
        for said in found:
            if not isinstance(said.value, dict):
                self.leave(said, "a test is a mapping")
        return [said for said in found if isinstance(said.value, dict)]

    def _test(self, layers: Sequence[ConfigPart]) -> None:
        own = layers[-1]
        variables: dict[str, list[Json]] = {}
        options: dict[str, ConfigPart] = {}
        asserts: list[ConfigPart] = []
        missing: list[Left] = []
        for said in layers:
            expands = not _truth(said, "options", "disableVarExpansion")
            if (given := said.get("vars")) is not None:
                for part in (p for one in given.items() for p in self._with_files(one)):
                    for name, value in part.fields():
                        variables[name] = self._values(value, expands=expands)
            if said is own and len(layers) > 1 and _truth(own, "options", "disableDefaultAsserts"):
                asserts.clear()
            if (listed := said.get("assert")) is not None:
                before = len(self.config.left)
                asserts += self._assertions(listed)
                missing += self.config.left[before:]
            options |= {n: v for n, v in said.fields() if n not in ("vars", "assert", "options")}
            inner = said.get("options")
            options |= dict(inner.fields()) if inner else {}
        for value in ("transformVars", "storeOutputAs"):
            if value in options:
                self.leave(options[value], f"{value!r} of a test: {_NO_CODE}")
        if math.prod(map(len, variables.values())) > MOST_CASES:
            message = f"its variables multiply to more than {MOST_CASES} tests"
            raise InputError(message, location=own.place, hint="fewer values of each")
        for values in itertools.product(*variables.values()):
            raw = dict(zip(variables, values, strict=True))
            try:
                filled = {
                    name: rendered(value, raw) if isinstance(value, str) else value
                    for name, value in raw.items()
                }
            except InputError as error:
                self.leave(own, f"a variable: {error.message}", error.hint)
                continue
            self.config.tests.append(
                PromptfooTest(
                    place=own.place,
                    variables=filled,
                    asserts=asserts,
                    options=options,
                    description=str(options["description"].value)
                    if "description" in options
                    else "",
                    threshold=number_of(options.get("threshold")),
                    missing=missing,
                )
            )

    def _with_files(self, said: ConfigPart) -> Iterator[ConfigPart]:
        """Variables, or the files that have them."""
        if isinstance(said.value, str):
            said = said.but(f"file://{said.value.removeprefix('file://')}")
        yield from self.included(said)

    def _values(self, said: ConfigPart, *, expands: bool) -> list[Json]:
        """The values of a variable: several of a list of texts, or of files."""
        listed = isinstance(said.value, list) and said.value and isinstance(said.value[0], str)
        several = said.items() if expands and listed else [said]
        found: list[Json] = []
        for one in several:
            for part in self.included(one):
                data = part.value
                is_file = part is not one
                found.append(json.dumps(data) if is_file and not isinstance(data, str) else data)
        return found

    def _referred(self, said: ConfigPart) -> ConfigPart:
        """The template of an assertion that is named in its place."""
        name = said.value.get("$ref") if isinstance(said.value, dict) else None
        if not isinstance(name, str) or self.templates is None:
            return said
        return self.templates.get(name.removeprefix("#/assertionTemplates/")) or said

    def _assertions(self, listed: ConfigPart) -> list[ConfigPart]:
        """Assertions, with what files and templates say of them in place of their names."""
        found: list[ConfigPart] = []
        for said in (self._referred(s) for part in self.included(listed) for s in part.items()):
            data, value, inner = said.value, said.get("value"), said.get("assert")
            if not isinstance(data, dict) or not isinstance(data.get("type"), str):
                self.leave(said, "an assertion is a mapping with a 'type'")
            elif inner is not None:
                found.append(replace(said, parts=tuple(self._assertions(inner))))
            elif value is None or not str(value.value).startswith("file://"):
                found.append(said)
            elif ".py" in (name := str(value.value)) and data["type"] in ("python", "not-python"):
                file, _, function = name.partition(".py")
                for path in self._files(value, f"{file}.py"):
                    code: Json = {"source": read_text(path), "function": function.lstrip(":")}
                    found.append(said.but({**data, "value": None, **code}))
            elif data["type"] == "javascript":
                found.append(said)  # refused by its name, with what to write
            else:
                found += [said.but({**data, "value": p.value}) for p in self.included(value)]
        return found


_HINTS = {
    "redteam": "assay grades work, and attacks its graders: assay attack",
    "extensions": _NO_CODE,
    "nunjucksFilters": _NO_CODE,
    "derivedMetrics": "a grader's 'name' is its metric; --by breaks a run down",
    "env": "variables of the environment are never read into cases",
}


def number_of(said: ConfigPart | None) -> float | None:
    """The number that is said; None where there is none."""
    value = said.value if said else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isinstance(value, int | float) else None


def provider_of(said: ConfigPart) -> tuple[str, Mapping[str, Json]]:
    """What a provider is called, and what is said of it."""
    value = said.value
    if isinstance(value, dict):
        if isinstance(value.get("id"), str):
            return str(value["id"]), value
        name = next(iter(value), "")
        inner = value.get(name)
        return name, inner if isinstance(inner, dict) else {}
    return str(value), {}


def model_of(provider: str) -> str:
    """A provider's model as it is named here; "" where it is none of ours."""
    for theirs, ours in _PROVIDERS:
        if provider.startswith(theirs):
            name = provider.removeprefix(theirs)
            if not ours or not name:
                return ""
            try:
                return str(parse_reference(f"{ours}{name}"))
            except InputError:
                return ""
    return ""


def _read(file: str) -> Iterator[ConfigPart]:
    """What a file holds: data, the rows of a table, or text."""
    text, suffix = read_text(file), Path(file).suffix
    if suffix in _DATA:
        document = parse_document(text, file=file)
        yield ConfigPart(document.data, document)
    elif suffix == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                data = parse_document(line, file=f"{file}:{number}").data
                yield ConfigPart(data, Document(file=file, data=data, values={(): (number, 1)}))
    elif suffix == ".csv":
        for number, row in _table(text, file):
            yield ConfigPart(row, Document(file=file, data=row, values={(): (number, 1)}))
    else:
        yield ConfigPart(text.strip(), Document(file=file, data=text, values={(): (1, 1)}))


def _truth(said: ConfigPart, *names: str) -> bool:
    here: ConfigPart | None = said
    for name in names:
        here = here.get(name) if here else None
    return here is not None and here.value is True


def _table(text: str, file: str) -> Iterator[tuple[int, dict[str, Json]]]:
    """The rows of a table, each with the line that it ends in."""
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        names = [name.strip() for name in next(rows, list[str]())]
        for cells in rows:
            if cells:
                pairs = itertools.zip_longest(names, cells, fillvalue="")
                yield rows.line_num, {name: cell for name, cell in pairs if name}
    except csv.Error as error:
        place = Location(file=file, line=rows.line_num)
        raise InputError(f"not a row of a table: {error}", location=place) from error


_SHORT = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?")
_PREFIXES = {
    "fn": "javascript",
    "eval": "javascript",
    "grade": "llm-rubric",
}
_THRESHOLD = re.compile(
    r"(answer|context)-.*|classifier|cost|latency|levenshtein|perplexity.*|rouge-n|starts-with"
)
"""Types whose threshold is 0.75 where a cell of a table says none."""


def _of_row(said: ConfigPart) -> ConfigPart:
    """A test of a table's row: columns are variables, but for those that begin with ``__``."""
    row = said.value if isinstance(said.value, dict) else {}
    test: dict[str, Json] = {}
    variables: dict[str, Json] = {}
    metadata: dict[str, Json] = {}
    asserts: list[Json] = []
    options: dict[str, Json] = {}
    for name, cell in row.items():
        text = str(cell)
        if name.startswith("__expected"):
            asserts += [_of_cell(text.strip())] if text.strip() else []
        elif name in ("__prefix", "__suffix"):
            options[name[2:]] = text
        elif name == "__threshold":
            test["threshold"] = _number(text)
        elif name.startswith("__metadata:"):
            metadata[name.removeprefix("__metadata:")] = text
        elif name == "__description":
            test["description"] = text
        elif name.startswith("__"):
            test[name] = text
        else:
            variables[name] = text
    if metric := test.pop("__metric", None):
        asserts = [{**one, "metric": metric} for one in asserts if isinstance(one, dict)]
    return said.but(
        {**test, "vars": variables, "assert": asserts, "options": options, "metadata": metadata}
    )


def _number(text: str) -> float | None:
    try:
        return float(text) if math.isfinite(float(text)) else None
    except ValueError:
        return None


def _of_cell(text: str) -> dict[str, Json]:
    """The assertion that a cell says in short: ``contains:Nairobi``, ``levenshtein(3):text``."""
    from assay.interop.promptfoo_graders import KNOWN

    if text.startswith("file://"):
        kind = "python" if ".py" in text else "javascript"
        return {"type": kind, "value": text}
    found = _SHORT.fullmatch(text)
    name = _PREFIXES.get(found[2], found[2]) if found else ""
    if found is None or name not in KNOWN:
        return {"type": "equals", "value": text}
    value: Json = (found[4] or "").strip()
    if name.endswith(("contains-any", "contains-all")):
        value = [part.strip() for part in (found[4] or "").split(",")]
    said: dict[str, Json] = {"type": f"{found[1] or ''}{name}"}
    if value:
        said["value"] = value
    if _THRESHOLD.fullmatch(name):
        said["threshold"] = float(found[3] or 0.75)
    return said
