"""Which Python is a stub, and what is only quiet."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.stubs import Code
from assay.graders.stubs.python import python_code, read_python
from tests.each import each
from tests.graders.implemented_trees import GOOD, STUB, grade, reasons

HOOKS = (
    "class Hooks11:\n    def on_start(self, x):\n        pass\n    def save(self, x):\n"
    "        raise NotImplementedError('override save')\n"
)

STILL_A_STUB: dict[str, tuple[str, str]] = {
    "untouched": (STUB, "same code as the source"),
    "bare_words": (f"{STUB}retry\nmax_retries, backoff\n", "same code as the source"),
    "unused_local": ("def add(a, b):\n    total = a + b\n", "has no body"),
    "bare_return": ("def add(a, b):\n    return\n", "a constant"),
    "never_reached": ("def add(a, b):\n    return\n    return a + b\n", "a constant"),
    "words": ('def add(a, b):\n    """Add them."""\n', "has no body"),
    "local_zero": ("def add(a, b):\n    total = 0\n    return total\n", "a constant"),
    "empty_list": ("def add(a, b):\n    return []\n", "a constant"),
    "lambda": ("add = lambda a, b: 0\n", "a constant"),
    "todo": ('def add(a, b):\n    raise Exception("TODO")\n', "not implemented"),
    "hidden_name": (
        'import builtins\ndef add(a, b):\n    raise getattr(builtins, "Not" + "Implemented")\n',
        "only raises",
    ),
    "constant_branch": (
        "def add(a, b):\n    if True:\n        raise NotImplementedError\n    return a + b\n",
        "not implemented",
    ),
    "dead_branch": (
        "def add(a, b):\n    if 0:\n        return a + b\n    return None\n",
        "a constant",
    ),
    "swallowed": (
        (
            "def add(a, b):\n    try:\n        raise KeyError\n    except KeyError:\n"
            "        return 0\n"
        ),
        "a constant",
    ),
    "endless": ("def add(a, b):\n    while True:\n        raise KeyError\n", "only raises"),
    "assert_false": ("def add(a, b):\n    assert False\n", "not implemented"),
    "print_todo": ('def add(a, b):\n    print("TODO")\n', "has no body"),
    "gone": ("import math\nx = math.pi\n", "was a stub and is gone"),
    "bound_to_none": ("add = None\n", "was a stub and is gone"),
    "never_taken": (f"if False:\n    {GOOD.replace(chr(10), chr(10) + '    ')}\n{STUB}", "not"),
    "second_definition": (GOOD + STUB, "not implemented"),
    "null_byte": ("def add(a, b): return a + b\n\0", "does not parse"),
    "odd_encoding": ("# coding: rot13\nqrs nqq(n, o): erghea n + o\n", "does not parse"),
    "nested": (
        "def add(a, b):\n    def inner():\n        raise NotImplementedError\n    return inner()\n",
        "add.inner",
    ),
}
"""What became of a stub, and what is wrong with it."""
FILLED: dict[str, str] = {
    "implemented": GOOD,
    "bound": "from operator import add\n",
    "chosen": (
        "import sys\nif sys.platform == 'win32':\n    def add(a, b):\n        raise OSError\n"
        "else:\n    def add(a, b):\n        return a + b\n"
    ),
    "check_then_work": "def add(a, b):\n    if not a:\n        raise TypeError\n    return a + b\n",
}
"""What became of it that is right."""
NEW_AND_WRONG: dict[str, tuple[str, str]] = {
    "no_code": ('"""Nothing."""\n', "has no code"),
    "new_file_of_empty_functions": ("def add(a, b):\n    pass\n", "no function that does"),
}
"""What stands in a file that the source did not have, and what is wrong with it."""
NEW: dict[str, str] = {
    "new_file_of_values": "LIMIT = 3\n",
    "operator": (
        "class Money:\n    def __init__(self, n):\n        self.n = n\n"
        "    def __add__(self, other):\n        if not isinstance(other, Money):\n"
        "            return NotImplemented\n        return Money(self.n + other.n)\n"
        "    def __lt__(self, other):\n        return NotImplemented\n"
    ),
    "protocol": (
        "from typing import Protocol, overload\nclass Reader7(Protocol):\n"
        "    def read(self, n: int) -> bytes: ...\n@overload\ndef f(x: int) -> int: ...\n"
        "@overload\ndef f(x: str) -> str: ...\ndef f(x):\n    return x\n"
    ),
    "hooks": (
        "import ast\nclass Quiet8(ast.NodeVisitor):\n    def visit_Name(self, node):\n"
        "        pass\n"
        "    def generic_visit(self, node):\n        super().generic_visit(node)\n"
        "class Timer8:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *exc):\n        pass\n"
    ),
    "commands": (
        "import click\n@click.group()\ndef cli():\n    pass\n@cli.command()\ndef go():\n"
        "    click.echo('went')\ndef noop(*args, **kwargs):\n    pass\n"
    ),
}
"""What may stand there."""
CHANGED_AND_WRONG: dict[str, tuple[str, str, str]] = {
    "new_todo": (GOOD, f"{GOOD}def sub(a, b):\n    return 0  # TODO\n", "not implemented"),
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
}
"""What else the source had, what was left, and what is wrong with it."""
CHANGED: dict[str, tuple[str, str]] = {
    "constant_without_inputs": (
        "def version():\n    raise NotImplementedError\n",
        "def version():\n    return '1.0'\n",
    ),
    "constant_that_was_there": ("def on(x):\n    return False\n", "def on(x):\n    return True\n"),
    "new_constant": (GOOD, f"{GOOD}def is_exact(a, b):\n    return True\n"),
    "python_2_before_and_after": ("print 'a'\n", "print 'b'\n"),
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
    ),
    "base_that_stays": (
        "class Shape2:\n    def area(self):\n        raise NotImplementedError\n",
        (
            "class Shape2:\n    def area(self):\n        raise NotImplementedError\n"
            "class Square2(Shape2):\n    def area(self):\n        return self.a ** 2\n"
        ),
    ),
    "hooks_and_a_base_that_were_there": (
        "def load(x):\n    return x\n" + HOOKS,
        "def load(x):\n    return x + 1\n" + HOOKS,
    ),
    "new_empty_function": (GOOD, f"{GOOD}def listen(event):\n    pass\n"),
    "properties": (
        "class Box9:\n    @property\n    def size(self):\n        raise NotImplementedError\n",
        (
            "class Box9:\n    @property\n    def size(self):\n        return self._size\n"
            "    @size.setter\n    def size(self, value):\n        self._size = value\n"
        ),
    ),
    "private_helper_inlined": (STUB + "def _carry(a): ...\n", GOOD),
    "generator": (
        "def numbers(n):\n    raise NotImplementedError\n",
        "def numbers(n):\n    yield from range(n)\n",
    ),
    "two_constants": (
        "def even(n):\n    raise NotImplementedError\n",
        "def even(n):\n    if n % 2:\n        return False\n    return True\n",
    ),
}
"""Both, where nothing is wrong."""
SAID = (
    "You must implement this",
    "walk the abstract syntax tree",
    "use the derived key",
    "override",
)
"""Words that sound like a base class. A function has no subclasses, so that they excuse nothing."""
FUNCTION = "def sign{n}(a):\n    raise NotImplementedError({said!r})\n"
METHOD = "class Box{n}:\n    def sign(self, a):\n        raise NotImplementedError({said!r})\n"
LEFT = [
    (shape.format(n=n, said=said), why)
    for shape, why in ((FUNCTION, "says that it is not implemented"), (METHOD, ""))
    for n, said in enumerate(SAID)
]
PYTHON: dict[str, tuple[str | None, str, str]] = {
    **{f"left_{n}": (STUB + left, GOOD + left, why) for n, (left, why) in enumerate(LEFT)},
    **{name: (STUB, *row) for name, row in STILL_A_STUB.items()},
    **{name: (STUB, left, "") for name, left in FILLED.items()},
    **{name: (None, *row) for name, row in NEW_AND_WRONG.items()},
    **{name: (None, left, "") for name, left in NEW.items()},
    **CHANGED_AND_WRONG,
    **{name: (*row, "") for name, row in CHANGED.items()},
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
