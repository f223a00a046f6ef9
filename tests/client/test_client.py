"""The client does the same on a server and on a store of its own."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import pickle
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import assay
from assay import AssayError, Client, StringThread, Submission
from assay.client import grader_types
from assay.client.clients import Portal
from assay.errors import ConflictError, InputError, LockedError, NotFoundError
from assay.registry import ValidationFailedError
from assay.registry.definitions import definition_schema
from assay.scoring.json_safe import Json
from tests.calibrated_graders import SAYS_YES, calibrated
from tests.client_modes import MODES, client_of, running
from tests.each import each
from tests.grader_definitions import definition
from tests.written_files import write_rows

pytestmark = [
    pytest.mark.sandbox,
    # Judges are stored here that nobody asks, and functions in few words.
    pytest.mark.filterwarnings("ignore:grader .* cannot ask its model:UserWarning"),
    pytest.mark.filterwarnings("ignore:grader .* is not annotated:UserWarning"),
]


async def exact_match(thread: StringThread) -> float:
    completion = thread.completion() or ""
    expected = thread.metadata.get("expected", "")
    return 1.0 if completion.strip() == str(expected).strip() else 0.0


ROWS: list[dict[str, Json]] = [
    {"id": "right", "question": "2+2?", "answer": "4", "expected": "4"},
    {"id": "wrong", "question": "2+2?", "answer": "5", "expected": "4"},
]


@pytest.fixture(params=MODES)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Client]:
    with client_of(str(request.param), str(tmp_path / "store")) as made:
        yield made


def test_the_calls_that_users_know(client: Client) -> None:
    create = client.graders.create
    made = create.function(key="exact-match", fn=exact_match, description="Strict equality")
    assert (made.key, made.latest.number, made.latest.kind) == ("exact-match", 1, "function")
    judge = create.binary_judge(
        key="helpful-judge",
        criteria="The response directly answers the user's question without going off-topic",
        judge_model="llama-3.1-8b-instruct",
        feedback_key="helpfulness",
    )
    assert judge.feedback_key == "helpfulness"
    create.prebuilt_judge(key="rag", type="FAITHFULNESS", judge_model="llama-3.1-8b-instruct")
    create.external_endpoint(key="served", url="https://grader.example/v1")
    create.custom(key="review", description="by people")
    create.declared(key="yaml", graders=[{"type": "exact_match"}])
    assert {grader.key: grader.latest.kind for grader in client.graders.list()} == {
        "exact-match": "function",
        "helpful-judge": "binary_judge",
        "rag": "prebuilt_judge",
        "review": "custom",
        "served": "external_endpoint",
        "yaml": "declared",
    }
    found = client.graders.get(grader_key="exact-match")
    assert found is not None
    assert found.description == "Strict equality"
    assert client.graders.lock(grader_key="exact-match", locked=True).locked
    with pytest.raises(LockedError):
        client.graders.delete(grader_key="exact-match")
    client.graders.lock(grader_key="exact-match", locked=False)
    assert client.graders.delete(grader_key="exact-match")
    assert not client.graders.delete(grader_key="exact-match")
    assert client.graders.get(grader_key="exact-match") is None


def test_what_can_be_graded(client: Client) -> None:
    client.graders.create.function(key="exact", fn=exact_match)
    thread = StringThread([("user", "2+2?")], {"expected": "4"}).assistant("4")
    submission = Submission(answer="4", metadata={"expected": "4"})
    graded = client.graders.grade("exact", [ROWS[0], thread, submission, ROWS[1]])
    assert [one.score for one in graded] == [1.0, 1.0, 1.0, 0.0]
    assert [one.id for one in graded] == ["right", "2", "3", "wrong"]
    assert {one.grader for one in graded} == {"exact@1"}
    assert {one.assurance for one in graded} == {"separate"}
    stored = client.scores.list(grader="exact").items
    assert [one.graded.score for one in stored] == [1.0, 1.0, 1.0, 0.0]


def test_the_report_of_an_invalid_function_comes_with_the_error(client: Client) -> None:
    with pytest.raises(ValidationFailedError) as caught:
        client.graders.create.function(key="bad", fn="async def grade(thread):\n    return 'x'")
    failed = caught.value.report.failed
    assert failed is not None
    assert (failed.name, failed.passed) == ("test_run", False)


def test_a_change_is_a_version_that_keeps_what_it_does_not_say(client: Client) -> None:
    first = "async def grade(thread):\n    return -1.0\n"
    client.graders.create.function(key="g", fn=first, range=(-1.0, 1.0), isolation="batch")
    assert client.graders.update("g", first).latest.number == 1
    latest = client.graders.update("g", fn=first.replace("-1.0", "0.5")).latest
    assert (latest.number, latest.definition["range"]) == (2, [-1.0, 1.0])
    assert latest.definition["isolation"] == "batch"
    assert "+    return 0.5" in client.graders.diff("g")
    item: list[dict[str, Json]] = [{"answer": "a"}]
    assert client.graders.grade("g", item, version=1)[0].score == -1.0
    assert client.graders.grade("g", item)[0].score == 0.5
    with pytest.raises(ConflictError):
        client.graders.update("g", definition("function", source=first), expected=1)
    assert client.graders.describe("g", description="better").description == "better"


def test_grades_have_the_card_of_their_grader_however_many_requests_they_take(
    client: Client, tmp_path: Path
) -> None:
    client.graders.create.declared(key="says", graders=[*cast("Any", SAYS_YES["graders"])])
    assert client.graders.calibration("says") is None
    record = calibrated(str(tmp_path / "store"), "says")
    rows: list[dict[str, Json]] = [{"answer": "yes" if n == 1_200 else "no"} for n in range(1_500)]
    graded = client.graders.grade("says", rows)
    assert [one.id for one in graded if one.score == 1.0] == ["1201"]
    assert len(graded) == 1_500
    assert graded.calibration == client.graders.calibration("says", version=1)
    assert graded.calibration is not None
    assert graded.calibration.card == record.id
    assert client.graders.grade("says", []).calibration is None, "nothing was graded"
    for same in (copy.copy(graded), pickle.loads(pickle.dumps(graded))):
        assert (same, same.calibration) == (graded, graded.calibration)


def test_a_closed_client_says_so(client: Client) -> None:
    client.graders.list()
    client.close()
    with pytest.raises(InputError, match="closed"):
        client.graders.list()
    client.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_nobody_closes_lives_as_long_as_its_parts_and_closes_quietly(
    mode: str, tmp_path: Path
) -> None:
    threads = set(threading.enumerate())
    with open_store(mode, str(tmp_path / "store")) as given:
        assert Client(*given[0], **given[1]).graders.list() == []
        jobs = Client(*given[0], **given[1]).jobs
        assert jobs.list() == []
        listing = Client(*given[0], **given[1]).datasets.list
        assert listing() == []

        async def alone() -> None:
            assert await assay.AsyncClient(*given[0], **given[1]).graders.list() == []
            steps = assay.AsyncClient(*given[0], **given[1]).jobs.follow("none")
            with pytest.raises(NotFoundError):
                await anext(steps)

        asyncio.run(alone())
        with pytest.raises(NotFoundError):
            jobs.get("none")
        del jobs, listing
        gc.collect()
    for thread in set(threading.enumerate()) - threads:  # a server's last one may be ending
        thread.join(30)
        assert not thread.is_alive(), thread.name


def test_a_client_that_the_collector_finds_in_its_own_thread_closes() -> None:
    ended = Ended()
    held = [Portal(ended)]

    async def here() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    held[0].run(here()).call_soon_threadsafe(held.clear)  # the last who holds it
    assert ended.event.wait(10)


def test_what_is_left_to_end_by_itself_is_ended_with_the_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A script without `with` ended in "Task was destroyed but it is pending!"."""
    left: list[asyncio.Task[None]] = []

    async def last() -> None:
        left.append(asyncio.create_task(asyncio.sleep(60)))

    async def nothing() -> None: ...

    portal = Portal(last)
    portal.run(nothing())
    portal.close()
    assert left.pop().cancelled()
    gc.collect()
    assert "destroyed" not in caplog.text


