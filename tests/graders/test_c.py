"""The kind ``c_tests``: a judge in C that shares no process with what it judges.

Each case is graded through the grader itself, with both sandboxes: what is tested is that a value
of the submission is all that ever reaches the judge.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from assay.agents import EchoAgent
from assay.agents.scripted import ScriptedAgent
from assay.errors import GraderError
from assay.eval.cheats import c_sources
from assay.eval.cheats.cheat import Cheat
from assay.eval.proofs.scene import read_scene
from assay.graders.c_tests import CTestsGrader
from assay.scoring import Json, SubScore
from assay.tasks import Taskset
from assay.tasks.case import load_case
from assay.tasks.task import case_task
from assay.types import Workspace
from tests.attacks.scenes import scenes
from tests.graders.implemented_trees import lay

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

HEADER = "#ifndef KIT_H\n#define KIT_H\nint add(int a, int b);\nint is_prime(int n);\n#endif\n"
STUB = '#include "kit.h"\nint add(int a, int b) { return 0; }\nint is_prime(int n) { return 0; }\n'
ADD = "int add(int a, int b) { return a + b; }\n"
PRIME = (
    "int is_prime(int n) { if (n < 2) return 0;"
    " for (int d = 2; d * d <= n; d++) if (n % d == 0) return 0; return 1; }\n"
)
HONEST = f'#include "kit.h"\n{ADD}{PRIME}'
TESTS = """\
#include <assert.h>
#include "kit.h"
void test_add(void) { assert(add(2, 3) == 5); assert(add(-1, 1) == 0); }
void test_prime(void) { assert(is_prime(7)); assert(!is_prime(9)); }
"""
SOURCE = {"kit.h": HEADER, "kit.c": STUB, "Makefile": "check:\n\tcc -c kit.c\n"}


async def grade(
    root: Path,
    left: Mapping[str, str],
    *,
    source: Mapping[str, str] = SOURCE,
    tests: str = TESTS,
    **options: object,
) -> SubScore:
    lay(root / "hidden", {"test_kit.c": tests})
    workspace = Workspace(
        path=str(lay(root / "left", {**source, **left})), source=str(lay(root / "source", source))
    )
    given: dict[str, Any] = {
        "headers": ["kit.h"],
        "sources": ["*.c"],
        "inject": [{"src": str(root / "hidden" / "test_kit.c"), "dest": "tests/test_kit.c"}],
        **options,
    }
    return await CTestsGrader.grade(workspace=workspace, **given)


def outcomes(score: SubScore) -> dict[str, dict[str, Json]]:
    rows = cast("list[dict[str, Json]]", dict(score.metadata or {})["tests"])
    return {str(row["id"]).rpartition("::")[2]: row for row in rows}


CHEATS = {agent.name: agent.files for scene in scenes("c") for agent in scene.agents}


@pytest.mark.parametrize("cheat", list(CHEATS))
async def test_what_speaks_to_the_judge_gains_nothing(cheat: str, tmp_path: Path) -> None:
    left = {name: str(text) for name, text in CHEATS[cheat].items()}
    score = await grade(tmp_path, left, test_timeout_s=1.0)
    assert (score.value, score.passed) == (0.0, False)


async def test_hidden_tests_are_nowhere_to_be_read(tmp_path: Path) -> None:
    reads = """
