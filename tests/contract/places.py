"""Directories that people are in, each with the commands that make no sense there."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from assay.store import Catalog, Database, Datasets, Jobs
from assay.store.records import RunRecord
from assay.store.runs import Store
from tests.command_line import assay
from tests.stored_cells import graded_cell
from tests.written_files import write_files

__all__ = ["PLACES", "Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """A directory.

    Attributes:
        wrong: Commands, a line each; an empty line is `assay` alone.
        files: Its files.
        before: Commands that were given there before.
        more: What else is done to it.
    """

    wrong: str
    files: dict[str, str]
    before: tuple[str, ...] = ()
    more: Callable[[Path], None] = lambda _: None

    def lay(self, root: Path) -> Path:
        """Make it."""
        write_files(root, self.files)
        self.more(root)
        for line in self.before:
            done = assay(*line.split(), cwd=root)
            assert done.returncode in (0, 1), (line, done.stderr)
        return root


def _case(name: str, rest: str = "", graders: str = "{type: contains, substring: h}") -> str:
    return f"id: {name}\ntask: {{prompt: hi}}\ngraders: [{graders}]\n{rest}"


_NOTHING = """

eval
eval evals
label answers.jsonl
repot
rnu
run --hraness
demo .
ASSAY_DB=typo report
ASSAY_DB=typo runs
runs revew latest
runs export latest
runs trainability latest
runs review latest
runs promote latest c --name x
run --resume latest
regrade latest
compare latest latest
graders list
graders show g
graders list g
graders diff g
graders export
graders lock g
graders delete g
graders update g --set name=n
graders show g --db none/x
graders show says --wat
graders shw
graders validate graders.yaml
graders list --db mysql://x
calibrate cards
calibrate --list
calibrate graders.yaml labels.jsonl --htm x
calibrate label gone.jsonl
grade labels.jsonl
grade labels.jsonl -g graders.yaml
grade labels.jsonl graders.yaml --judge-cache off
validate absent.py
list absent.yaml
fake --judge --port 65536
fake --judge --port -1
fake --judge --port x
fake --judge --fault nonsense
fake --judge gone.jsonl
server jobs
server lst jobs
serve --prot 0
serve --host 0.0.0.0 --port 0
serve --port 70000
serve --port 0 --db mysql://x
serve --set endpoint_secrets.AWS_SECRET_ACCESS_KEY=x
serve env missing.py
serve grader exact --db typo
view --no-open --db typo
view --port 70000
view --db mysql://x
view --hots x
"""

_SUITE = """
run evals --harness agent --model fkae
run evals --harness replay
run evals --harness mine
run evals --harness ecko
run evals --model good --model bad --harness replay
run evals --resume latest
report lates
run rows.jsonl
run env.py
validate rows.jsonl
validate env.py
validate twins
run twins
run wrong/option
run wrong/turn
run wrong/harness
run wrong/rubric
run wrong/yaml
run wrong/field
validate wrong/recording
validate wrong/bad
validate wrong/rate
validate wrong/rates
validate wrong/k
validate wrong/hat
validate wrong/number
OPENAI_API_KEY= OPENAI_BASE_URL= run evals --model openai:gpt-5 --harness agent
run bare
regrade none
regrade latest --only sloved
regrade latest none.yaml
report latest --by ""
compare latest --by ""
run evals --harness echo --by topc
runs promote latest c1 --name x
runs promote latest c --name x
runs promote latest c1 --trial 9 --name x
runs promote latest c1 --trial 1 --name ''
runs promote latest c1 --trial 1 --name bad
runs promote latest c1 --trial 1 --name bad/two
runs promote latest c1 --trial 1 --name group --force
"""
_WRONG_CASES = {
    "field": _case("x", "matrx: {}\n"),
    "turn": _case("x", graders="{type: trace, require_tools: [bash]}"),
    "yaml": "id: x\ntask: {prompt: p\n",
    "option": _case("x", graders="{type: command, cmd: 'true', expect_ext: 1}"),
    "harness": _case("x", "matrix: {harnesses: [ecko], models: [m]}\n"),
    "rubric": _case("x", graders="{type: model_judge, rubric: case.yaml}"),
    "recording": _case("x", "matrix: {harnesses: [replay], models: [fix, fxi]}\n"),
    "bad": _case("x", "selftest: {bad: [bad]}\n"),
    "rate": _case("x", "expect: {pass_rate: 80}\n"),
    "rates": _case("x", "expect: {pass_rat: 0.8}\n"),
    "k": _case("x", "expect: {pass_at_k: {k: 0, rate: 1}}\n"),
    "hat": _case("x", "expect: {pass_hat_k: {k: 3}}\n"),
    "number": _case("x", "expect: {pass_hat_k: 0.5}\n"),
}

_ENV = """from dataclasses import replace
from assay import Environment
from assay.graders import exact_match
env = Environment("geography")
@env.template()
async def capital(country: str = "France"):
    answer = yield f"What is the capital of {country}?"
    yield exact_match(answer, "Paris")