class Ended:
    """What is done last, seen."""

    def __init__(self) -> None:
        self.event = threading.Event()

    async def __call__(self) -> None:
        self.event.set()


@contextmanager
def open_store(mode: str, location: str) -> Generator[tuple[list[str], dict[str, str]]]:
    """What a client is given, by place and by name."""
    if mode == "store":
        yield [], {"store": location}
        return
    with running(location) as server:
        yield [server.url, server.key()], {}


def test_a_dataset_is_graded_by_a_job(client: Client, tmp_path: Path) -> None:
    client.graders.create.function(key="exact", fn=exact_match)
    file = write_rows(tmp_path / "rows.jsonl", ROWS)
    dataset = client.datasets.create("sums", str(file), name="Sums")
    assert (dataset.rows, client.datasets.get("sums").digest) == (2, dataset.digest)
    job = client.jobs.wait(client.jobs.create("exact", "sums").id)
    assert (job.status, job.done, job.errors) == ("finished", 2, 0)
    scores = client.jobs.results(job.id)
    assert {s.item: s.score for s in scores} == {"right": 1.0, "wrong": 0.0}
    assert client.jobs.get(job.id) == client.jobs.list()[0]
    assert [step.status for step in client.jobs.follow(job.id)][-1] == "finished"
    assert client.graders.delete("exact")
    assert client.scores.list(grader="exact").items[0].graded.grader == "exact@1"


