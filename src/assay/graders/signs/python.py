"""What Python code reaches for: frames, memory, modules of others, imports, the process."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from assay.graders.languages import is_test
from assay.graders.signs import TEST_LIBRARIES, words_of
from assay.graders.stubs.python import parse_python

N = TypeVar("N", bound=ast.AST)
Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Hit: TypeAlias = tuple[str, ast.AST, str]
"""A sign: its name, where it is, what stands there."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.While, ast.For, ast.AsyncFor, ast.comprehension)
_CLASSES_OF = frozenset(sys.stdlib_module_names)
_MAY_BE_SET = words_of(
    "stdout stderr stdin argv excepthook unraisablehook displayhook breakpointhook path ps1 ps2 "
    "dont_write_bytecode tracebacklimit last_type last_value last_traceback last_exc "
    "showwarning formatwarning raiseExceptions"
)
"""What the standard library says may be assigned."""

_OF_PROGRAMS = re.compile(
    r"(?:PATH|HOME|TZ|LANG|LANGUAGE|TERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|EDITOR|PAGER|DISPLAY|USER"
    r"|TMPDIR|TEMP|TMP|(?:HTTPS?|NO|ALL)_PROXY)$"
    r"|(?:LC|XDG|PYTHON|OMP|MKL|OPENBLAS|NUMEXPR|VECLIB|CUDA|NCCL|TF|XLA|JAX|TORCH|PYTORCH|HF"
    r"|TRANSFORMERS|TOKENIZERS|DJANGO|FLASK|MPL|QT|SDL|PYGAME|GIT|SSL|REQUESTS|CURL|AWS|GOOGLE"
    r"|AZURE|OPENAI|ANTHROPIC|SPARK|JAVA|NODE|NPM|RAY|WANDB|KERAS|OPENCV|GDAL|PROJ|R)_?",
    re.IGNORECASE,
)
"""Variables that Python, libraries and other programs read."""


@dataclass(slots=True)
class ParsedModule:
    """A parsed file and what its names stand for."""

    path: str
    own: frozenset[str]
    nodes: list[ast.AST] = field(default_factory=list[ast.AST])
    above: dict[ast.AST, ast.AST] = field(default_factory=dict[ast.AST, ast.AST])
    names: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[str] = field(default_factory=set[str])

    def of(self, kind: type[N]) -> Iterator[N]:
        """The nodes of a kind."""
        return (node for node in self.nodes if isinstance(node, kind))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, innermost first."""
        while (found := self.above.get(node)) is not None:
            yield found
            node = found

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | None:
        """The function that a node stands in."""
        return next((one for one in self.around(node) if isinstance(one, _SCOPES)), None)

    def runs_at_import(self, node: ast.AST) -> bool:
        """Whether code runs as soon as its module is loaded, and not only as a program."""
        return self.function(node) is None and not any(
            isinstance(one, ast.If) and "__name__" in ast.dump(one.test)
            for one in self.around(node)
        )

    def called(self, *names: str) -> Iterator[tuple[ast.Call, str]]:
        """Calls of what has one of the full names; one that ends in a dot stands for all in it."""
        for call in self.of(ast.Call):
            name = self.full(call.func)
            if name in names or (name and name[: name.rfind(".") + 1] in names):
                yield call, name

    def full(self, node: ast.AST) -> str:
        """The full name of what an expression stands for, such as ``os.path.join``; "" for any."""
        found = ""
        if isinstance(node, ast.Name):
            found = "" if self._is_parameter(node) else self.names.get(node.id, "")
        elif isinstance(node, ast.Attribute):
            base = self.full(node.value)
            found = f"{base}.{node.attr}" if base and node.attr != "__dict__" else base
        elif isinstance(node, ast.Subscript) and self.full(node.value) == "sys.modules":
            found = text(node.slice)
        elif isinstance(node, ast.Call) and node.args:
            called = node.func.id if isinstance(node.func, ast.Name) else self.full(node.func)
            if called == "vars":
                found = self.full(node.args[0])
            elif called == "getattr" and len(node.args) > 1:
                base, name = self.full(node.args[0]), text(node.args[1])
                found = f"{base}.{name}" if base and name else ""
            elif called in ("__import__", "importlib.import_module"):
                found = text(node.args[0])
        return found

    def _is_parameter(self, name: ast.Name) -> bool:
        return any(
            isinstance(one, _SCOPES) and name.id in parameters(one) for one in self.around(name)
        )

    def is_foreign(self, name: str) -> bool:
        """Whether a module or what is in it belongs to somebody else."""
        top = name.partition(".")[0]
        return bool(top) and (top in _CLASSES_OF or top not in self.own)


def python_module(source: bytes, path: str, own: frozenset[str]) -> ParsedModule | str:
    """Parse a file; as text, why it cannot be read."""
    tree = parse_python(source)
    if isinstance(tree, str):
        return "is nested too deeply" if tree.endswith(": it is nested too deeply") else ""
    found = ParsedModule(path, own, names={"__builtins__": "builtins"})
    waiting: list[ast.AST] = [tree]
    for node in waiting:
        found.nodes.append(node)
        for child in ast.iter_child_nodes(node):
            found.above[child] = node
            waiting.append(child)
    for node in found.nodes:
        _name(found, node)
    return found


def _name(module: ParsedModule, node: ast.AST) -> None:
    if isinstance(node, ast.Import):
        for one in node.names:
            top = one.name.partition(".")[0]
            module.names[one.asname or top] = one.name if one.asname else top
    elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
        for one in node.names:
            name = one.asname or one.name
            module.names[name] = f"{node.module}.{one.name}"
            if one.name[:1].islower() and one.name not in _CLASSES_OF | {"testing", "case"}:
                module.taken.add(name)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, name = node.targets[0], module.full(node.value)
        if isinstance(target, ast.Name) and name and target.id not in module.names:
            module.names[target.id] = name


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    """The names of a function's parameters."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [one.arg for one in [*named, given.vararg, given.kwarg] if one is not None]


