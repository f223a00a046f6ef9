"""Which Python is a stub, and what is only quiet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.stubs import Code
from assay.graders.stubs.python import python_code, read_python
from tests.each import each
from tests.implemented_trees import GOOD, STUB, grade, reasons

HOOKS = (
    "class Hooks11:\n    def on_start(self, x):\n        pass\n    def save(self, x):\n"
    "        raise NotImplementedError('override save')\n"
)

# What the source had (None: no such file), what was left, and what is wrong with it ("": nothing).
PYTHON: dict[str, tuple[str | None, str, str]] = {
    "implemented": (STUB, GOOD, ""),
    "untouched": (STUB, STUB, "same code as the source"),
    "comment": (STUB, "# done\n" + STUB, "same code as the source"),
    "docstring": (STUB, f'"""Done."""\n{STUB}', "same code as the source"),
    "bare_words": (STUB, f"{STUB}retry\nmax_retries, backoff\n", "same code as the source"),
    "pass": (STUB, "def add(a, b):\n    pass\n", "has no body"),
    "ellipsis": (STUB, "def add(a, b): ...\n", "has no body"),
    "docstring_only": (STUB, 'def add(a, b):\n    """Adds."""\n', "has no body"),
    "bare_constant": (STUB, "def add(a, b):\n    42\n", "has no body"),
    "bare_names": (STUB, "def add(a, b):\n    a, b\n", "has no body"),
    "unused_local": (STUB, "def add(a, b):\n    total = a + b\n", "has no body"),
    "none": (STUB, "def add(a, b):\n    return None\n", "a constant"),
    "zero": (STUB, "def add(a, b):\n    return 0\n", "a constant"),
    "arithmetic": (STUB, "def add(a, b):\n    return 2 + 3\n", "a constant"),
    "local_zero": (STUB, "def add(a, b):\n    total = 0\n    return total\n", "a constant"),
    "empty_list": (STUB, "def add(a, b):\n    return []\n", "a constant"),
    "lambda": (STUB, "add = lambda a, b: 0\n", "a constant"),
    "other_error": (STUB, 'def add(a, b):\n    raise ValueError("no")\n', "only raises"),
    "todo": (STUB, 'def add(a, b):\n    raise Exception("TODO")\n', "not implemented"),
    "hidden_name": (
        STUB,
        'import builtins\ndef add(a, b):\n    raise getattr(builtins, "Not" + "Implemented")\n',
        "only raises",
    ),
    "dead_code": (STUB, f"{STUB}    return a + b\n", "not implemented"),
    "constant_branch": (
        STUB,
        "def add(a, b):\n    if True:\n        raise NotImplementedError\n    return a + b\n",
        "not implemented",
    ),
    "dead_branch": (
        STUB,
        "def add(a, b):\n    if 0:\n        return a + b\n    return None\n",
        "a constant",
    ),
    "swallowed": (
        STUB,
        (
            "def add(a, b):\n    try:\n        raise KeyError\n    except KeyError:\n"
            "        return 0\n"
        ),
        "a constant",
    ),
    "endless": (STUB, "def add(a, b):\n    while True:\n        raise KeyError\n", "only raises"),
    "assert_false": (STUB, "def add(a, b):\n    assert False\n", "not implemented"),
    "print_todo": (STUB, 'def add(a, b):\n    print("TODO")\n', "has no body"),
    "gone": (STUB, "import math\nx = math.pi\n", "was a stub and is gone"),
    "bound_to_none": (STUB, "add = None\n", "was a stub and is gone"),
    "bound": (STUB, "from operator import add\n", ""),
    "assigned": (STUB, "import operator\nadd = operator.add\n", ""),
    "decorated_stub": (
        STUB,
        "import abc\n@abc.abstractmethod\ndef add(a, b):\n    raise NotImplementedError\n",
        "not implemented",
    ),
    "second_definition": (STUB, GOOD + STUB, "not implemented"),
    "never_taken": (
        STUB,
        f"if False:\n    {GOOD.replace(chr(10), chr(10) + '    ')}\n{STUB}",
        "not",
    ),
    "chosen": (
        STUB,
        (
            "import sys\nif sys.platform == 'win32':\n    def add(a, b):\n        raise OSError\n"
            "else:\n    def add(a, b):\n        return a + b\n"
        ),
        "",
    ),
    "constant_without_inputs": (
        "def version():\n    raise NotImplementedError\n",
        "def version():\n    return '1.0'\n",
        "",
    ),
    "constant_that_was_there": (
        "def on(x):\n    return False\n",
        "def on(x):\n    return True\n",
        "",
    ),
    "new_constant": (GOOD, f"{GOOD}def is_exact(a, b):\n    return True\n", ""),
    "new_none": (GOOD, f"{GOOD}def hint(a):\n    return None\n", ""),
    "new_todo": (GOOD, f"{GOOD}def sub(a, b):\n    return 0  # TODO\n", "not implemented"),
    "new_file": (None, GOOD, ""),
    "new_file_of_constants": (None, "def add(a, b):\n    return 0\n", "no function that does"),
    "new_file_of_values": (None, "LIMIT = 3\n", ""),
    "no_code": (None, '"""Nothing."""\n', "has no code"),
    "blank": (None, "", "has no code"),
    "syntax": (STUB, "def add(a, b):\n    return a +\n", "does not parse: line 2"),
    "prose": (STUB, "I have implemented add.\n", "does not parse: line 1"),
    "null_byte": (STUB, "def add(a, b): return a + b\n\0", "does not parse"),
    "odd_encoding": (STUB, "# coding: rot13\nqrs nqq(n, o): erghea n + o\n", "does not parse"),
    "python_2_before_and_after": ("print 'a'\n", "print 'b'\n", ""),
    "errors": (
        None,
        "class OddError(Exception):\n    pass\n\n\nclass EvenError(OddError): ...\n",
        "",
    ),
    "mentioned": (
        STUB,
        (
            "# No NotImplementedError any more\ndef add(a, b):\n"
            '    """Never raises NotImplementedError."""\n'
            '    return a + b  # "NotImplementedError"\n'
        ),
        "",
    ),
    "operator": (
        None,
        (
            "class Money:\n    def __init__(self, n):\n        self.n = n\n"
            "    def __add__(self, other):\n        if not isinstance(other, Money):\n"
            "            return NotImplemented\n        return Money(self.n + other.n)\n"
            "    def __lt__(self, other):\n        return NotImplemented\n"
        ),
        "",
    ),
    "abstract_class": (
        "class Shape0:\n    pass\n",
        (
            "from abc import ABC, abstractmethod\nclass Shape0(ABC):\n    @abstractmethod\n"
            "    def area(self):\n        raise NotImplementedError\n    @property\n"
            "    @abstractmethod\n"
            "    def name(self): ...\n    def helper(self):\n        raise NotImplementedError\n"
            "class Square0(Shape0):\n    name = 'square'\n    def __init__(self, a):\n"
            "        self.a = a\n"
            "    def area(self):\n        return self.a ** 2\n"
        ),
        "",
    ),
    "base_without_abc": (
        STUB,
        GOOD + "class Shape1:\n    def area(self):\n        raise NotImplementedError\n"
        "class Square1(Shape1):\n    def area(self):\n        return self.a ** 2\n",
        "",
    ),
    "base_that_stays": (
        "class Shape2:\n    def area(self):\n        raise NotImplementedError\n",
        (
            "class Shape2:\n    def area(self):\n        raise NotImplementedError\n"
            "class Square2(Shape2):\n    def area(self):\n        return self.a ** 2\n"
        ),
        "",
    ),
    "words_of_abstraction": (
        None,
        (
            "class Plugin3:\n    def run(self, x):\n"
            "        raise NotImplementedError('subclasses must override run')\n"
            "    def go(self, x):\n        return self.run(x) + 1\n"
        ),
        "",
    ),
    "stub_becomes_abstract": (
        "class Stack4:\n    def push(self, x):\n        raise NotImplementedError\n",
        (
            "import abc\nclass Stack4(abc.ABC):\n    @abc.abstractmethod\n    def push(self, x):\n"
            "        raise NotImplementedError('subclasses override')\n"
        ),
        "only raises",
    ),
    "stub_gets_bases": (
        "class Stack5:\n    def push(self, x):\n        raise NotImplementedError\n",
        "class Stack5(dict):\n    def push(self, x):\n        pass\n",
        "has no body",
    ),
    "empty_override": (
        "class Stack6:\n    def push(self, x):\n        raise NotImplementedError\n",
        (
            "class Stack6:\n    def push(self, x):\n        raise NotImplementedError\n"
            "class Real6(Stack6):\n    def push(self, x):\n        pass\n"
        ),
        "Stack6.push",
    ),
    "hooks_and_a_base_that_were_there": (
        "def load(x):\n    return x\n" + HOOKS,
        "def load(x):\n    return x + 1\n" + HOOKS,
        "",
    ),
    "new_empty_function": (GOOD, f"{GOOD}def listen(event):\n    pass\n", ""),
    "new_base_class": (
        None,
        f"{GOOD}class Shape12:\n    def area(self, x):\n        raise NotImplementedError\n",
        "",
    ),
    "new_file_of_empty_functions": (None, "def add(a, b):\n    pass\n", "no function that does"),
    "protocol": (
        None,
        (
            "from typing import Protocol, overload\nclass Reader7(Protocol):\n"
            "    def read(self, n: int) -> bytes: ...\n@overload\ndef f(x: int) -> int: ...\n"
            "@overload\ndef f(x: str) -> str: ...\ndef f(x):\n    return x\n"
        ),
        "",
    ),
    "hooks": (
        None,
        (
            "import ast\nclass Quiet8(ast.NodeVisitor):\n    def visit_Name(self, node):\n"
            "        pass\n"
            "    def generic_visit(self, node):\n        super().generic_visit(node)\n"
            "class Timer8:\n    def __enter__(self):\n        return self\n"
            "    def __exit__(self, *exc):\n        pass\n"
        ),
        "",
    ),
    "commands": (
        None,
        (
            "import click\n@click.group()\ndef cli():\n    pass\n@cli.command()\ndef go():\n"
            "    click.echo('went')\ndef noop(*args, **kwargs):\n    pass\n"
        ),
        "",
    ),
    "properties": (
        "class Box9:\n    @property\n    def size(self):\n        raise NotImplementedError\n",
        (
            "class Box9:\n    @property\n    def size(self):\n        return self._size\n"
            "    @size.setter\n    def size(self, value):\n        self._size = value\n"
        ),
        "",
    ),
    "half": (
        STUB + "def sub(a, b): ...\n",
        GOOD + "def sub(a, b): ...\n",
        "sub, line 3: has no body",
    ),
    "private_helper_inlined": (STUB + "def _carry(a): ...\n", GOOD, ""),
    "nested": (
        STUB,
        "def add(a, b):\n    def inner():\n        raise NotImplementedError\n    return inner()\n",
        "add.inner",
    ),
    "generator": (
        "def numbers(n):\n    raise NotImplementedError\n",
        "def numbers(n):\n    yield from range(n)\n",
        "",
    ),
    "first_check_then_work": (
        STUB,
        "def add(a, b):\n    if a is None:\n        raise TypeError\n    return a + b\n",
        "",
    ),
    "two_constants": (
        "def even(n):\n    raise NotImplementedError\n",
        "def even(n):\n    if n % 2:\n        return False\n    return True\n",
        "",
    ),
}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All cases at once, each a file of its own."""
    left = {f"{name}.py": after for name, (_, after, _) in PYTHON.items()}
    source = {f"{n}.py": before for n, (before, _, _) in PYTHON.items() if before is not None}
    root = tmp_path_factory.mktemp("verdicts")
    return reasons(asyncio.run(grade(root, left, source, files=sorted(left))))


