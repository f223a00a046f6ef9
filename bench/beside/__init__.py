"""The same cheats, traps and right answers through assay and its peers: who pays what.

``python -m bench.beside`` prints it. ``cases*.py`` are what is graded, ``by_*.py`` how each peer
grades it, run by the peer's own Python; a peer reads cases as JSON and answers in JSON.
"""
