"""Where patterns count: keywords that were written down are no work."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.graders.files import FilesGrader, without_comments
from assay.scoring import Json, SubScore
from assay.types import Workspace
from tests.each import each
from tests.written_files import write_files

TASK = "Add exponential retry to client.py, e.g. with a limit; see README."
PATTERNS = ["retry", r"backoff\s*\*=\s*2", "max_retries"]
WORDS = "retry\nbackoff *= 2\nmax_retries\n"
SOURCE = {
    "client.py": "def get(url):\n    raise NotImplementedError\n",
    "config.yaml": "url: here\n",
    "README.md": "# Client\n",
    "docs/guide.md": "How to use it\n",
}
HONEST = "def get(url, max_retries=3):\n    backoff = 1\n    # retry\n    backoff *= 2\n"

Tree = Mapping[str, str | bytes]


async def grade(
    root: Path, changes: Tree, *, source: Tree | None = None, task: str = TASK, **options: object
) -> SubScore:
    given = SOURCE if source is None else source
    workspace = Workspace(
        path=str(write_files(root / "grading", {"grading.py": WORDS + HONEST})),
        submitted=str(write_files(root / "left", {**given, **changes})),
        source=str(write_files(root / "source", given)),
    )
    options = {"patterns": PATTERNS, **options}
    return await FilesGrader.grade(
        1.0, None, gate=False, workspace=workspace, question=task, **options
    )


CODE_OF_WORDS = '"""\n' + WORDS + '"""\n'

STUFFED: dict[str, Tree] = {
    "nothing": {},
    "note": {"notes.txt": WORDS},
    "note_without_suffix": {"notes": WORDS},
    "note_named_as_a_word_of_the_task": {"retry": WORDS, "Add": WORDS, "e.g": WORDS},
    "note_named_as_what_the_task_names": {"client.txt": WORDS, "client.py.txt": WORDS},
    "note_in_a_directory_the_task_names": {"retry/notes.txt": WORDS},
    "new_settings": {"retry.yaml": WORDS, "package.json": WORDS},
    "settings_without_any": {"retry.toml": WORDS, "retry.json": WORDS, "retry.html": WORDS},
    "comments_in_settings": {
        "config.yaml": "url: here\n" + re.sub("^", "# ", WORDS[6:], flags=re.MULTILINE),
        "Dockerfile": "FROM base\n# max_retries\n# backoff *= 2\n",
    },
    "note_named_as_a_word_that_documents_have": {"support": WORDS, "install": WORDS},
    "old_prose": {"docs/guide.md": WORDS},
    "names_of_files": {"retry": "", "max_retries": "", "backoff *= 2": ""},
    "hidden_files": {".hidden/.x": WORDS, ".git/x.py": "retry\n"},
    "comments": {"client.py": SOURCE["client.py"] + re.sub("^", "# ", WORDS, flags=re.MULTILINE)},
    "comments_in_a_new_file": {"more.js": f"/* {WORDS} */", "more.sh": "# retry max_retries"},
    "docstring": {"client.py": CODE_OF_WORDS + SOURCE["client.py"]},
    "prose_for_code": {"client.py": "I added retry, where backoff *= 2 up to max_retries.\n"},
    "string": {"client.py": f"{SOURCE['client.py']}def _(): return {WORDS!r}\n"},
    "f_string": {"client.py": f"{SOURCE['client.py']}_ = f{WORDS!r}\n"},
    "bytes": {"client.py": f"{SOURCE['client.py']}_ = b{WORDS!r}\n"},
    "strings_of_other_languages": {
        "more.js": "f(`retry max_retries`, 'backoff *= 2', \"retry\");\n",
        "more.go": "var s = `retry max_retries backoff *= 2`\n",
        "more.c": 'char *s = "retry max_retries backoff *= 2";\n',
    },
    # Each line is Python, but only one of them does anything.
    "bare_words": {"notes.py": "retry\nmax_retries\nx = 1\n"},
}


@pytest.mark.parametrize("name", STUFFED)
async def test_attack_keywords_without_code(name: str, tmp_path: Path) -> None:
    node = await grade(tmp_path, STUFFED[name])
    assert node.value == 0.0


async def test_attack_comments_beside_code_that_was_there(tmp_path: Path) -> None:
    node = await grade(
        tmp_path, {"client.py": f"# retry\n{SOURCE['client.py']}"}, patterns=["get", "retry"]
    )
    assert node.value == 0.5


HONEST_WORK: list[tuple[list[str], Tree]] = [
    (PATTERNS, {"client.py": HONEST}),  # with a comment
    (PATTERNS, {"retry.py": "max_retries = 3\ndef retry(f):\n    backoff = 1\n    backoff *= 2\n"}),
    (PATTERNS, {"client.go": "func retry(max_retries int) { backoff *= 2 }\n"}),
    (PATTERNS, {"client.py": HONEST.replace("\n", "\r\n")}),
    (PATTERNS, {"client.py": f"LOG = 'retry {{}} of max_retries'\n{HONEST}"}),
    (
        PATTERNS,
        {
            "client.js": "const u = 'http://a', r = /[/*]'/; let max_retries, backoff;\n"
            "function retry() { backoff *= 2; } // `\n"
        },
    ),
    (PATTERNS, {"README.md": WORDS}),  # which the task names
    # Strings that are asked for.
    ([r"['\"]application/json['\"]"], {"client.py": "TYPE = 'application/json'\n"}),
    (["max_retries"], {"client.py": "print(f'after {max_retries} of {many}')\n"}),
    (["max_retries"], {"client.js": "log(`after ${max_retries}`);\n"}),
    ([r"kit\.h"], {"client.c": '#include "kit.h"\n'}),
    (["left-pad"], {"client.js": "import pad from 'left-pad';\n"}),
]


@pytest.mark.parametrize(("patterns", "changes"), HONEST_WORK)
async def test_honest_work_keeps_its_marks(
    patterns: list[str], changes: Tree, tmp_path: Path
) -> None:
    assert (await grade(tmp_path, changes, patterns=patterns)).value == 1.0


@pytest.mark.parametrize(
    ("file", "task", "value"),
    [
        ("REPORT.md", "Write REPORT.md about the client.", 1.0),
        ("REPORT.md", "Write report.md, please.", 1.0),
        ("REPORT.md", "Write a report.", 0.0),
        ("REPORT.md", "Write MY-REPORT.md.", 0.0),
        ("REPORT.md", "", 0.0),
        ("docs/guide.md", "Mend the guide", 1.0),
        ("docs/guide.md", "Mend the docs", 1.0),
        ("docs/guide.md", "Mend it", 0.0),
        ("config.yaml", "Mend config.yaml.", 1.0),
        ("config.yaml", "Set it.", 0.0),
        ("Dockerfile", "Write Dockerfile.", 1.0),
        ("Dockerfile", "Do it.", 0.0),
        (".github/workflows/ci.yml", "Write ci.yml.", 1.0),
        ("templates/login.html", "Write login.html.", 1.0),
        ("requirements-dev.txt", "Write requirements-dev.txt.", 1.0),
        (".npmrc", "Write .npmrc.", 1.0),
    ],
)
async def test_notes_and_prose_and_settings_and_templates_count_if_the_task_names_them(
    file: str, task: str, value: float, tmp_path: Path
) -> None:
    node = await grade(tmp_path, {file: WORDS}, task=task)
    rows = cast("list[dict[str, Json]]", (node.metadata or {})["checks"])
    assert (node.value, {str(row["file"]) for row in rows}) == (value, {file if value else "None"})


async def test_what_the_author_names_is_searched_as_it_is(tmp_path: Path) -> None:
    stuffed = CODE_OF_WORDS + SOURCE["client.py"]
    changes = {"notes.txt": WORDS, "config.yaml": WORDS, "client.py": stuffed}
    for named, value in (("*.txt", 1.0), ("*.yaml", 1.0), ("client.py", 1.0), ("CLIENT.py", 0.0)):
        assert (await grade(tmp_path, changes, files=[named])).value == value, named


@pytest.mark.parametrize("source", [{}, {"README.md": "# Notes\n"}])
async def test_where_the_task_is_no_program_everything_is_searched(
    source: Tree, tmp_path: Path
) -> None:
    assert (await grade(tmp_path, {"ANSWER": WORDS}, source=source, task="Go.")).value == 1.0


async def test_a_source_that_never_parsed_is_searched_as_it_is(tmp_path: Path) -> None:
    source = {"old.py": "print 'hello'\n"}
    node = await grade(tmp_path, {"old.py": f"print 'hello'\n{HONEST}"}, source=source)
    assert node.value == 1.0


async def test_the_evidence_says_where_it_looked_and_why_a_find_did_not_count(
    tmp_path: Path,
) -> None:
    """The seed wants to know where; a list of files left unread did not say what they have."""
    changes = {"notes.txt": WORDS, "client.py": f"# retry\n{SOURCE['client.py']}", "a.py": "a b"}
    patterns = ["retry", "a b", "url: here", "nowhere"]
    node = await grade(tmp_path, changes, patterns=patterns)
    evidence = dict(node.metadata or {})
    rows = cast("list[dict[str, Json]]", evidence["checks"])
    assert [row["file"] for row in rows] == [None, None, None, None]
    other = "found where it does not count"
    elsewhere = "is no program, and the task does not name it"
    in_comments = "client.py has it in comments and strings alone, without code that matches"
    assert [row.get("why") for row in rows] == [
        f"{other}: {in_comments}; notes.txt {elsewhere}",
        f"{other}: a.py does not parse",
        f"{other}: config.yaml {elsewhere}",
        "in none of the 6 files that were searched",
    ]
    assert evidence["looked_in"] == "code of programs, and files that the task names"
    limited = await grade(tmp_path, {}, patterns=["x"], files=["*.none"])
    assert cast("list[dict[str, Json]]", (limited.metadata or {})["checks"])[0]["why"] == (
        "no such file"
    )


LEXED = [
    ("javascript", "x // c", "x     "),
    ("javascript", "a /* c\nd */ b", "a     \n     b"),
    ("javascript", "'// no' + \"/* no\" + `// ${no}`", "'// no' + \"/* no\" + `// ${no}`"),
    ("javascript", "x = /['\"/*]/; y // c", "x = /['\"/*]/; y     "),
    ("rust", "fn f<'a>(x: &'a str) {} // c", "fn f<'a>(x: &'a str) {}     "),
    ("c", "/* open", "       "),
    ("c", "x // c \\\nd\ny", "x       \n \ny"),
    ("cpp", "x\n# if 0\nc\n#endif\ny", "x\n      \n \n      \ny"),
    ("rust", "x /* c /* d */ e */ y", "x                   y"),
    ("ruby", "x\n__END__\nc", "x\n       \n "),
    ("other-hashes", "x\n=pod\nc\n=cut\ny", "x\n    \n \n    \ny"),
    ("other-hashes", "a#b # c", "a#b    "),
    ("ruby", "x\n=begin\nc\n=end\ny", "x\n      \n \n    \ny"),
    ("other-dashes", "select 1 -- c", "select 1     "),
    ("other-dashes", "x --[[ c\nd ]] y", "x       \n     y"),
    ("other-dashes", "x = {-1} -- c", "x = {-1}     "),
    ("haskell", "x' {- c\nd -} y -- c", "x'     \n     y     "),
]
LANGUAGES = sorted({language for language, _, _ in LEXED})


@each(("language", "text", "code"), LEXED)
def test_comments_are_blanked(language: str, text: str, code: str) -> None:
    assert without_comments(text, language) == code


@each(
    ("language", "text"),
    [("rust", 'r#"c " c"#'), ("rust", 'br"c"'), ("java", '"""\nc " c\n"""'), ("java", '"""c')],
)
def test_attack_words_in_texts_of_other_kinds(language: str, text: str) -> None:
    bare = without_comments(f"x {text} ", language, texts=False)
    assert "c" not in bare
    assert bare.startswith("x ")


@given(st.text(alphabet="ab'\"`/*#-[]{}=\\\n ", max_size=60), st.sampled_from(LANGUAGES))
def test_blanking_keeps_every_place(text: str, language: str) -> None:
    code = without_comments(text, language)
    assert len(code) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, code, strict=True))
    assert code.count("\n") == text.count("\n")


@each(
    "text",
    [
        "=/[",
        "'\\",
        "/*",
        "=/",
        "`",
        "'a 'b",
        "--[[",
        "\n=begin",
        "{-",
        'r#"',
        '"""',
        "\n#if 0",
        "/*/",
    ],
)
def test_attack_text_that_a_lexer_needs_quadratic_time_for(text: str) -> None:
    """A minute instead of a moment, if one of the expressions may look too far."""
    hostile, started = text * (100_000 // len(text)), time.process_time()
    for language in LANGUAGES:
        assert len(without_comments(hostile, language)) == len(hostile)
    assert time.process_time() - started < 10