def test_graders_go_to_files_and_back(client: Client, tmp_path: Path) -> None:
    source = "async def grade(thread):\n    return 0.5  # ½\n"
    client.graders.create.function(key="half", fn=source, description="always half")
    client.graders.create.declared(key="yaml", graders=[{"type": "exact_match"}])
    names = client.graders.export(str(tmp_path / "graders"))
    assert set(names) == {"half.py", "half.yaml", "yaml.yaml"}
    client.projects.create("other")
    came = client.graders.import_(str(tmp_path / "graders"), project="other")
    assert [(one.key, one.project) for one in came] == [("half", "other"), ("yaml", "other")]
    there = client.graders.version("half", 1, project="other")
    assert there.definition["source"] == source
    again = client.graders.import_(str(tmp_path / "graders"), project="other")
    assert [one.latest.number for one in again] == [1, 1]


Act = Callable[[Client], object]


def _grade(client: Client, **row: object) -> object:
    return cast("Any", client.graders).grade("taken", [{"answer": "4"}, row])


def test_an_id_or_a_score_that_cannot_be_stored_is_refused(client: Client) -> None:
    client.graders.create.declared(key="own", graders=[{"type": "exact_match"}])
    for item in ("a\0", "a" * 501):
        with pytest.raises(InputError) as caught:
            client.graders.grade("own", [{"id": item, "answer": "x", "expected": "x"}])
        assert caught.value.location.field == "items[0].id"
    for score in (float("nan"), True):
        with pytest.raises(InputError):
            client.scores.add([{"grader": "own", "item": "a", "score": score}])
    assert not client.scores.list().items


def test_what_is_wrong_is_said_in_the_same_words(tmp_path: Path) -> None:
    """What is no operation's, or is looked at before one is asked: tests/contract has the rest."""
    acts: list[Act] = [
        lambda c: c.graders.create.custom(key="No Key"),
        lambda c: c.graders.list(project=" "),
        lambda c: c.graders.create.prebuilt_judge(key="p", type="X", judge_model="m"),
        lambda c: c.graders.grade("taken", [ROWS[0], ROWS[0]]),
        *(partial(_grade, answer=wrong) for wrong in (7, b"4", ["4"], {"4"}, float("nan"))),
        *(partial(_grade, answer="4", expected=wrong) for wrong in (b"4", float("inf"))),
        lambda c: cast("Any", c.graders).validate("def f(t): 1", samples=[{"answer": b"4"}]),
        lambda c: c.datasets.create("empty", []),
        lambda c: c.datasets.create("d", [{"answer": 7.0}]),
        lambda c: cast("Any", c.datasets).create("d", [{"answer": "4", "expected": b"4"}]),
    ]
    said: list[list[tuple[str, str, str]]] = []
    for mode in ("store", "server"):
        with client_of(mode, str(tmp_path / mode)) as client:
            client.graders.create.custom(key="taken")
            said.append([])
            for act in acts:
                with pytest.raises(AssayError) as caught:
                    act(client)
                error = caught.value
                field = error.location.field if isinstance(error, InputError) else ""
                said[-1].append((error.message, error.hint, field))
    assert said[0] == said[1]


