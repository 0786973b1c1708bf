"""The outbox around a stop, in every interleaving."""

import pytest

from tests.models.explorer import explored, story_of
from tests.models.outbox import Fault, OutboxAndStop
from tests.models.real_outbox import RealOutbox, batches_of, expected
from tests.models.replay import replay


def test_every_outcome_is_written_once_or_left_to_the_lease() -> None:
    explored(OutboxAndStop(runs=3, largest=2))


def test_the_outbox_does_as_in_the_model() -> None:
    walks = explored(OutboxAndStop(runs=2, largest=1, gap=False)).walks()
    with batches_of(1):
        replay(walks, lambda: RealOutbox(2), expected)


@pytest.mark.parametrize(
    ("fault", "story"),
    [
        ("cancels what has not begun", "the drain never ends"),
        ("forgets what was under way", "is lost, and the node knows nothing of it"),
        ("recognises nothing", "is forgotten"),
        ("tells first", "was followed up, and the store does not have it"),
        ("gives up for good", "is forgotten"),
    ],
)
def test_a_planted_fault_is_found(fault: Fault, story: str) -> None:
    assert story in story_of(OutboxAndStop(runs=2, largest=1, fault=fault))


def test_a_drain_ends_although_its_patience_ends_before_the_next_write_has_begun() -> None:
    """The task that would have written was cancelled before it began, and the drain waited for it to clean up."""
    real = RealOutbox(2)
    try:
        real.run_ends(0)
        real.loop_runs()
        real.node_drains()
        real.store_writes()
        real.answer()
        real.turn()
        real.run_ends(1)
        real.clock_the_patience_is_over()
        real.loop_runs()
        assert real.seen()[-1] == 1
    finally:
        real.close()
