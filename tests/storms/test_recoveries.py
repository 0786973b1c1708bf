"""How long interrupted jobs waited is read from the lines of a history."""

from pathlib import Path

from shiftwork.history.lines import VERSION, AnyLine, Began, Ended, Fault, Opened, encode
from tests.storms.recoveries import Recovery, recoveries


def test_a_kill_is_over_when_the_last_job_that_it_interrupted_runs_again(tmp_path: Path) -> None:
    processes: dict[int, list[AnyLine]] = {
        7: [Began(1.0, "ended before", 1), Ended(2.0, "ended before", 1, "returned"), Began(9.0, "of the node", 2)],
        8: [Began(9.5, "of its process", 4), Began(9.5, "cancelled", 8)],
        9: [
            *(Began(9.5, "of another", 6), Began(11.0, "of the node", 3), Began(14.0, "of its process", 5)),
            *(Began(20.0, "of another", 7), Fault(10.0, "kill", "node 7 8")),
        ],
    }
    for pid, lines in processes.items():
        text = b"  ".join(map(encode, [Opened(0.5, VERSION, f"{pid}", pid, 0.5), *lines]))
        (tmp_path / f"{pid}.jsonl").write_bytes(text + b'["began",9.0,"unfinish')
    assert recoveries(tmp_path) == [Recovery(10.0, jobs=2, seconds=4.0)]
