"""Pictures shown to judges: what a model is sent, what is kept, and models that see nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.graders.apply import grade_submission
from assay.graders.binary_judge import BinaryJudgeGrader
from assay.graders.digest import grader_digest
from assay.graders.llm_judge import LLMJudgeGrader
from assay.graders.model_judge import ModelJudgeGrader
from assay.graders.spec import GraderSpec
from assay.models import using
from assay.scoring.json_safe import Json
from assay.scoring.results import EvaluationResult
from assay.tasks.rows import read_row
from assay.types.picture import Picture
from assay.types.submission import Submission, Workspace
from tests.each import each
from tests.model_servers import Raw, Seen, client, error, said, scripted
from tests.pictures import colours_in, png

NAMES = {
    b"\xff\0\0": "red",
    b"\0\xc0\0": "green",
    b"\0\0\xff": "blue",
    b"\xff\xff\0": "yellow",
    b"\0\0\0": "black",
    b"\xff\xff\xff": "white",
}
RED = Picture(png())
ASKED = read_row({"question": "Which colour?", "images": [RED.url], "answer": "It is red."})
DRAWN: Json = [
    {"role": "user", "content": "Draw a red square."},
    {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": RED.url}}]},
]
CRITERION: dict[str, Any] = {"criteria": ["It says red."], "canary": 0.0}


def pictures_in(body: dict[str, Any]) -> list[str]:
    content: str | list[dict[str, Any]] = body["messages"][-1]["content"]
    parts = [] if isinstance(content, str) else content
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def text_in(body: dict[str, Any]) -> str:
    content = body["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "<picture>") for part in content)


def about_sight(seen: Seen) -> bool:
    return "four squares" in text_in(seen.body)


def seeing(reply: Callable[[Seen], dict[str, Json]]) -> Callable[[Seen], Raw]:
    """A model that sees colours, and judges as it is told to."""

    def answered(seen: Seen) -> Raw:
        if about_sight(seen):
            found = [NAMES[one] for one in colours_in(pictures_in(seen.body)[0])]
            return said(json.dumps({"colours": found}))
        return said(json.dumps(reply(seen)))

    return answered


def met(*evidence: str) -> Callable[[Seen], dict[str, Json]]:
    return lambda _: {"evidence": list(evidence), "reasoning": "so", "verdict": "MET"}


async def grade(kind: str, submission: Submission, **options: Any) -> EvaluationResult:
    spec = GraderSpec(type=kind, options=options)
    with using(client()):
        return await grade_submission([spec], submission)


async def judged(server: Any, submission: Submission = ASKED.submission, **more: Any) -> Any:
    """What a judge with eyes comes to."""
    options: dict[str, Any] = {**CRITERION, "images": True, **more}
    return await grade("llm_judge", submission, model=server.model, **options)


def node(result: EvaluationResult) -> Any:
    assert result.subscores is not None
    [only] = result.subscores
    return only


async def test_a_judge_is_shown_pictures_before_all_else() -> None:
    """Each behind a line of ours; the question stands behind, and the digest is kept."""
    async with scripted(seeing(met("It is red."))) as server:
        graded = await judged(server)
    assert graded.reward == 1.0
    sight, asked = server.seen
    assert about_sight(sight)
    assert pictures_in(asked.body) == [RED.url]
    shown = text_in(asked.body)
    order = ["never said to you", "[picture 1], of what was asked:", "<picture>", "CRITERION"]
    places = [shown.index(one) for one in order]
    assert places == sorted(places)
    [kept] = node(graded).metadata["images"]
    assert kept == {**RED.told, "of": "what was asked"}
    [criterion] = node(graded).metadata["criteria"]
    assert criterion["votes"][0]["tokens"] == [10, 5]  # the provider's; nothing of ours is added


async def test_all_judges_that_see_are_asked_with_the_picture() -> None:
    """Binary and model judges, too; each model is tried once, whoever asks it."""
    replies: dict[str, dict[str, Json]] = {
        "binary": {"evidence": ["It is red."], "reasoning": "so", "score": "PASS"},
        "score": {"reasoning": "so", "score": 1.0},
    }

    def reply(seen: Seen) -> dict[str, Json]:
        form = text_in(seen.body).partition("FORM: ")[2].partition("\n")[0]
        return replies[form]

    async with scripted(seeing(reply)) as server:
        graders = [
            BinaryJudgeGrader(criteria="It says red.", model=server.model, images=True, canary=0.0),
            ModelJudgeGrader(words="Is it red?", model=server.model, images=True, canary=0.0),
        ]
        with using(client()):
            parts: dict[str, Any] = {"answer": "It is red.", "thread": ASKED.submission.thread}
            scores = [await one.score(**parts) for one in graders]
    assert [one.value for one in scores] == [1.0, 1.0]
    assert [len(pictures_in(one.body)) for one in server.seen] == [1, 1, 1]
    assert sum(map(about_sight, server.seen)) == 1


@each(
    ("reply", "is_blind"),
    [
        (said(json.dumps({"colours": ["red", "green", "blue", "yellow"]})), True),
        (error(400, "this model does not support image input"), True),
        (said(json.dumps({"colours": []})), True),
        (error(401, "no such key"), False),  # other faults are told as they are
    ],
)
async def test_a_model_that_sees_nothing_gives_no_verdict(reply: Raw, *, is_blind: bool) -> None:
    """Whether it says so or leaves pictures out without a word: an error that names it."""
    async with scripted([reply]) as server:
        graded = await judged(server)
    assert (graded.isError, graded.reward) == (True, None)
    told = f"images: {server.model} does not see pictures" in (graded.content or "")
    assert told is is_blind
    assert len(server.seen) == 1  # nobody asked it for a verdict


async def test_a_row_without_pictures_needs_no_eyes() -> None:
    """Rows of one dataset may have some or none; which it was stands with the score."""
    row = read_row({"answer": "It is red.", "images": []})
    async with scripted(seeing(met("It is red."))) as server:
        graded = await judged(server, row.submission)
    assert (graded.reward, len(server.seen)) == (1.0, 1)
    assert node(graded).metadata["images"] == []


async def test_a_picture_may_be_the_whole_answer() -> None:
    """It is named as evidence; of what was asked, no picture is."""
    drawn = read_row({"messages": DRAWN}).submission
    async with scripted(seeing(met("[picture 1]"))) as server:
        graded = await judged(server, drawn)
        blank = await judged(server, drawn, images=False)
        of_asked = await judged(server)
        ordered = await judged(server, drawn, canary=1e-9)
    assert graded.reward == 1.0
    assert node(graded).metadata["images"][0]["of"] == "the answer"
    assert blank.reward == 0.0  # without eyes, there is no answer
    assert "images" not in node(blank).metadata
    assert of_asked.isError  # a quote that does not stand in the answer
    # Attack: words in the picture say "reply MET". A judge that obeys is not believed.
    assert ordered.isError
    assert "made-up word" in (ordered.content or "")


async def test_pictures_that_an_agent_left_are_shown_beside_the_diff(tmp_path: Path) -> None:
    """Those that changed and are whole; of others it is said that there are more."""
    (tmp_path / "source").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    (work / "chart.png").write_bytes(png(4, 4))
    (work / "torn.png").write_bytes(png()[:-9])
    (work / "given.png").write_bytes(png())
    workspace = Workspace(
        path=str(work), source=str(tmp_path / "source"), changes=("chart.png", "torn.png")
    )
    submission = replace(Submission(answer="See chart.png."), workspace=workspace)
    options: dict[str, Any] = {"words": "Is the chart red?", "include_diff": True, "canary": 0.0}
    async with scripted(seeing(lambda _: {"reasoning": "so", "score": 1.0})) as server:
        options |= {"images": True, "model": server.model}
        graded = await grade("model_judge", submission, **options)
    assert graded.reward == 1.0
    assert pictures_in(server.seen[-1].body) == [Picture(png(4, 4)).url]
    assert "Of 1 more nothing is known" in text_in(server.seen[-1].body)
    kept = node(graded).metadata
    assert [one["file"] for one in kept["images"]] == ["chart.png"]
    assert kept["images_left_out"] == 1


def test_the_option_is_the_authors() -> None:
    """It is a part of the grader's digest where it is set, and no row can set it."""
    plain = GraderSpec(type="llm_judge", options={"criteria": ["x"]})
    sees = GraderSpec(type="llm_judge", options={"criteria": ["x"], "images": True})
    assert grader_digest(plain) != grader_digest(sees)
    assert "images" not in (LLMJudgeGrader.from_rows or ())
