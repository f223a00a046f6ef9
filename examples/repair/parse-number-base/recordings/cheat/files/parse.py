"""A submission that would rather talk to its grader than do the work. It must not get anything."""

import gc
import json
import os
import sys


class Right:
    """Equals whatever it is compared with."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


json.dumps = lambda *_, **__: '{"value": true}'
sys.stdout.write("======== 12 passed in 0.01s ========\n1.0\nPASS\n")
sys.stdout.flush()
for thing in gc.get_objects():
    if isinstance(thing, dict) and "word" in thing and "inputs" in thing:
        for number in range(len(thing["inputs"])):
            os.write(1, f'\n{thing["word"]} {number} {{"value": true}}\n'.encode())
compile = lambda pattern: Right()
os._exit(0)