def text(node: ast.AST | None) -> str:
    """The text that an expression is, if it is one."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def reached(module: ParsedModule) -> Iterator[Hit]:
    """Signs of what code reaches for."""
    if is_test(module.path):
        return
    looks = (_frames, _objects, _native, _rewrites, _environ, _code, _imports, _exits, _starts)
    for looked in looks:
        yield from looked(module)


def _frames(module: ParsedModule) -> Iterator[Hit]:
    for call, name in module.called("sys._current_frames", "sys._current_exceptions"):
        yield "frames", call, name
    for call in module.of(ast.Call):
        is_getattr = isinstance(call.func, ast.Name) and call.func.id == "getattr"
        name = text(call.args[1]) if is_getattr and len(call.args) > 1 else ""
        if name in ("f_locals", "f_back", "tb_frame"):
            yield "frames", call, name
    for loop in (*module.of(ast.For), *module.of(ast.comprehension)):
        for node in ast.walk(loop.iter):
            if module.full(node) in ("inspect.stack", "inspect.getouterframes"):
                yield "frames", loop.iter, "inspect.stack"
    for node in module.of(ast.Attribute):
        name = node.attr
        around = module.above.get(node)
        if (
            name in ("f_locals", "f_trace")
            or (name == "f_globals" and not _asks_for_a_name(around, module))
            or (name == "f_back" and _walks(node, module))
            or (name == "co_filename" and _is_compared(node, module))
        ):
            yield "frames", node, name


def _asks_for_a_name(around: ast.AST | None, module: ParsedModule) -> bool:
    """Whether globals of a frame are only asked for the name of their module."""
    if isinstance(around, ast.Attribute) and around.attr == "get":
        call = module.above.get(around)
        return isinstance(call, ast.Call) and bool(call.args) and text(call.args[0]) == "__name__"
    return isinstance(around, ast.Subscript) and text(around.slice) in ("__name__", "__file__")


def _walks(node: ast.Attribute, module: ParsedModule) -> bool:
    base = node.value
    if isinstance(base, ast.Attribute) and base.attr in ("f_back", "tb_frame"):
        return True
    function = module.function(node)
    for one in module.around(node):
        if one is function:
            return False
        if isinstance(one, _LOOPS):
            return True
    return False


def _is_compared(node: ast.AST, module: ParsedModule) -> bool:
    """Whether a value is compared, or asked for what it begins or ends with."""
    around = module.above.get(node)
    if isinstance(around, ast.Attribute):
        return around.attr in ("startswith", "endswith", "find", "count")
    return isinstance(around, ast.Compare)


def _objects(module: ParsedModule) -> Iterator[Hit]:
    for call, name in module.called("gc.get_objects", "gc.get_referrers", "gc.get_referents"):
        counted = module.above.get(call)
        if isinstance(counted, ast.comprehension):
            generator = module.above.get(counted)
            is_one = isinstance(generator, ast.GeneratorExp) and isinstance(
                generator.elt, ast.Constant
            )
            counted = module.above.get(generator) if is_one and generator else None
        function = counted.func if isinstance(counted, ast.Call) else None
        if not (isinstance(function, ast.Name) and function.id in ("len", "sum")):
            yield "objects", call, name


def _native(module: ParsedModule) -> Iterator[Hit]:
    imports = (*module.of(ast.Import), *module.of(ast.ImportFrom))
    for node in imports:
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module]
        for name in filter(None, names):
            top = name.partition(".")[0]
            if top in ("ctypes", "_ctypes", "cffi", "_cffi_backend") and name != "ctypes.util":
                yield "native", node, top
            if top == "marshal":
                yield "marshal", node, top


def _rewrites(module: ParsedModule) -> Iterator[Hit]:
    for target, value in _written(module):
        name = ""
        if isinstance(target, ast.Attribute) and _is_module(target.value, module):
            name = f"{module.full(target.value)}.{target.attr}"
        elif isinstance(target, ast.Subscript) and _is_space(target.value, module):
            name = f"{module.full(target.value)}.{text(target.slice) or '*'}"
        if name and _is_rewrite(name, value) and not _puts_back(target, name, module):
            yield "rewrites", target, name
    for call in module.of(ast.Call):
        function = call.func
        if isinstance(function, ast.Name) and function.id in ("setattr", "delattr") and call.args:
            base = module.full(call.args[0])
            name = f"{base}.{text(call.args[1]) if len(call.args) > 1 else '*'}"
            value = call.args[2] if len(call.args) > 2 else None
            if base and _is_module(call.args[0], module) and _is_rewrite(name, value):
                yield "rewrites", call, name
        elif (
            isinstance(function, ast.Attribute)
            and function.attr in ("update", "setdefault")
            and _is_space(function.value, module)
        ):
            yield "rewrites", call, f"{module.full(function.value)}.*"


def _written(module: ParsedModule) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Every target of an assignment with its value."""
    for node in module.nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                inner = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                yield from ((one, node.value) for one in inner)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.Delete):
            yield from ((one, None) for one in node.targets)


