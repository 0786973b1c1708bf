"""The stage, for every test in this folder."""

from tests.runtime.fixtures import clock, stage, tolerated

__all__ = ["clock", "stage", "tolerated"]
