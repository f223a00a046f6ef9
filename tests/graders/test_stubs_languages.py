"""Stubs of the languages that tree-sitter reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.graders.stubs.treesitter import can_read
from tests.graders.implemented_trees import grade, reasons

pytestmark = pytest.mark.skipif(not can_read("cpp"), reason="needs the extra 'languages'")

# Words that sound like a base class. A function has no subclasses, so that they excuse nothing.
SAID = "You must implement this, walk the abstract syntax tree: not implemented"
JS = f"add(a) {{ throw new Error('{SAID}'); }}"
RUBY = f"def add(a)\n  raise NotImplementedError, '{SAID}'\nend\n"
OTHERS: dict[str, dict[str, list[str | tuple[str, str]]]] = {
    "a.js": {
        "function add(a, b) {}": [
            ("function add(a, b) { /* done */ }", "same code"),
            ("const add = (a, b) => { };", "has no body"),
            "const add = (a, b) => a + b;",
            ('function add(a, b) { throw new Error("todo"); }', "not impl"),
            ("function add(a, b) { throw new Error('x'); }", "only raises"),
        ],
        "exports.add = () => 0;": ["exports.add = (a, b) => a + b;"],
        "exports.add = (a) => {};": ["exports.add = require('./sum').add;"],
        "const x = 1;": ["const x = 2; on('end', () => {}); promise.catch(() => {});"],
        "class Shape { area() { throw new Error('not implemented'); } }": [
            (
                "class Shape { area() { throw new Error('not implemented'); } }\n"
                "class Square extends Shape { constructor() { super(); } area() { return "
                "this.a ** 2; } }"
            )
        ],
        "f(1)": [("function f( {", "does not parse: line 1")],
        f"function {JS}": [(f"function {JS} more(1);", "says that it is not implemented")],
        f"class A {{ {JS} }}": [f"class A {{ {JS} }} more(1);"],
    },
    "a.ts": {
        "export function add(a: number, b: number): number { throw new Error('TODO'); }": [
            (
                "export function add(a: number, b: number): number { return null as any; }",
                "a constant",
            )
        ],
        "const x = 1;": [
            (
                "interface I { m(a: number): void }\nabstract class A { abstract m(): void;\n"
                "  constructor(private x: number) {} n() { return this.x; } }\n"
                "function over(a: string): string; function over(a: any) { return a; }"
            )
        ],
    },
    "a.tsx": {"const A = () => null;": ["const A = (p) => <b>{p.text}</b>;"]},
    "a.go": {
        'package p\nfunc Add(a, b int) int { panic("not implemented") }': [
            ("package p\nfunc Add(a, b int) int { _ = a\n\treturn 0 }", "a constant")
        ],
        "package p\nfunc Run(a int) error { panic(1) }": [
            (
                (
                    'package p\nimport "errors"\n'
                    'func Run(a int) error { return errors.New("not implemented") }'
                ),
                "not impl",
            )
        ],
        'package p\nfunc Add(a, b int) int { panic("TODO") }': [
            "package p\nvar Add = func(a, b int) int { return a + b }",
            ("package p\nvar Add = func(a, b int) int { return 0 }", "a constant"),
            ("package p\nvar Add = 0", "is gone"),
        ],
        'package p\nfunc (s *S[T]) Put(x T) { panic("TODO") }': [
            "package p\nfunc (s *S[T]) Put(x T) { s.xs = append(s.xs, x) }",
            ("package p\nfunc (s *S[T]) Put(x T) {}", "has no body"),
        ],
        "package p": [
            (
                "package p\ntype I interface { M(x int) error }\nfunc (t T) isNode() {}\n"
                "func (t T) Close() error { return nil }\nfunc Sum(a int) int { return a + 1 }"
            )
        ],
    },
    "a.rs": {
        "fn add(a: i32, b: i32) -> i32 { todo!() }": [
            (
                "fn add(a: i32, b: i32) -> i32 { a + b }\n#[test]\nfn slow() {}\n"
                "#[cfg(test)]\nmod tests { #[test] #[ignore]\nfn later() {} }"
            ),
            (
                "#[cfg(test)]\nfn add(a: i32, b: i32) -> i32 { a + b }\nfn run() -> i32 { 3 * 4 }",
                "is gone",
            ),
        ],
        "fn get(a: i32) -> Option<i32> { todo!() }": [
            ("fn get(a: i32) -> Option<i32> { None }", "const")
        ],
        "fn main() {}": [
            (
                "trait T { fn m(&self); fn d(&self) {} }\nstruct S;\n"
                "impl Drop for S { fn drop(&mut self) {} }\n"
                'fn main() { println!("TODO list"); run(); }'
            )
        ],
    },
    "A.java": {
        "class A { int add(int a, int b) { throw new UnsupportedOperationException(); } }": [
            ("class A { int add(int a, int b) { return 0; } }", "a constant"),
        ],
        "class A { }": [
            (
                "abstract class A implements java.util.Iterator<String> { A() {} abstract "
                "int m(int x);\n"
                "@Override public void rm() { throw new UnsupportedOperationException(); }\n"
                "  int twice(int x) { return 2 * x; } }\ninterface I { int m(int x); }"
            )
        ],
    },
    "a.c": {
        "int add(int a, int b) { return 0; /* TODO */ }": [
            "int add(int a, int b) { return a + b; }",
            ("int add(int a, int b) { return 1; }", "const"),
        ],
        "int add(int a, int b) { abort(); }": ["int add(int a, int b) { (void)a; return 0; }"],
        "void put(int a) { }": [("void put(int a) { (void)a; }", "has no body")],
    },
    "a.cpp": {
        'int A::add(int a) { throw std::logic_error("not implemented"); }': [
            ("int A::add(int a) { return {}; }", "a constant")
        ],
        'A::A(int a) { throw std::logic_error("not implemented"); }': [
            "A::A(int a) : a_(a) {}",
            ("A::A(int a) : a_(a) { /* TODO: the rest */ }", "not implemented"),
        ],
        "int x;": [
            (
                "class A : public B { A() {} virtual int m(int) = 0; ~A() {} void on(int) "
                "override {} };\n"
                "int twice(int a) { return 2 * a; }"
            )
        ],
    },
    "a.rb": {
        "def add(a, b)\n  raise NotImplementedError\nend": [
            ("def add(a, b)\n  0\nend", "a constant"),
            ("def add(a, b)\nend", "has no body"),
        ],
        "class A\n  def name(x)\n    raise NotImplementedError\n  end\nend": [
            "class A\n  attr_reader :age, :name\nend",
            "class A\n  define_method(:name) { |x| x + 1 }\nend",
            "class A\n  define_method(:name) do |x|\n    x + 1\n  end\nend",
            ("class A\n  define_method(:name) { |x| }\nend", "has no body"),
            ("class A\n  define_method(:name) { |x| 0 }\nend", "a constant"),
            "class A\n  alias name to_s\nend",
            ("class A\n  attr_reader :names\n  puts :name\nend", "is gone"),
        ],
        RUBY: [(f"{RUBY}more(1)", "says that it is not implemented")],
        f"class A\n{RUBY}end": [f"class A\n{RUBY}end\nmore(1)"],
        "x = 1": ["class A\n  def initialize; end\n  def go(x)\n    x + 1\n  end\nend"],
    },
}
"""What the source had, and what was left: text that is right, or text and what is wrong with it."""


@pytest.mark.parametrize("name", OTHERS)
async def test_other_languages(name: str, tmp_path: Path) -> None:
    suffix = Path(name).suffix
    cases = [
        (before, row, "") if isinstance(row, str) else (before, *row)
        for before, rows in OTHERS[name].items()
        for row in rows
    ]
    source = {f"n{n}{suffix}": before for n, (before, _, _) in enumerate(cases)}
    left = {f"n{n}{suffix}": after for n, (_, after, _) in enumerate(cases)}
    found = reasons(await grade(tmp_path, left, source, files=list(left)))
    for (_, after, expected), why in zip(cases, (found[file] for file in left), strict=True):
        assert expected in why, after
        assert bool(expected) == bool(why), (after, why)


async def test_a_class_may_stand_before_two_colons(tmp_path: Path) -> None:
    source = {"a.cpp": "int A::add(int a) { throw 1; }"}
    left = {"a.cpp": "int A::add(int a) { return a + n; }"}
    assert (await grade(tmp_path, left, source, functions=["A::add"])).value == 1.0
    assert (await grade(tmp_path, left, source, functions=["B::add"])).value == 0.0
