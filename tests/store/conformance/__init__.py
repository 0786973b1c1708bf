"""The conformance suite: what every store owes, as code that a store's author can run.

`suite` has all checks and two ways to run them, `lab` is one empty store and the handles onto it, `acts` and `expect`
are what checks are written with, and `histories` makes random calls and compares the answers with `MemoryStore`. Tests
of what one store does inside are beside this folder, and so are the mutants, which show that each check can fail.
"""
