"""A payload that does not fit one version of an app waits for another version, as long as one is live."""

from typing import Any

from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind, is_refused, settle
from shiftwork.core.jobs.undecodable import LONGEST_DELAY, PATIENCE_SECONDS, reviewed, version_of
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Attempt, Claimed, JobStatus
from shiftwork.core.observing.beats import Beat, NodeBeat

NOW = 5_000.0


def refused(kind: EndKind = EndKind.UNDECODABLE) -> Outcome:
    job = Claimed(id="j", worker="w", pool="p", payload=b"", fence=7, attempt=2, crashes=0, run_at=NOW)
    end = End(kind, error="unknown argument")
    return settle(job, end, None, started_at=NOW, now=NOW, rand=0.5, instance="i-1")


def node(version: str, **changes: Any) -> Beat:
    machine = NodeBeat(host="h", cores=1, memory=1, pools=("p",), version=version)
    return replace(Beat(instance=version, node=version, pool="", slots=0, workers=("w",), machine=machine), **changes)


def refusal(version: str | None, at: float = NOW - 1) -> Attempt:
    return Attempt(number=1, started_at=at, ended_at=at, kind="undecodable", error="x", instance="i-0", version=version)


def fate(*nodes: Beat, before: tuple[Attempt, ...] = ()) -> Outcome:
    return reviewed(refused(), "v1", before, nodes)


def test_a_refused_job_goes_back_uncounted_while_another_version_is_live() -> None:
    after = fate(node("v1"), node("v2"))
    assert (after.status, after.attempt, after.verdict) == (JobStatus.QUEUED, 1, "neutral")
    assert after.run_at == NOW + 1
    assert after.marks == "undecodable"
    assert after.report is not None
    assert after.report.version == "v1"


def test_a_version_that_has_refused_it_is_not_waited_for() -> None:
    assert fate(node("v1"), node("v2"), before=(refusal("v2"),)).status is JobStatus.DEAD
    assert fate(node("v2"), node("v3"), before=(refusal("v2"),)).status is JobStatus.QUEUED


def test_only_nodes_that_could_run_it_are_waited_for() -> None:
    elsewhere = NodeBeat(host="h", cores=1, memory=1, pools=("other",), version="v2")
    unable = [
        node("v1"),
        node("v2", status="draining"),
        node("v2", workers=("other",)),
        node("v2", machine=elsewhere),
        node("v2", machine=None),
    ]
    assert fate(*unable) == refused()


def test_a_dead_job_names_the_versions_that_refused_it() -> None:
    after = fate(node("v1"), before=(refusal("v2"),))
    expected = (
        "unknown argument; refused by version v2 (on i-0) and version v1 (on i-1); no live node has another version"
    )
    assert after.error is not None
    assert after.error.startswith(expected)
    assert after.report is not None
    assert (after.report.error, after.report.version) == (after.error, None)


def test_one_report_is_kept_for_each_version_and_the_delay_grows() -> None:
    again = fate(node("v2"), before=(refusal("v1", NOW - 50),))
    assert (again.status, again.report, again.run_at) == (JobStatus.QUEUED, None, NOW + 10)
    late = fate(node("v2"), before=(refusal("v1", NOW - 1_000),))
    assert late.run_at == NOW + LONGEST_DELAY


def test_a_job_is_not_handed_back_forever() -> None:
    after = fate(node("v2"), before=(refusal("v1", NOW - PATIENCE_SECONDS),))
    assert after.status is JobStatus.DEAD
    assert "no node of version v2 has taken it for an hour" in (after.error or "")


def test_refusals_before_the_job_was_dead_or_ran_do_not_count() -> None:
    assert fate(node("v2"), before=(refusal("v2"), refusal(None))).status is JobStatus.QUEUED
    ran = replace(refusal(None), kind="raised")
    assert fate(node("v2"), before=(refusal("v2"), ran)).status is JobStatus.QUEUED


def test_only_a_payload_that_does_not_fit_is_reviewed() -> None:
    assert is_refused(refused())
    assert not is_refused(refused(EndKind.UNENCODABLE))
    assert not is_refused(fate(node("v2")))


def test_the_version_depends_on_names_and_schemas_but_not_on_their_order() -> None:
    versions = {version_of(schemas) for schemas in ({"a": b"1"}, {"a": b"2"}, {"b": b"1"}, {"a": None}, {"a1": b""})}
    assert len(versions) == 5
    assert version_of({"a": b"1", "b": b"2"}) == version_of({"b": b"2", "a": b"1"})