def _is_module(node: ast.AST, module: ParsedModule) -> bool:
    """Whether an expression is a module or class of somebody else, and not some value of theirs."""
    name = module.full(node)
    if isinstance(node, ast.Name) and node.id in module.taken:
        return name.partition(".")[0] in TEST_LIBRARIES - module.own
    return bool(name) and module.is_foreign(name)


def _is_space(node: ast.AST, module: ParsedModule) -> bool:
    """Whether an expression is the ``__dict__`` of a module or class of somebody else."""
    if isinstance(node, ast.Name):
        return node.id == "__builtins__"
    is_dict = isinstance(node, ast.Attribute) and node.attr == "__dict__"
    is_vars = isinstance(node, ast.Call)
    return (is_dict or is_vars) and module.is_foreign(module.full(node))


def _is_rewrite(name: str, value: ast.AST | None) -> bool:
    top, _, last = name.partition(".")
    if top in TEST_LIBRARIES or top == "builtins":
        return True
    if name in ("sys.meta_path", "sys.path_hooks", "sys.modules"):
        return False  # said as `imports`
    if top in _CLASSES_OF:
        return last.rpartition(".")[2] not in _MAY_BE_SET
    settings = (ast.Constant, ast.Call, ast.Subscript, ast.Dict, ast.List, ast.Tuple, ast.BoolOp)
    return last.count(".") < 4 and value is not None and not isinstance(value, settings)


def _puts_back(target: ast.AST, name: str, module: ParsedModule) -> bool:
    """Whether a rewriting lasts for a with-block only: a tool, where it is not a test library's."""
    if name.partition(".")[0] in TEST_LIBRARIES or not isinstance(target, ast.Attribute):
        return False
    function = module.function(target)
    if not isinstance(function, _FUNCTIONS):
        return False
    manager = next(
        (
            one
            for one in module.around(function)
            if isinstance(one, ast.ClassDef)
            and any(isinstance(b, _FUNCTIONS) and b.name == "__exit__" for b in one.body)
        ),
        function,
    )
    wanted = ast.dump(target.value), target.attr
    places: list[ast.AST] = []
    for node in ast.walk(manager):
        if isinstance(node, ast.Try):
            places += node.finalbody
        elif isinstance(node, _FUNCTIONS) and node.name == "__exit__":
            places.append(node)
    is_generator = any(isinstance(one, ast.Yield) for one in ast.walk(function))
    return (is_generator or isinstance(manager, ast.ClassDef)) and any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and (ast.dump(node.value), node.attr) == wanted
        for place in places
        for node in ast.walk(place)
    )