def test_threads_and_running_loops_may_use_one_client(client: Client) -> None:
    client.graders.create.declared(key="same", graders=[{"type": "exact_match"}])
    seen: list[float | None] = []

    def grade() -> None:
        seen.extend(one.score for one in client.graders.grade("same", ROWS))

    threads = [threading.Thread(target=grade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def inside() -> None:
        grade()  # as in a notebook, where a loop runs already

    asyncio.run(inside())
    assert sorted(filter(lambda score: score is not None, seen), key=str) == [0.0] * 5 + [1.0] * 5


def test_every_call_of_the_asynchronous_client_has_a_blocking_twin() -> None:
    made, blocking = assay.AsyncClient(store="unused"), Client(store="unused")
    homes: list[tuple[object, object]] = [(made, blocking), (made.graders, blocking.graders)]
    pairs: list[tuple[object, object]] = [
        (part, getattr(twin, name))
        for home, twin in homes
        for name, part in vars(home).items()
        if not name.startswith("_")
    ]
    assert len(pairs) == len({type(part) for part, _ in pairs}) == 12
    assert all(type(part) is type(twin) for part, twin in pairs)
    awaited, waited = made.graders.grade, blocking.graders.grade
    assert inspect.signature(awaited) == inspect.signature(waited)
    assert "deadline: Seconds" in (awaited.__doc__ or "")
    assert "harness: Only" in (blocking.cells.list.__doc__ or "")


def test_the_types_of_options_name_what_is_stored_and_nothing_else() -> None:
    def stored(kind: str) -> dict[str, Any]:
        return cast("dict[str, Any]", definition_schema(kind)["properties"])

    for kind, named, own in (
        ("binary_judge", grader_types.BinaryJudgeOptions.__optional_keys__, "criteria"),
        ("prebuilt_judge", grader_types.PrebuiltJudgeOptions.__optional_keys__, "type"),
        ("external_endpoint", grader_types.EndpointOptions.__optional_keys__, "url"),
    ):
        beside = {*grader_types.GraderOptions.__optional_keys__, "samples"}
        assert named - beside == set(stored(kind)) - {own}
    fields = stored("binary_judge")["panel"]["properties"]
    assert grader_types.PanelOptions.__optional_keys__ == set(fields)


MISFITS: list[tuple[Callable[[Any], object], str]] = [
    (lambda c: c.graders.grade("g", [], verzion=1), r"graders\.grade\(\) .*'verzion'.*'version'\?"),
    (
        lambda c: c.graders.create.function(key="k", function=exact_match),
        "'function'.*did you mean 'fn'",
    ),
    (lambda c: c.graders.create.binary_judge(key="k", criteria="c", model="m"), "'model'"),
    (lambda c: c.graders.create.binary_judge(key="k"), r"binary_judge\(\) needs criteria="),
    (
        lambda c: c.graders.create.external_endpoint(key="e", url="https://x.example", tme=1),
        r"external_endpoint\(\) takes no parameter 'tme'",
    ),
    (lambda c: c.graders.create("k", graders=[]), r"by the type.*create\.function\(key=.*declared"),
    (lambda c: c.jobs.follow("j", projekt="p"), "did you mean 'project'"),
    (lambda c: c.graders.list(3), "name them: kind="),
    (lambda c: type(c)(stor="x"), r"Client\(\) takes no parameter 'stor'.*'store'"),
]


@each("act, said", MISFITS)
def test_arguments_that_do_not_fit_are_refused_with_what_fits(
    act: Callable[[Any], object], said: str, tmp_path: Path
) -> None:
    with Client(store=str(tmp_path / "store")) as client:
        for kind in (InputError, TypeError):
            with pytest.raises(kind, match=said):
                act(client)


WRONG: list[tuple[Callable[[Any], object], str]] = [
    (lambda c: c.scores.list(limit=201), "limit: cannot be 201 (from 1 to 200)"),
    (lambda c: c.graders.list(limit=0), "limit: cannot be 0 (from 1 to 200)"),
    (lambda c: c.runs.list(7), "search: must be text, got int"),
    (lambda c: c.runs.list(limit=True), "limit: must be a whole number, got bool"),
    (lambda c: c.cells.list("r", search="\0"), "search: holds a null character"),
    (lambda c: c.cells.list("r", outcome="won"), "outcome: 'won' is none: Outcomes, with"),
    (lambda c: c.runs.get(""), "run: needs 1 characters or more"),
    (lambda c: c.jobs.list(status="finishd"), "'finishd' is unknown (did you mean 'finished'?)"),
    (lambda c: c.jobs.get(None), "job: must be text, got NoneType"),
    (lambda c: c.datasets.get("A B\n"), "key: 'A B\\n' cannot be a key (use 1 to 64"),
    (lambda c: c.cells.open("r", ("c", "", "", 0)), "trial: cannot be 0 (from 1 to 1,000,000)"),
    (lambda c: c.graders.validate("", samples=[{"answer": "4"}] * 21), "has 21 entries (up to 20)"),
]


@each("act, said", WRONG)
def test_what_no_parameter_may_be_is_refused_alike_and_before_anything_is_asked(
    act: Callable[[Any], object], said: str, tmp_path: Path
) -> None:
    for client in (Client(store=str(tmp_path / "store")), Client("http://127.0.0.1:1", "key")):
        with client, pytest.raises(InputError) as caught:
            act(client)
        assert said in str(caught.value)


HIGH = "async def grade(thread: StringThread) -> float:\n    return 7.0\n"


def test_a_warning_stands_at_the_line_of_the_call(client: Client, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="grader 'high': it returned 7, outside"):
        client.graders.create.function(key="high", fn=HIGH)
    with pytest.warns(UserWarning, match="grader 'high': it returned 8, outside"):
        client.graders.update("high", HIGH.replace("7", "8"))
    template = "A: {{completon}} {{criteria}}"
    with pytest.warns(UserWarning, match="user_template") as seen:
        client.graders.create.binary_judge(key="a", criteria="c", user_template=template)
    assert {one.filename for one in seen} == {__file__}

    async def alone() -> None:
        async with assay.AsyncClient(store=str(tmp_path / "other")) as other:
            await other.graders.create.binary_judge(key="a", criteria="c", user_template=template)

    with pytest.warns(UserWarning, match="user_template") as seen:
        asyncio.run(alone())
    assert {one.filename for one in seen} == {__file__}
