"""What makefiles make, read without make, and what make itself says of the same ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from assay.tasks.makefiles import make_targets
from tests.each import each

_MADE = [
    ("test lint: unit\nunit:\n\ttrue\n", "test lint unit"),
    # How a variable comes by its values.
    ("OUT = a.txt\nOUT += b.txt\n$(OUT): kit.c\n\tsay > $@\n", "a.txt b.txt"),
    ("export OUT = a.txt\n$(OUT):\n\tsay > $@\n", "a.txt"),
    ("override export OUT := a.txt\n${OUT}:\n\tsay > $@\n", "a.txt"),
    ("OUT ::= a.txt\n$(OUT):\n\tsay > $@\n", "a.txt"),
    ("define OUT\na.txt b.txt\nendef\n$(OUT):\n\tsay\n", "a.txt b.txt"),
    ("ifndef NOT\nOUT = a.txt\nelse\nendif\n$(OUT): ; say > $@\n", "a.txt"),
    ("OUT = a.txt # where it goes\n$(OUT): # so\n\tsay\n", "a.txt"),
    # Where a rule and its recipe stand.
    ("ifndef NOT\na.txt:\n\tsay > $@\nelse\nendif\n", "a.txt"),
    ("a.txt:\nifndef NOT\n\tsay > $@\nendif\n", "a.txt"),
    ("a.txt: kit.c\n# how\n\n\tsay > $@\n", "a.txt"),
    ("# x: \\\n  y.txt: z\na.txt:\n\tsay\n", "a.txt"),
    ("OUT = a.txt \\\n  b.txt\n$(OUT) \\\n  c.txt: \\\n d\n\tsay\n", "a.txt b.txt c.txt"),
    ("  a.txt  :  kit.c\n\tsay\n", "a.txt"),
    ("a.o b.o: %.o: %.c\n\tsay\n%.x: %.c\n\tsay\n", "a.o b.o"),
    ("a.txt:: ; say\n", "a.txt"),
    (".done .out/a: kit.c\n\tsay\n.DEFAULT:\n\tsay\n", ".done .out/a"),
    ("a.txt: kit.c\r\n\tsay\r\n", "a.txt"),
    # What targets are made of.
    ("$(addprefix out/,a b.c):\n\tsay\n", "out/a out/b.c"),
    ("$(addsuffix .txt,a b):\n\tsay\n", "a.txt b.txt"),
    ("$(notdir x/a.c) $(basename y/b.o.c) $(dir z/c)d.c:\n\tsay\n", "a.c y/b.o z/d.c"),
    ("$(patsubst %.c,out/%.o,src/a.c h.h):\n\tsay\n", "out/src/a.o h.h"),
    ("S = a.c b.c\nO = $(S:.c=.o)\n$(O) $(S:%.c=%.x):\n\tsay\n", "a.o b.o a.x b.x"),
    ("$(filter %.c %.h,a.c b.h c.o) $(filter-out %.c,d.c d.o):\n\tsay\n", "a.c b.h d.o"),
    ("$(subst in,out,in/a.in) $(sort b.c b.c):\n\tsay\n", "out/a.out b.c"),
    ("D = out\nS = x/a.c\n$(addprefix $(D)/,$(notdir ${S:.c=.o})):\n\tsay\n", "out/a.o"),
    ("D = out\nE = $(D)/bin\n$(E)/a$(EXE) ./b.txt:\n\tsay\n", "out/bin/a b.txt"),
    ("$(CURDIR)/out/a.txt:\n\tsay\n", "out/a.txt"),
    ("KIND = one\none_OUT = a.txt\n$($(KIND)_OUT):\n\tsay\n", "a.txt"),
    # What is no rule with a recipe.
    ("define RULE\nx.txt: y\n\tsay\nendef\na.txt:\n\tsay\n", "a.txt"),
    ("kit.o: kit.h\nkit.o: CFLAGS = -g\n", ""),
    ("a.txt:\n\tsay\nb.txt: export X = y\nvpath %.c src:lib\n", "a.txt"),
    ("X = a: b\nexport X Y\n$(info a: b)\n$(shell true a: b)\n", ""),
    ("X = $$1$$2$$ $$(Y)\na.txt: b$$0$$\n\tsay\n", "a.txt"),
]


@each(("makefile", "made"), _MADE)
def test_what_a_makefile_makes_is_found(makefile: str, made: str) -> None:
    assert make_targets(makefile) == {*made.split()}


def test_what_only_make_can_tell_and_what_is_elsewhere_is_left_out() -> None:
    targets = "$(foreach x,a b,$(x).o) $(shell echo a) $(wildcard *) $(call a,b) /out/a"
    assert make_targets(f"OUT != echo a\n{targets} $(OUT)b x$(OUT):\n\tsay\n") == frozenset()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@each(("makefile", "made"), _MADE)
def test_make_itself_makes_the_same(makefile: str, made: str, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(makefile, "utf-8", newline="")
    ran = subprocess.run(
        ["make", "-pnqrR"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    if "# GNU Make 4" not in ran.stdout:
        pytest.skip("needs GNU Make 4")
    found: set[str] = set()
    for said in ran.stdout.partition("\n# Files\n")[2].split("\n\n"):
        rule = re.match(r"\s*([^\s#:]+)::?(?!=)", said)
        if rule and not re.fullmatch(r"\.[A-Z_]+|Makefile", rule[1]):
            is_word = not {".", "/"} & set(rule[1])
            if "#  recipe to execute" in said or is_word:
                found.add(rule[1].removeprefix(f"{tmp_path}/").removeprefix("./"))
    assert found == {*made.split()}


def test_every_branch_and_every_value_is_taken() -> None:
    makefile = (
        "ifeq ($(OS),x)\nD = one\nEXE = .exe\nelse ifdef Y\nD = two\nelse\nD := three\nendif\n"
        "$(D)/a$(EXE): kit.c\nifdef VERBOSE\n\tsay\nelse\n\t@say\nendif\n"
    )
    made = {f"{where}/a{end}" for where in ("one", "two", "three") for end in ("", ".exe")}
    assert make_targets(makefile) == made


@each(
    "recipe",
    ["; mkdir -p a", "\n\t@mkdir -p $@", "\n\t# here\n\n\t[ -d $@ ] || mkdir $@", "; @-mkdir $@"],
)
def test_a_directory_that_is_only_made_is_free_for_honest_files(recipe: str) -> None:
    assert make_targets(f"build:{recipe}\ntest: | build\n\tsay\n") == {"test"}
    assert make_targets(f"out/deep:{recipe}\n") == frozenset()


@each("recipe", ["; mkdir -p $@ && say", "\n\tmkdir -p $@\n\tsay", "; mkdir $@; ./try", ""])
def test_a_directory_for_which_more_is_done_is_a_target(recipe: str) -> None:
    assert make_targets(f"build:{recipe}\n") == {"build"}


def test_a_word_that_is_always_phony_is_free_for_honest_files() -> None:
    makefile = "docs test:\n\tsay\n.PHONY: docs\n.PHONY: test\n"
    assert make_targets(makefile) == frozenset()
    assert make_targets(f"ifdef X\n{makefile}endif\n") == {"docs", "test"}
    # Of a variable's values only the one at that place counts.
    assert make_targets(f"X = test\nX = docs\n{makefile}".replace("Y: test", "Y: $(X)")) == {"test"}


def test_included_makefiles_are_read_and_each_is_asked_for() -> None:
    files = {
        "conf/rules.make": "a.txt:\n\tsay\ninclude ./conf/rules.make deeper\n",
        "deeper": "$(OUT):\n\tsay\n",
    }
    asked: list[str] = []

    def read(name: str) -> str:
        asked.append(name)
        return files.get(name, "")

    makefile = "D = conf\nOUT = b.txt\ninclude $(D)/rules.make\n-include local $(wildcard x/*.in)\n"
    assert make_targets(makefile, read) == {"a.txt", "b.txt", "**/*.d"}
    assert asked == ["conf/rules.make", "deeper", "local", "x/*.in"]


def test_dependencies_that_a_compiler_wrote_are_kept() -> None:
    assert make_targets("-include kit.d\n") == {"**/*.d"}
    assert make_targets("include *.mk\n") == {"**/*.d"}
    assert make_targets("include a.mk\n") == frozenset()


@each(
    "makefile",
    [
        "A = $(A) $(A)\n$(A): ; say\n",
        "".join(f"X{n} = {f'$(X{n + 1})' * 9} a\n" for n in range(40)) + "$(X0): ; say\n",
        "".join(f"X{n} = {f'$(X{n + 1}) ' * 99}\n" for n in range(40)) + "$(X0): ; say\n",
        f"A = {'a' * 500}\n$(subst a,$(A),$(A) $(subst a,$(A),$(A))): ; say\n",
        "$(" * 50_000 + ")" * 50_000 + ": ; say\n",
        "define A\n" * 50_000,
        "$$0$$$(1$)$(:=)$() $(subst ,,) $(addprefix x) ${patsubst a,b}: ; say\n",
        "x: ; " + "mkdir " * 50_000,
    ],
)
def test_attack_a_makefile_without_end_is_read_in_bounded_time(makefile: str) -> None:
    began = time.process_time()
    assert len(make_targets(makefile)) < 1_000_000
    assert time.process_time() - began < 20