#include <stdio.h>
#include <string.h>
#include <ftw.h>
static int found;
static int look(const char *path, const struct stat *s, int flag) {
    if (strstr(path, "test_kit") || strstr(path, "/assay/build") || strstr(path, "report"))
        found = 1;
    return 0;
}
int add(int a, int b) {
    ftw("/workspace", look, 8); ftw("/assay", look, 8); ftw("/tmp", look, 8);
    FILE *file = fopen(__FILE__, "r");
    return found ? a + b : 0;
}
int is_prime(int n) { return found ? n == 7 : 0; }
"""
    assert (await grade(tmp_path, {"kit.c": reads})).value == 0.0


async def test_honest_work_is_paid_and_says_that_the_judge_was_apart(tmp_path: Path) -> None:
    noisy = HONEST.replace("{ return a + b; }", '{ puts("adding"); perror("add"); return a + b; }')
    score = await grade(tmp_path, {"kit.c": f"#include <stdio.h>\n{noisy}"})
    assert (score.value, score.passed, score.assurance) == (1.0, True, "separate")
    assert set(outcomes(score)) == {"test_add", "test_prime"}


async def test_what_dies_is_wrong_or_missing_is_said_of_its_test_alone(tmp_path: Path) -> None:
    dies = "int add(int a, int b) { return a == 2 ? (kill(getppid(), SIGKILL), pause()) : a - b; }"
    tests = f"{TESTS}void test_minus(void) {{ assert(add(3, 1) == 2); }}\n"
    tests += "void test_sum(void) { assert(add(1, 1) == 2); }\n"
    code = f"#include <signal.h>\n#include <unistd.h>\n{dies}\n"
    score = await grade(tmp_path, {"kit.c": code}, tests=tests)
    said = {name: str(row.get("message")) for name, row in outcomes(score).items()}
    assert score.value == 0.25, said
    assert "its process ended in a call" in said["test_add"]
    assert "Assertion `add(1, 1) == 2' failed" in said["test_sum"]
    assert "it has no function is_prime" in said["test_prime"]


async def test_what_does_not_compile_is_0_with_the_compiler_s_words(tmp_path: Path) -> None:
    score = await grade(tmp_path, {"kit.c": "int add(int a, int b) { return a +; }\n"})
    assert (score.value, score.reason) == (0.0, "the submission does not compile")
    assert "expected expression" in str((score.metadata or {})["stderr"])


async def test_a_program_with_main_is_one_test(tmp_path: Path) -> None:
    program = TESTS + "int main(void) { test_add(); test_prime(); return add(0, 0); }\n"
    score = await grade(tmp_path, {"kit.c": HONEST}, tests=program)
    assert score.value == 1.0
    assert [*outcomes(score)] == ["tests/test_kit.c"]


ALL_SORTS = {
    "kit.h": """\
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "types.h"
typedef struct { double x, y; } point;
struct box { point low, high; char label[8]; unsigned dark : 1; bool shown; const char *name; };
enum colour { RED, GREEN = 7 };
struct list;
typedef struct list *list_t;
struct box grown(struct box b, double by);
void moved(struct box *b, double dx);
enum colour next(enum colour c);
bool truthy(int n);
int64_t wide(int8_t a, uint16_t b, uint64_t c, float d, long double e, char f);
const char *greeting(const char *name);
char *joined(const char *const *words, size_t n_words);
void doubled(int *values, size_t n);
double mean(const double values[], size_t n);
bool parsed(const char *text, int *out);
void upper(char *text);
int formatted(char *buffer, size_t size, int n);
int *range(int n, size_t *count);
int counter(void);
double root(double x);
list_t list_new(void);
void list_push(list_t list, void *item);
void *list_pop(list_t list);
int list_same(const struct list *a, const struct list *b);
void shout(const char *what);
static inline int here(void) { return 3; }
amount twice(amount a);
void each(int (*visit)(int), int n);
""",
    "types.h": "typedef struct { long cents; } amount;\n",
    "kit.c": "",
}
ALL_SORTS_DONE = """\
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kit.h"
struct list { int n; void *items[16]; };
struct box grown(struct box b, double by) {
    b.high.x += by; b.high.y += by; b.dark = !b.dark; b.shown = !b.shown;
    strcat(b.label, "!"); b.name = "grown"; return b; }
void moved(struct box *b, double dx) { b->low.x += dx; b->high.x += dx; }
enum colour next(enum colour c) { return c == RED ? GREEN : RED; }
bool truthy(int n) { return n; }
int64_t wide(int8_t a, uint16_t b, uint64_t c, float d, long double e, char f) {
    return a + b + (int64_t)c + (int64_t)(d * 2) + (int64_t)e + f; }
const char *greeting(const char *name) {
    static char said[64]; if (!name) return NULL;
    snprintf(said, 64, "hello %s", name); return said; }
char *joined(const char *const *words, size_t n_words) {
    char *all = calloc(256, 1);
    for (size_t i = 0; i < n_words; i++) strcat(all, words[i]);
    return all; }
void doubled(int *values, size_t n) { for (size_t i = 0; i < n; i++) values[i] *= 2; }
double mean(const double values[], size_t n) {
    double s = 0; for (size_t i = 0; i < n; i++) s += values[i]; return s / n; }
bool parsed(const char *text, int *out) {
    char *end; errno = 0; long n = strtol(text, &end, 10);
    if (*end || end == text) { errno = EINVAL; return false; } *out = n; return true; }
