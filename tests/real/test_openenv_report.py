"""OpenEnv's own package reads the reports of `assay selftest --format openenv`.

Its model and its committed JSON Schema take them, its policy comes to the same verdict, and its
digest of the source is ours.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases_to_prove import write_set
from tests.children import printed
from tests.command_line import assay

pytestmark = pytest.mark.real

_READS = """
import json, sys
from importlib.resources import files
from pathlib import Path

import jsonschema
from openenv.validation import CheckResult, Lane, apply_policy, load_policy
from openenv.validation.report import ValidationReportV2
from openenv.validation.runner import source_digest

policy = load_policy("v2")
schema = files("openenv.validation").joinpath("schemas", "report-v2.schema.json").read_text()
for line in sys.stdin:
    jsonschema.validate(json.loads(line), json.loads(schema))
    report = ValidationReportV2.model_validate_json(line)
    assert report.policy_version == policy.policy_version
    assert apply_policy(report.results, policy, Lane.LOCAL) is report.verdict
    assert source_digest(Path(report.target)) == report.source_digest
    levels = {e.check_id: e.level for e in policy.entries_for_lane(Lane.LOCAL).values()}
    semantic = {name for name, level in levels.items() if level == 3}
    assert {r.check_id for r in report.results} == semantic | {"static.manifest"}
    print(Path(report.target).name, report.verdict.value)
"""


def test_its_package_reads_the_reports_and_comes_to_the_same_verdict(
    openenv_python: Path, tmp_path: Path
) -> None:
    write_set(tmp_path / "evals")
    done = assay("selftest", "evals", "--format", "openenv", cwd=tmp_path)
    assert done.returncode == 1
    read = printed([openenv_python, "-c", _READS], cwd=tmp_path, stdin=done.stdout)
    verdicts = dict(line.split() for line in read.splitlines())
    assert len(verdicts) == len(done.stdout.splitlines()) == 19
    assert {name for name, verdict in verdicts.items() if verdict == "warn"} == {
        f"sound-{number}" for number in range(12)
    }
    (signature,) = {json.loads(line)["signature"] for line in done.stdout.splitlines()}
    assert signature == "task.toml"
