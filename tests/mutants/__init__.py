"""Mutants: the package with one thing wrong, each of which the tests have to notice.

`named/` has breakages with a name, one table for each part of the package; `sites` finds where the source can be broken
at random. `package_copy` keeps the copy that is broken (never the checkout), `trial` judges one mutant, `coverage_map`
knows which tests are near, and `__main__` is `make mutants`. tests/store/test_mutants.py runs the stores' named mutants
with every `make test`, inside its own process.
"""