def _environ(module: ParsedModule) -> Iterator[Hit]:
    """Variables that are set and that nobody is known to read; other files are looked at later."""
    programs = ("subprocess.", "os.system", "os.popen", "os.execv", "os.execvp", "os.execve")
    if next(module.called(*programs, "multiprocessing."), None) is not None:
        return  # which may well read them
    found: list[tuple[ast.AST, ast.AST]] = []
    for target, value in _written(module):
        if isinstance(target, ast.Subscript) and module.full(target.value) == "os.environ":
            found += [(target.slice, target)] if value is not None else []
    for call, name in module.called("os.putenv", "os.environ.setdefault", "os.environ.update"):
        given = call.args[:1]
        if name == "os.environ.update":
            given = [key for one in given if isinstance(one, ast.Dict) for key in one.keys if key]
        found += [(one, call) for one in given]
    set_here = {id(key) for key, _ in found}
    used = {text(one) for one in module.of(ast.Constant) if id(one) not in set_here}
    for key, place in found:
        name = text(key)
        if name and name not in used and not _OF_PROGRAMS.match(name):
            yield "environ", place, name


def _code(module: ParsedModule) -> Iterator[Hit]:
    for call in module.of(ast.Call):
        given = {one.arg: one.value for one in call.keywords if one.arg}
        if isinstance(call.func, ast.Name) and call.func.id == "compile":
            place = call.args[1] if len(call.args) > 1 else given.get("filename")
            said = text(place)
            if said.startswith("<frozen") or said.endswith(".py") or "test" in said:
                yield "code", call, f"compile({said!r:.60})"
        if "co_filename" in given and isinstance(call.func, ast.Attribute):
            yield "code", call, "co_filename"
    for call, name in module.called("types.CodeType"):
        yield "code", call, name
    for target, _ in _written(module):
        if isinstance(target, ast.Attribute) and target.attr == "__code__":
            yield "code", target, "__code__"


def _imports(module: ParsedModule) -> Iterator[Hit]:
    tracing = ("sys.settrace", "sys.setprofile", "sys.addaudithook", "threading.settrace")
    for call, name in module.called(*tracing, "threading.setprofile", "sys.monitoring."):
        if not (call.args and isinstance(call.args[0], ast.Constant)):
            yield "imports", call, name
    for call, name in module.called("sys.meta_path.", "sys.path_hooks.", "sys.modules.update"):
        if name.rpartition(".")[2] in ("append", "insert", "extend", "update"):
            yield "imports", call, name
    for target, _ in _written(module):
        if isinstance(target, ast.Attribute) and module.full(target) in (
            *("sys.meta_path", "sys.path_hooks", "sys.modules"),
        ):
            yield "imports", target, module.full(target)
        if isinstance(target, ast.Subscript) and isinstance(target.ctx, ast.Store):
            space, name = module.full(target.value), text(target.slice)
            if space in ("sys.meta_path", "sys.path_hooks"):
                yield "imports", target, space
            if space == "sys.modules" and name and module.is_foreign(name):
                yield "imports", target, f"sys.modules[{name!r:.60}]"


def _exits(module: ParsedModule) -> Iterator[Hit]:
    ends = ("os._exit", "os.abort")
    for call, name in module.called(*ends, "sys.exit"):
        said = call.args[0] if call.args else ast.Constant(0)
        is_fine = isinstance(said, ast.Constant) and said.value in (0, None)
        function = module.function(call)
        forks = function is not None and any(
            module.full(node) == "os.fork" for node in ast.walk(function)
        )
        at_once = module.runs_at_import(call) and (is_fine or name in ends)
        if at_once or (is_fine and name in ends and not forks):
            yield "exits", call, name
    for call, _ in module.called("atexit.register"):
        names = {module.full(node) for one in call.args for node in ast.walk(one)}
        for function in module.of(ast.FunctionDef):
            first = call.args[0] if call.args else None
            if isinstance(first, ast.Name) and function.name == first.id:
                names |= {module.full(node) for node in ast.walk(function)}
        if names & set(ends):
            yield "exits", call, "atexit.register"
    for loop in module.of(ast.While):
        is_endless = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        leaves = any(isinstance(one, ast.Break | ast.Raise | ast.Return) for one in ast.walk(loop))
        if is_endless and not leaves and module.runs_at_import(loop):
            yield "exits", loop, "while True"


def _starts(module: ParsedModule) -> Iterator[Hit]:
    begun = ("os.fork", "_thread.start_new_thread", "threading.Timer", "threading.Thread")
    if not any(module.of(ast.FunctionDef)) and not any(module.of(ast.ClassDef)):
        return  # a script
    for call, name in module.called(*begun, "multiprocessing.Process"):
        if module.runs_at_import(call):
            yield "starts", call, name