tasks = [replace(capital(country=name), slug=name) for name in ("France", "Kenya")]
"""
_NEEDS = """from assay import Environment
env = Environment("needs")
@env.template()
async def add(a: int):
    yield "p"
    yield 1.0
"""
_ENVIRONMENT = """
run env.py
run env.py --harness agent
run env.py --harness agent.py:solv
run env.py --harness agent.py --model m
run env.py --harness no.py:solve
run env.py --harness ecko --model m
run env.py --harness echo --task Keny
run env.py --harness echo --env agent.py
run agent.py --harness echo
run quits.py --harness echo
run broken.py --harness echo
run env.py env.py twin.py --harness echo
list agent.py
list broken.py
list env.py --out env.py
list env.py --out rows.txt
list typo.py
run typo.py
run needs.py --harness echo
selftest agent.py
selftest empty.jsonl --env env.py
run empty.jsonl --env env.py --harness echo
"""

_TWO = """from assay import Environment
one = Environment("first")
two = Environment("second")
@two.template()
async def t():
    yield "p"
    yield 1.0
"""
_SERVED = """
serve env none.py
serve env broken.py
serve env quits.py
serve env dies.py
serve env syntax.py
serve env two.py
serve env two.py:one
serve env wrong.py:two
serve env two.py:thrid
serve env two.py:two --host 0.0.0.0
serve env two.py:two --token-env NO_SUCH
SHORT=abcde serve env two.py:two --token-env SHORT
LONG=0123456789abcdef serve env two.py:two --host 192.0.2.1 --token-env LONG
serve env two.py:two --workers 0
serve env two.py:two --set log=/nowhere/at/all
serve env two.py:two --set with_parent=true
"""

_GRADERS_SERVED = """
serve grader gone.py
serve grader broken.py
serve grader quits.py
serve grader many.py
serve grader many.py:gade
serve grader odd.py
serve grader gone.yaml
serve grader files.yaml
serve grader no-such-key
serve grader key@new
serve grader good.py --host 0.0.0.0
serve grader good.py --host ::
serve grader good.py --token-env NOT_SET
serve grader good.py --set score_range=[1,0]
serve grader good.py --set score_range=1
serve grader files.yaml --set score_range=[0,1]
serve grader good.py --port 65536
serve grader good.py --set max_batch=0
fake --judge words.txt
fake calls.jsonl
fake more.jsonl
fake number.jsonl
fake fault.jsonl
"""

_STORED = f"""
server show trace {"f" * 32}
server show trace x
server collect trace one
server delete trace --yes
server delete trace {"a" * 32} --before 7d --yes
server delete trace --before soon --yes
server show dataset tow
server show dataset two --db none
server delete dataset one --yes
server delete dataset two
server delete dataset two none --yes
server list datasets --project absent
server list datasets --limit 0
server list datasets --after x
server list datasets --since 1h
server delete datasets --yes
server show job none
server delete job none --yes
server export job none
server list jobs --status faild
server list jobs --item 1
server list keys --project qa
server list keyz
server delete keys a b
server delete keys none
server delete scores a --yes
server delete scores --yes
server delete scores --before 2026-01-01
server create project 'Q A'
server limit project none --at-once 3
server limit project default --at-once 1000001
server list audit --project absent
server create key x --project none
server create key x --role owner
server create key x --expires 2026-01-01
graders show h
graders show g@0
graders show gg
graders diff g --from 9
graders list --kind fuction
runs --status broken
runs --serach x
runs delete none --yes
runs delete 20261120-a
run --resume nope
report lone
view tow --no-open
compare one
compare one tow
compare two latest --max-drop 0
compare one two --model aa
compare one two --model a --model b --model a
compare one two --case none
runs export one --format atif --no-files
runs export one --into x
runs export one --format atif --json
"""


def _store(root: Path) -> None:
    """Two of most things, and two runs."""
    with Database.open(root / ".assay") as database:
        graders = Catalog(database)
        graders.create("default", "g", kind="custom", definition={}, digest="d1")
        graders.add_version("default", "g", kind="custom", definition={"path": "x"}, digest="d2")
        for key in ("one", "two"):
            Datasets(database).create("default", key, "", [{"answer": "4"}])
        Jobs(database).create("default", grader="g", dataset="one")
    with Store.open(str(root / ".assay")) as store:
        for number, name in enumerate(("one", "two")):
            run = f"2026112{number}-a"
            when = f"2026-11-2{number}T09:00:00+00:00"
            store.create_run(RunRecord(id=run, created_at=when, label=name, planned=2))
            for model in ("a", "b"):
                store.add_cell(graded_cell(run, model=model), {})
            store.finish_run(run)


_GRADERS = """
graders create 'Bad Key' --set kind=custom
graders create x
graders create x good.py --set kind=custom
graders create x --set kind=binary_judge --set 'criteria= '
graders create x --set kind=custom --set judge_model=m
graders create x --set kind=custm
graders create x graders.yaml --set batch=3
graders create x --set kind=custom --set path
graders create x good.py --set range=[1,0]
graders create x --set kind=custom --set path=@absent
graders create x mine.yaml --set path=x
graders create x --set kind=prebuilt_judge --set type=FAITH
graders create x --set kind=external_endpoint --set url=http://127.0.0.1:9/
graders create x --set kind=external_endpoint --set url=https://u:p@x.com
graders create x --set kind=external_endpoint --set url=https://x.com --set secret_env=HOME
graders create x bad.yaml
graders create x files.yaml
graders create x row.yaml
graders create x absent.yaml
graders create x absent.py
graders create x --set kind=custom --sample absent.jsonl
graders create x .
graders create x --function good.py
graders create x --kind custom
graders create x good.py --set name=1
graders update totals
graders update totals --set kind=custom --expected 7
graders update other --set batch=@words.json
graders test totals rows.jsonl
graders show totals --version 1
graders show totals@9
graders show totals@
graders show totls
graders list --project absent
graders delete other
graders update other --set kind=custom
graders import new
graders import absent
graders import lone --project default
validate graders.yaml --sample rows.jsonl
grade rows.jsonl totals --project absent
grade rows.jsonl totals@2
calibrate totals none.jsonl
calibrate totals labels.jsonl --label human
calibrate none.yaml labels.jsonl
calibrate none.py labels.jsonl
calibrate nobody labels.jsonl
calibrate totals@x labels.jsonl
calibrate graders.yaml labels.jsonl --cluster case
calibrate graders.yaml labels.jsonl --attacks none.jsonl
calibrate graders.yaml labels.jsonl --threshold=2
calibrate graders.yaml labels.jsonl --threshold=nan
calibrate graders.yaml
calibrate cards none
calibrate labels.jsonl
calibrate graders.yaml graders.yaml
calibrate graders.yaml --labels-from-store
calibrate label empty.jsonl
calibrate label labels.jsonl --classes ONE
calibrate label labels.jsonl --label lable --out x.jsonl
"""

_ROWS = """
grade rows.jsonl option.yaml
grade rows.jsonl gates.yaml
validate gates.yaml
grade rows.jsonl graders.yaml --label expected
grade graders.yaml graders.yaml
grade rows.jsonl rows.jsonl
grade rows.jsonl graders.yaml --map answer
grade rows.jsonl graders.yaml --map answer=a --map answer=b
grade rows.jsonl graders.yaml --map answer=answr
grade pipe graders.yaml
grade utf16.jsonl graders.yaml --on-bad-row skip
grade cut.jsonl graders.yaml
grade cut.jsonl graders.yaml --out p/
grade cut.jsonl grade.py
grade bad.jsonl graders.yaml --on-bad-row skip --out p/
grade number.jsonl graders.yaml
grade question.jsonl graders.yaml
grade nan.jsonl graders.yaml
grade list.jsonl graders.yaml
grade roles.jsonl grade.py
grade completion.jsonl grade.py
grade twice.jsonl grade.py
grade table.csv.gz graders.yaml --map answer=response,expected=target
grade - graders.yaml --out p/
grade rows.jsonl graders.yaml --project mine
grade rows.jsonl graders.yaml --threshold 0.5 --threshold 0.9
grade rows.jsonl graders.yaml --shard-rows 2
grade rows.jsonl graders.yaml --retry-errors
grade rows.jsonl graders.yaml --html p.html
grade rows.jsonl graders.yaml --out p/ --junit p.xml
grade rows.jsonl graders.yaml --out p.csv
grade rows.jsonl graders.yaml --out p.parquet
grade rows.jsonl graders.yaml --out p
grade rows.jsonl graders.yaml --by topc
report latest --by topc
grade rows.jsonl graders.yaml --by ""
grade rows.jsonl graders.yaml --by expected --out x/
grade rows.jsonl grade.py --range 1
grade rows.jsonl grade.py --isolation 1
grade rows.jsonl grade.py --out rows.jsonl
grade rows.jsonl plain.py
grade rows.jsonl blank.yaml
grade rows.jsonl endless.yaml
import openai rows.jsonl
run --resume latest
runs promote latest 1 --name x
"""
_GOOD = "async def grade(thread: StringThread) -> float:\n    return 1.0\n"
_TOTALS = "- {type: exact_match}\n- {type: contains, substring: '4', weight: 3}\n"


def _odd_files(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "utf16.jsonl").write_bytes('{"answer": "4"}\n'.encode("utf-16"))
    (root / "table.csv.gz").write_bytes(gzip.compress(b"id,response,target\na,42,42\nc\n"))


_GIVEN = '{"answer": "1", "expected": 1, "topic": "x"}\n'
PLACES: dict[str, Place] = {
    "nothing": Place(_NOTHING, {}),
    "suite": Place(
        _SUITE,
        {
            "evals/c1/case.yaml": _case("c1", "metadata: {topic: x}\n"),
            **{
                f"evals/c1/recordings/{one}/answer.txt": "hi"
                for one in ("bad", "group/inner", "reference")
            },
            "wrong/recording/recordings/fix/answer.txt": "hi",
            "bare/case.yaml": _case("bare"),
            **{f"wrong/{name}/case.yaml": text for name, text in _WRONG_CASES.items()},
            **{f"twins/{name}/case.yaml": _case("same") for name in ("a", "b")},
            "rows.jsonl": '{"answer": "a"}',
            "env.py": "",
        },
        ("run evals --harness echo --trials 2",),
    ),
    "environment": Place(
        _ENVIRONMENT,
        {
            "env.py": _ENV,
            "agent.py": "async def solve(run):\n    return 'Paris'\n",
            "quits.py": "import sys\nsys.exit(0)\n",
            "broken.py": "1 / 0\n",
            "twin.py": _ENV,
            "empty.jsonl": "",
            "needs.py": _NEEDS,
            "typo.py": f"{_NEEDS}tasks = [add(a='x')]\n",
        },
    ),
    "environments to be served": Place(
        _SERVED,
        {
            "none.py": "x = 1",
            "broken.py": "1/0",
            "quits.py": "import sys; sys.exit(0)",
            "dies.py": "import os; os._exit(0)",
            "syntax.py": "def (",
            "two.py": _TWO,
            "wrong.py": f"{_TWO}t(x=1)",
        },
    ),
    "graders and models to be served": Place(
        _GRADERS_SERVED,
        {
            "broken.py": "def (",
            "quits.py": "import sys; sys.exit(0)",
            "many.py": "def one(answer): ...\ndef two(answer): ...",
            "odd.py": "def grade(anser, expected): return 1.0",
            "good.py": "def grade(answer): return 1.0",
            "files.yaml": "- {type: files, patterns: [x]}",
            "words.txt": '"a"\nnonsense',
            "calls.jsonl": '"a"\n{"calls": ["ls"]}',
            "more.jsonl": '{"calls": [{"name": "x", "arguments": {}, "id": 1}]}',
            "number.jsonl": '{"text": 3}',
            "fault.jsonl": '{"fault": "nonsense"}',
        },
        more=lambda root: Database.open(root / ".assay").close(),
    ),
    "things that are stored": Place(_STORED, {}, more=_store),
    "stored graders": Place(
        _GRADERS,
        {
            "graders.yaml": _TOTALS,
            "good.py": _GOOD,
            "rows.jsonl": '{"id": "right", "answer": "4", "expected": "4"}\n',
            "labels.jsonl": '{"id": "r", "answer": "yes", "label": true}\n',
            "empty.jsonl": "\n",
            "bad.yaml": "- {type: exact_match}\n- {type: exact_mach}\n",
            "files.yaml": "graders:\n  - {type: files, expect_dir: /etc}\n",
            "row.yaml": "answer: 4\n",
            "mine.yaml": "kind: custom\n",
            "words.json": '["a", "b"]',
            "new/other.yaml": "kind: custom\n",
            "lone/t.yaml": "kind: custom\n",
            "lone/em.py": _GOOD,
        },
        (
            "graders create totals graders.yaml",
            "graders create other --set kind=external_endpoint --set url=https://a.example",
            "graders lock other",
        ),
    ),
    "rows": Place(
        _ROWS,
        {
            "rows.jsonl": _GIVEN,
            "graders.yaml": "- {type: numeric_match, pick: last}\n",
            "option.yaml": "- {type: numeric_match, pik: last}\n",
            "gates.yaml": "- {type: contains, substring: a, gate: true}\n",
            "blank.yaml": "- {type: model_judge, words: '   ', model: fake}\n",
            "endless.yaml": f"- {{type: model_judge, words: {'x' * 100_001}, model: fake}}\n",
            "grade.py": _GOOD,
            "plain.py": "def grade(thread):\n    return 1\n",
            "cut.jsonl": f"{_GIVEN}{{\n",
            "bad.jsonl": "{\n{\n",
            "number.jsonl": f'{_GIVEN}{{"answer": 5.0}}\n',
            "question.jsonl": f'{_GIVEN}{{"question": "?"}}\n',
            "nan.jsonl": f'{_GIVEN}{{"answer": "x", "expected": NaN}}\n',
            "list.jsonl": f"{_GIVEN}[]\n",
            "roles.jsonl": f'{_GIVEN}{{"messages": ["hi"]}}\n',
            "completion.jsonl": f'{_GIVEN}{{"messages": [], "completion": 3}}\n',
            "twice.jsonl": '{"answer": "4", "expected": "4", "metadata": {"expected": "5"}}\n',
        },
        ("grade rows.jsonl graders.yaml",),
        more=_odd_files,
    ),
}