void upper(char *text) { for (; *text; text++) *text = toupper(*text); }
int formatted(char *buffer, size_t size, int n) { return snprintf(buffer, size, "<%d>", n); }
int *range(int n, size_t *count) {
    int *all = malloc(n * sizeof *all); for (int i = 0; i < n; i++) all[i] = i; *count = n;
    return all; }
int counter(void) { static int n; return ++n; }
double root(double x) { return sqrt(x); }
list_t list_new(void) { return calloc(1, sizeof(struct list)); }
void list_push(list_t list, void *item) { list->items[list->n++] = item; }
void *list_pop(list_t list) { return list->n ? list->items[--list->n] : NULL; }
int list_same(const struct list *a, const struct list *b) { return a == b; }
void shout(const char *what) { printf("%s!", what); }
amount twice(amount a) { a.cents *= 2; return a; }
void each(int (*visit)(int), int n) { while (n--) visit(n); }
int link(int a) { return a; }
"""
ALL_SORTS_TESTS = """\
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include "kit.h"
void test_structures(void) {
    struct box b = grown((struct box){{0, 0}, {1, 1}, "ab", 1, false, "small"}, 2.5);
    assert(b.high.x == 3.5 && !b.dark && b.shown && !strcmp(b.label, "ab!"));
    assert(!strcmp(b.name, "grown"));
    moved(&b, 1);
    assert(b.low.x == 1 && b.high.x == 4.5);
    moved(&b, 1);
    assert(b.low.x == 2);
    assert(twice((amount){21}).cents == 42);
}
void test_numbers(void) {
    assert(next(RED) == GREEN && next(GREEN) == RED);
    assert(truthy(256) && !truthy(0) && truthy(4) == true);
    assert(wide(-128, 65535, 1ull << 40, 0.5f, 3.0L, 'a') == -128 + 65535 + (1ll << 40) + 101);
    assert(fabs(root(2) - sqrt(2)) < 1e-12 && isnan(root(-1)) && here() == 3);
}
void test_texts(void) {
    const char *words[] = {"a", "", "bc"};
    char *all = joined(words, 3);
    assert(!strcmp(all, "abc"));
    free(all);
    assert(!strcmp(greeting("you"), "hello you") && greeting(NULL) == NULL);
    char text[] = "small", buffer[16];
    upper(text);
    assert(!strcmp(text, "SMALL"));
    assert(formatted(buffer, sizeof buffer, 42) == 4 && !strcmp(buffer, "<42>"));
}
void test_rows(void) {
    int values[] = {1, 2, 3};
    doubled(values, 3);
    assert(values[0] == 2 && values[2] == 6);
    assert(mean((double[]){1, 2, 6}, 3) == 3);
    doubled(NULL, 0);
    size_t count = 0;
    int *all = range(4, &count);
    assert(count == 4 && all[3] == 3);
    free(all);
}
void test_errors(void) {
    int n = 7;
    assert(parsed("12", &n) && n == 12);
    assert(!parsed("x", &n) && errno == EINVAL && n == 12);
}
void test_state(void) {
    assert(counter() == 1);
    assert(counter() == 2);
}
void test_state_is_fresh(void) { assert(counter() == 1); }
void test_handles(void) {
    list_t list = list_new(), other = list_new();
    int item = 3;
    char *word = "w";
    assert(list && list != other && list_same(list, list) && !list_same(list, other));
    list_push(list, &item);
    list_push(list, word);
    assert(list_pop(list) == word && *(int *)list_pop(list) == 3 && list_pop(list) == NULL);
}
void test_prints(void) {
    assert(freopen("/tmp/said", "w+", stdout));
    shout("hey");
    rewind(stdout);
    char said[16] = "";
    assert(fgets(said, sizeof said, stdout) && !strcmp(said, "hey!"));
}
"""
SAYS = {"range": {"return": "*count", "count": 1}, "upper": {"text": "strlen(text) + 1"}}


async def test_honest_values_of_every_sort_cross(tmp_path: Path) -> None:
    score = await grade(
        tmp_path,
        {"kit.c": ALL_SORTS_DONE},
        source=ALL_SORTS,
        tests=ALL_SORTS_TESTS,
        flags=["-lm", "-O2"],
        buffers=SAYS,
    )
    failed = {name: row for name, row in outcomes(score).items() if row["outcome"] != "passed"}
    assert not failed
    assert score.value == 1.0
    notes = cast("list[str]", (score.metadata or {})["notes"])
    assert [note.partition(" ")[0] for note in notes] == ["each()"]


LIES = """\
#include <stdlib.h>
#include <string.h>
#include "kit.h"
bool truthy(int n) { union { unsigned char c; bool b; } u = {255}; return u.b; }
list_t list_new(void) { return (list_t)0x1000; }
void list_push(list_t list, void *item) { }
void *list_pop(list_t list) { return (void *)"w"; }
"""


LIED_TO = """\
#include <assert.h>
#include "kit.h"
void test_bool_that_is_both(void) { bool b = truthy(0); assert(b == 1 && b); assert(!b); }
void test_pointer_of_its_own_for_ours(void) {
    int item = 3; list_push(0, &item); assert(*(int *)list_pop(0) == 3); }
