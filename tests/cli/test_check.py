"""`shiftwork check`: a verdict and the lines that show it, for people and for programs, and exit codes for both."""

from collections.abc import Callable
from pathlib import Path

import pytest

from shiftwork.history.judging import RULES
from shiftwork.history.lines import encode
from tests.cli.terminal import Terminal
from tests.history.tape import Tape


@pytest.fixture
def write(terminal: Terminal, tmp_path: Path) -> Callable[[Tape], None]:
    """Writes a history into the folder `history`."""

    def written(tape: Tape) -> None:
        folder = tmp_path / "history"
        folder.mkdir(exist_ok=True)
        for one in tape.tapes:
            (folder / f"{one.name}.jsonl").write_bytes(b"".join(map(encode, one.lines)) + b"\0" * 100)

    return written


def test_a_legal_history(terminal: Terminal, write: Callable[[Tape], None]) -> None:
    tape = Tape().defined().add("a").run("a", 1).rest()
    tape.other()
    write(tape)
    said = terminal.ok("check", "history", store=None)
    assert said == f"12 lines of 2 processes: 1 job, 1 run\nlegal: none of {len(RULES)} rules is refuted\n"


def test_a_broken_promise_is_a_sentence_and_the_lines_that_show_it(
    terminal: Terminal, write: Callable[[Tape], None]
) -> None:
    write(Tape().defined().add("a").claim("a", 1).finish("a", 1))
    result = terminal.run("check", "history", store=None)
    assert result.exit_code == 1
    _, empty, sentence, *lines = result.stdout.splitlines()
    assert empty == ""
    assert sentence == "begun: Job a is completed under fence 1, but no run of it began under that fence."
    assert [line[:22] for line in lines] == ['  one.jsonl:6  ["answe', '  one.jsonl:7  ["asked']


def test_the_verdict_as_json(terminal: Terminal, write: Callable[[Tape], None]) -> None:
    from json import loads

    write(Tape().add("a").claim("a", 1).claim("a", 2))
    result = terminal.run("check", "history", "--json", store=None)
    document = loads(result.stdout)
    assert result.exit_code == 1
    assert (document["legal"], document["jobs"], document["runs"]) == (False, 1, 0)
    assert document["rules"].keys() == RULES.keys()
    assert all(words.startswith("Prove that ") for words in document["rules"].values())
    (found,) = document["refutations"]
    assert found["rule"] == "one_holder"
    assert found["lines"] == [{"file": "one.jsonl", "line": 5}, {"file": "one.jsonl", "line": 7}]


def test_the_history_in_the_format_of_jepsen(terminal: Terminal, write: Callable[[Tape], None], tmp_path: Path) -> None:
    write(Tape().add("a").run("a", 1))
    terminal.ok("check", "history", "--edn", "history.edn", store=None)
    lines = (tmp_path / "history.edn").read_text().splitlines()
    assert lines[0] == '{:index 0 :time 0 :process 0 :type :invoke :f :enqueue :value "a"}'
    assert len(lines) == 10


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "holds no recorded history"),
        (b'["opened",1.0,99,"p",1,0.0]\n', "format 99"),
        (b'["opened",1.0,2,"p",1,0.0]\nnonsense\n', "one.jsonl:2 is no line of a history"),
        (b'["opened",1.0,2,"p",1,0.0]\n["fault",2.0,"recording ended","p"]\n', "cannot be judged"),
    ],
)
def test_what_cannot_be_read_is_another_exit_code(terminal: Terminal, tmp_path: Path, text: bytes, why: str) -> None:
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "one.jsonl").write_bytes(text)
    result = terminal.run("check", "history", store=None)
    assert result.exit_code == 2
    assert why in " ".join(result.stderr.split())


def test_an_unfinished_last_line_is_left_out(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "history").mkdir()
    killed = b'["opened",1.0,2,"p",1,0.0]\n    ["asked",2.0,1,"cla\0\0\0\0'
    (tmp_path / "history" / "one.jsonl").write_bytes(killed)
    assert terminal.ok("check", "history", store=None).startswith("1 line of 1 process: 0 jobs, 0 runs\n")


def test_the_page_lists_every_rule(checkout: Path) -> None:
    section = (checkout / "docs" / "proof.md").read_text().partition("## History checker")[2].partition("\n## ")[0]
    table = section.partition("| rule | what it proves |")[2].partition("\n\n")[0]
    assert [row.split("`")[1] for row in table.splitlines()[2:]] == [*RULES]
