"""OpenEnv's validation of a package, with assay's cases as its semantic checks.

    pip install assay openenv
    python openenv_validation.py PACKAGE

PACKAGE has an ``openenv.yaml``, and cases of assay in ``evals/``. OpenEnv's own command does not
yet load graders of others, and runs none of its semantic level.
"""

import sys
from pathlib import Path

from openenv.validation import GraderRegistry, Level, Subject, apply_policy, load_policy
from openenv.validation.parsers.openenv_yaml import OpenEnvYamlParser
from openenv.validation.runtime.scheduler import execute_graders
from openenv.validation.types import Lane

from assay.plugins.openenv import graders

package = Path(sys.argv[1])
manifest = OpenEnvYamlParser().parse(package)
registry = GraderRegistry()
for grader in graders():
    registry.register(grader)
subject = Subject(package, manifest, image_ref=None, running=None, outputs_dir=package / "outputs")
results = execute_graders(registry.select(manifest, Level.SEMANTIC), subject)
for result in results:
    print(result.check_id, result.status.value, result.evidence[0])
print(apply_policy(results, load_policy("v2"), Lane.LOCAL).value)
