"""The shapes that programs see, by `--json` and over HTTP. `docs/cli.md` lists them, and a test compares the two.

An instant is an ISO 8601 string in UTC, of fixed length, named `at` or with `_at` at the end. A duration is a number of
seconds, named with `_seconds` at the end. A missing value is null. Fields may be added; none is taken away.

Only shapes are here. The values that they are made of are in `views`, and what is asked of the store in `control`.
"""