@each("name", PYTHON)
def test_which_python_is_implemented(name: str, verdicts: dict[str, str]) -> None:
    expected, why = PYTHON[name][2], verdicts[f"{name}.py"]
    assert expected in why
    assert bool(expected) == bool(why)


BODIES = [
    "pass",
    "...",
    "return None",
    "return 0",
    "return a + b",
    "raise NotImplementedError",
    "raise ValueError(a)",
    "total = a\n    return total",
    "if a:\n        return b\n    return a",
    "for x in a:\n        print(x)",
    "yield a",
]
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc",), exclude_characters='\\"'), max_size=30
).filter(lambda text: "todo" not in text.lower() and "fixme" not in text.lower())


def facts(code: Code | str) -> object:
    assert isinstance(code, Code)
    return code.fingerprint, [(f.name, f.body, f.fingerprint) for f in code.functions]


@given(st.lists(st.sampled_from(BODIES), min_size=1, max_size=4), WORDS, WORDS)
def test_comments_docstrings_and_layout_never_change_the_verdict(
    bodies: list[str], comment: str, doc: str
) -> None:
    plain = "".join(f"def f{n}(a, b):\n    {body}\n" for n, body in enumerate(bodies))
    dressed = "".join(
        f'# {comment}\n\n\ndef f{n}( a,b ):  # {comment}\n    "{doc} "\n\n    {body}  # {comment}\n'
        for n, body in enumerate(bodies)
    )
    assert facts(read_python(plain.encode())) == facts(read_python(dressed.encode("utf-8")))


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
def test_whatever_the_bytes_they_are_read_or_refused(data: bytes) -> None:
    assert isinstance(read_python(data), Code | str)
    code = python_code(data)
    assert code is None or code.count("\n") >= 0


SAID = (
    "You must implement this",
    "walk the abstract syntax tree",
    "use the derived key",
    "override",
)


@pytest.mark.parametrize("said", SAID)
async def test_attack_an_untouched_stub_whose_words_sound_like_a_base_class(
    said: str, tmp_path: Path
) -> None:
    """A function outside of classes has no subclasses: what its error says excuses nothing."""
    left = f"def sign(a):\n    raise NotImplementedError({said!r})\n"
    source = {"kit.py": f"{STUB}\n\n{left}"}
    node = await grade(tmp_path, {"kit.py": f"{GOOD}\n\n{left}"}, source)
    assert node.value == 0.0
    assert "says that it is not implemented" in reasons(node)["kit.py"]


@pytest.mark.parametrize("said", SAID)
async def test_a_method_whose_error_names_subclasses_is_no_stub(said: str, tmp_path: Path) -> None:
    left = f"class Box:\n    def sign(self, a):\n        raise NotImplementedError({said!r})\n"
    source = {"kit.py": f"{STUB}\n\n{left}"}
    assert (await grade(tmp_path, {"kit.py": f"{GOOD}\n\n{left}"}, source)).value == 1.0