void test_handle_looked_into(void) { assert(*(int *)list_new() == 0); }
"""


async def test_values_that_lie_about_themselves_pass_nothing(tmp_path: Path) -> None:
    score = await grade(tmp_path, {"kit.c": LIES}, source=ALL_SORTS, tests=LIED_TO, buffers=SAYS)
    assert score.value == 0.0
    assert len(outcomes(score)) == 3


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("int add(int (*f)(int), int b);", "add() .*'f' is a pointer to a function"),
        ("int add(int a, ...);", "add() .*a variable number of arguments"),
        ("int add(int *a, int b[]);", "add() .*'b' leads to one value, or to many"),
        ("int add(char *a, int b);", "add() .*nothing says how long 'a' may get"),
        ("int add(const char *a, int n);", "add() .*'a' is text, or has a length"),
        ("struct n { struct n *next; }; int add(struct n *a);", "'struct n'.*'handles'"),
        ("int *add(int a);", "add() .*its result is a pointer"),
        ("union u { int a; }; int add(union u a);", "cannot be copied"),
        ("extern int add;", "the variable 'add'"),
    ],
)
async def test_what_cannot_cross_is_refused_by_name(
    declared: str, said: str, tmp_path: Path
) -> None:
    source = {**SOURCE, "kit.h": f"{declared}\n"}
    tests = '#include "kit.h"\nvoid test_add(void) { (void)&add; }\n'
    with pytest.raises(GraderError, match=said.replace("()", r"\(\)")):
        await grade(tmp_path, {}, source=source, tests=tests)


@pytest.mark.parametrize(
    ("options", "tests", "said"),
    [
        ({"headers": ["no.h"]}, TESTS, "headers: nothing in the source is no.h"),
        ({}, "int helper;\n", "neither main nor a function"),
        ({}, TESTS.replace("add(2", "sub(2"), "the author's tests do not compile"),
        ({"buffers": {"sub": {"a": 1}}}, TESTS, "no header declares a function 'sub'"),
        ({"buffers": {"add": {"z": 1}}}, TESTS, "no parameter 'z'"),
    ],
)
async def test_the_author_s_mistakes_are_errors(
    options: dict[str, Any], tests: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(GraderError, match=said):
        await grade(tmp_path, {"kit.c": HONEST}, tests=tests, **options)


@pytest.mark.parametrize("cheat", c_sources.CHEATS, ids=[cheat.id for cheat in c_sources.CHEATS])
async def test_the_library_s_cheats_gain_nothing(cheat: Cheat, tmp_path: Path) -> None:
    case = load_case(_written_case(tmp_path))
    deeds = cheat.deeds(read_scene(case_task(case), "", str(tmp_path / "source")))
    assert deeds is not None
    run = (await Taskset.from_file(str(tmp_path)).run(ScriptedAgent(deeds=deeds))).runs[0]
    assert run.grade.reward == 0.0


async def test_a_case_declares_it(tmp_path: Path) -> None:
    _written_case(tmp_path, HONEST)
    run = (await Taskset.from_file(str(tmp_path)).run(EchoAgent())).runs[0]
    assert run.grade.reward == 1.0


def _written_case(root: Path, kit: str = STUB) -> str:
    lay(root / "source", {**SOURCE, "kit.c": kit})
    lay(root / "hidden", {"test_kit.c": TESTS})
    text = """\
id: kit
task: {prompt: "Mend kit.c."}
source: {path: source}
matrix: {harnesses: [echo], models: [m]}
graders:
  - type: c_tests
    inject: [{src: hidden/test_kit.c, dest: tests/test_kit.c}]
    headers: [kit.h]
    sources: [kit.c]
    flags: [-lm]
    buffers: {add: {}}
"""
    (root / "case.yaml").write_text(text)
    return str(root)
