"""Runs inside the sandbox: calls the submission with each input and writes down what came back.

It knows the inputs but no right answer. Code that takes this process over can write whatever it
likes, and still has to know what is right.
"""

import json
import os
import sys


def answer(given):
    """Compile one pattern and read several texts with it, one after the other."""
    import parse

    parser = parse.compile(given["pattern"])
    return [values(parser.parse(text)) for text in given["texts"]]


def values(result):
    """The fields that were read, by name if they have names; None where the text did not match."""
    if result is None:
        return None
    if result.named:
        return {str(name): plain(value) for name, value in result.named.items()}
    return [plain(value) for value in result.fixed]


def plain(value):
    """A value as JSON has it, or what it is instead."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    return f"<{type(value).__name__}>"


def main():
    """Write a line for each input: the word of this run, the number of the input, the result."""
    order = json.load(sys.stdin)
    out = os.dup(1)
    sys.path.append(order["import_from"])  # last, so that no file in it replaces a standard module
    for number, given in enumerate(order["inputs"]):
        try:
            said = {"value": answer(given)}
        except BaseException as error:  # SystemExit too: the next input has its own chance
            said = {"raised": type(error).__name__}
        line = f"\n{order['word']} {number} {json.dumps(said)}\n"
        os.write(out, line.encode("ascii", "replace"))


main()
