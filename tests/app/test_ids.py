"""Ids of jobs: two that are the same would be one job, and the other one lost."""

import os

import pytest

from shiftwork.handles.worker import new_id


def test_ids_sort_in_the_order_in_which_they_were_made() -> None:
    made = [new_id(1_000.0) for _ in range(100)]
    assert made == sorted(set(made))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody forks here")
def test_a_forked_process_makes_ids_of_its_own() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_id(1_000.0).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs, ours = os.read(reading, 100).decode(), new_id(1_000.0)
    os.close(reading)
    os.close(writing)
    assert len(theirs) == len(ours) == 32
    assert theirs[:18] == ours[:18]  # the same moment, the same count
    assert theirs != ours
