"""How long interrupted jobs waited is read from the lines of a history."""

from pathlib import Path

from shiftwork.history.lines import AnyLine, Began, Ended, Fault, encode
from tests.storms.recoveries import Recovery, recoveries


def test_a_kill_is_over_when_the_last_job_that_it_interrupted_runs_again(tmp_path: Path) -> None:
    lines: list[AnyLine] = [
        Fault(10.0, "kill", "node 7 8"),
        Began(1.0, "ended before", 1, 1, "w", 7),
        Ended(2.0, "ended before", 1, "returned"),
        Began(9.0, "of the node", 2, 1, "w", 7),
        Began(11.0, "of the node", 3, 1, "w", 9),
        Began(9.5, "of its process", 4, 1, "w", 8),
        Began(14.0, "of its process", 5, 1, "w", 9),
        Began(9.5, "of another", 6, 1, "w", 9),
        Began(20.0, "of another", 7, 1, "w", 9),
        Began(9.5, "cancelled", 8, 1, "w", 8),
    ]
    (tmp_path / "one.jsonl").write_bytes(b"  ".join(map(encode, lines)) + b'["began",9.0,"unfinish')
    assert recoveries(tmp_path) == [Recovery(10.0, jobs=2, seconds=4.0)]
