"""Whose namespace is it? A table of who is there, and who may come in."""

import pytest

from shiftwork.core.observing.beats import Beat, InstanceRecord
from shiftwork.core.workers.joining import Tenant, joining_refusal, other_app

NOW = 1_000.0


def there(node: str, *workers: str, pool: str = "p", ends: float = 10.0, started_at: float = 0.0) -> InstanceRecord:
    beat = Beat(instance=f"{node}/{pool}", node=node, pool=pool, slots=1, workers=workers, started_at=started_at)
    return InstanceRecord(beat, NOW + ends, NOW)


@pytest.mark.parametrize(
    ("instances", "refused_for"),
    [
        ([], None),
        ([there("a", "mail", "resize")], None),
        ([there("a", "report")], "a"),
        ([there("a", "report"), there("b", "mail")], "a"),
        ([there("me", "report")], None),
        ([there("a", "report", ends=0.0)], None),
        ([there("a", "report", ends=0.001)], "a"),
        ([there("a", "report"), there("a", "mail", pool="q")], None),
        ([there("a", pool="")], None),
        ([there("a", "x", started_at=2.0), there("b", "y", started_at=1.0)], "b"),
    ],
)
def test_which_apps_are_strangers(instances: list[InstanceRecord], refused_for: str | None) -> None:
    found = other_app("me", {"mail", "fetch"}, instances, NOW)
    assert (found.node if found else None) == refused_for


def test_an_app_that_runs_nothing_is_welcome_everywhere() -> None:
    assert other_app("me", (), [there("a", "report")], NOW) is None


def test_the_longest_lease_counts() -> None:
    found = other_app("me", {"mail"}, [there("a", "x", ends=3), there("a", "y", pool="q", ends=9)], NOW)
    assert found == Tenant("a", ("x", "y"), NOW + 9)


def test_the_refusal_names_everything() -> None:
    tenant = Tenant("host-1", tuple(f"w{n}" for n in range(8)), NOW + 12)
    told = joining_refusal(tenant, ["mail"], namespace="default", store="redis://h:6379/0", now=NOW)
    for words in ("'default'", "redis://h:6379/0", "host-1", "w0, w1, w2, w3, w4 and 3 more", "(mail)", "12 s"):
        assert words in told
