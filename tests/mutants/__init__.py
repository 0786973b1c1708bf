"""Mutants: the package with one thing wrong, each of which the tests have to notice.

`named/` has breakages with a name, one table for each part of the package; `sites` finds where the source can be broken
at random, and `judgements` says why a survivor is no fault. `package_copy` keeps the copy that is broken (never the
checkout), `trial` judges one mutant, `coverage_map` knows which tests are near, `reports` writes docs/mutants.md, and
`__main__` is `make mutants`. tests/store/test_mutants.py runs the stores' named mutants with every `make test`, inside
its own process.
"""
