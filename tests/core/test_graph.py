"""Gates are compiled from what the workers say about each other, or refused with every problem."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shiftwork.core.model.workers import Breaker, WorkerConfig
from shiftwork.core.options.configs import worker_config
from shiftwork.core.options.graph import compile_gates
from shiftwork.core.workers.admission import Gates, RateLimit
from shiftwork.errors import ConfigurationError, DependencyCycleError, UnknownWorkerError


def workers(**said: dict[str, Any]) -> dict[str, WorkerConfig]:
    return {name: worker_config(name, options) for name, options in said.items()}


def refusal(**said: dict[str, Any]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as raised:
        compile_gates(workers(**said))
    return raised.value


def test_the_example_of_the_pattern() -> None:
    gates = compile_gates(workers(fetch={}, process={"depends_on": ["fetch"]}, cleanup={"blocks": ["process"]}))
    assert gates == {
        "fetch": Gates(worker="fetch", before=("process",), max_running=1),
        "process": Gates(worker="process", after={"fetch": "done"}, conflicts=("cleanup",), max_running=1),
        "cleanup": Gates(worker="cleanup", conflicts=("process",), max_running=1),
    }


def test_blocking_is_symmetric_sorted_and_named_once() -> None:
    gates = compile_gates(workers(a={"blocks": ["c", "b"]}, b={"blocks": ["a"]}, c={}))
    assert {name: gate.conflicts for name, gate in gates.items()} == {"a": ("b", "c"), "b": ("a",), "c": ("a",)}


def test_freshness_and_pool_are_kept() -> None:
    gates = compile_gates(workers(a={}, b={"depends_on": {"a": "fresh"}, "pool": "mail", "rate_limit": "20/30s"}))
    assert gates["b"].after == {"a": "fresh"}
    assert (gates["b"].pool, gates["b"].rate) == ("mail", RateLimit(20, 30))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, 1),
        ({"overlap": "queue"}, 1),
        ({"overlap": "allow"}, None),
        ({"overlap": "allow", "max_running": 4}, 4),
        ({"max_running": 4}, 4),
        ({"execution_mode": "continuous"}, 1),
        ({"execution_mode": "triggered"}, None),
        ({"execution_mode": "triggered", "max_running": 2}, 2),
        ({"execution_mode": "triggered", "max_running": 2, "concurrency_key": "user"}, None),
    ],
    ids=str,
)
def test_max_running(said: dict[str, Any], expected: int | None) -> None:
    assert compile_gates(workers(a=said))["a"].max_running == expected


def test_a_breaker_has_its_own_name_or_its_workers() -> None:
    shared = Breaker(name="smtp")
    gates = compile_gates(workers(a={"breaker": Breaker()}, b={"breaker": shared}, c={"breaker": shared}, d={}))
    assert [gates[name].breaker for name in "abcd"] == ["a", "smtp", "smtp", None]


def test_two_policies_for_one_breaker_are_refused() -> None:
    error = refusal(a={"breaker": Breaker(name="smtp")}, b={"breaker": Breaker(name="smtp", failures=9)})
    assert "'a' and 'b' share the breaker 'smtp'" in str(error)


@pytest.mark.parametrize("option", ["depends_on", "blocks"])
def test_an_unknown_name_is_refused_with_the_nearest(option: str) -> None:
    error = refusal(fetch_data={}, report={option: ["fetch_date"]})
    assert type(error) is UnknownWorkerError
    assert "worker 'report'" in str(error)
    assert "'fetch_date', which is not registered; did you mean 'fetch_data'?" in str(error)


def test_a_worker_is_not_told_to_name_itself() -> None:
    assert "there are none" in str(refusal(fetch={"depends_on": ["fetsch"]}))


def test_a_cycle_is_drawn_in_the_direction_of_waiting() -> None:
    error = refusal(c={"depends_on": ["a"]}, a={"depends_on": ["b"]}, b={"depends_on": ["c"]}, d={"depends_on": ["a"]})
    assert type(error) is DependencyCycleError
    assert "a → b → c → a" in str(error)


def test_several_cycles_are_all_drawn() -> None:
    error = refusal(
        a={"depends_on": ["b"]}, b={"depends_on": ["a"]}, c={"depends_on": ["d", "a"]}, d={"depends_on": ["c"]}
    )
    assert [line.split(": ")[1].split(";")[0] for line in sorted(str(error).splitlines())] == ["a → b → a", "c → d → c"]


def test_all_problems_are_reported_at_once_one_per_line() -> None:
    error = refusal(a={"depends_on": ["b", "x"]}, b={"depends_on": ["a"], "blocks": ["y"]})
    assert type(error) is ConfigurationError
    lines = str(error).splitlines()
    assert len(lines) == 3
    assert "'x'" in lines[0]
    assert "'y'" in lines[1]
    assert "a → b → a" in lines[2]


def compiled(configs: dict[str, WorkerConfig]) -> tuple[dict[str, Gates], str]:
    """The gates, or why there are none."""
    try:
        return compile_gates(configs), ""
    except ConfigurationError as error:
        return {}, str(error)


names = st.sampled_from("abcdef")


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, st.tuples(st.sets(names, max_size=3), st.sets(names, max_size=3)), min_size=1))
def test_gates_mirror_each_other_or_the_error_is_clear(said: dict[str, tuple[set[str], set[str]]]) -> None:
    configs = workers(
        **{
            name: {"depends_on": sorted(after - {name}), "blocks": sorted(blocks - {name})}
            for name, (after, blocks) in said.items()
        }
    )
    gates, refused = compiled(configs)
    if refused:
        drawn = [part for line in refused.splitlines() for part in line.split("; ") if "→" in part]
        for line in drawn:
            cycle = line.split(": ")[1].split(" → ")
            assert cycle[0] == cycle[-1]
            assert all(to in configs[at].depends_on for at, to in pairwise(cycle))
        assert drawn or "not registered" in refused
        return
    for name, gate in gates.items():
        assert all(name in gates[other].conflicts for other in gate.conflicts)
        assert all(name in gates[other].before for other in gate.after)
        assert all(name in gates[other].after for other in gate.before)
        assert set(configs[name].blocks) <= set(gate.conflicts)
