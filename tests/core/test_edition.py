"""The edition of the definitions: who makes it, and who reports that it was lost."""

from shiftwork.core.workers.edition import EMPTIED_SECONDS, Edition, first_edition, renewed_edition

NOW = 1_000_000.0


def again(before: Edition | None, now: float = NOW) -> Edition:
    return renewed_edition(before, "old", "new", lost="everything", now=now)


def test_the_first_node_makes_it_and_the_others_take_it() -> None:
    assert first_edition(None, "a") == Edition("a")
    assert first_edition(Edition("a"), "b") == Edition("a")


def test_in_an_emptied_store_the_first_makes_a_new_one_and_reports_the_loss() -> None:
    made = again(None)
    assert made == Edition("new", NOW, "everything")
    assert again(made, NOW + 3) == made, "the next one has nothing to report"


def test_a_loss_is_reported_though_a_node_that_never_knew_the_old_one_was_faster() -> None:
    assert again(Edition("newcomer")) == Edition("newcomer", NOW, "everything")


def test_a_store_that_was_replaced_by_a_copy_has_the_same_one_and_the_loss_is_reported_once() -> None:
    copied = again(Edition("old"))
    assert copied == Edition("old", NOW, "everything")
    assert again(copied, NOW + 3) == copied
    later = NOW + EMPTIED_SECONDS
    assert again(copied, later) == Edition("old", later, "everything")
