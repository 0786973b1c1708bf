"""The nine stages of a run, as the docstring of `shiftwork.runtime` lists them, are where it says."""

import re
from pathlib import Path

import shiftwork
from shiftwork import runtime

STAGE = re.compile(r"^ {4}(\d) (\w+) +(\S+\.py) +(.+)$", re.MULTILINE)
NAME = re.compile(r"`([\w.]+)`")
ROOM = Path(shiftwork.__file__).parent / "runtime"


def stages() -> list[tuple[str, str, str, str]]:
    return STAGE.findall(runtime.__doc__ or "")


def test_the_stages_are_numbered_in_order() -> None:
    assert [number for number, *_ in stages()] == list("123456789")


def test_each_stage_is_in_its_file() -> None:
    missing = []
    for _, stage, file, what in stages():
        text = (ROOM / file).read_text()
        first = NAME.findall(what)
        assert first, f"stage {stage} names nothing"
        named = first[0].split(".")
        missing += [f"{stage}: {name} in {file}" for name in named if not re.search(rf"\b{name}\b", text)]
    assert missing == []


def test_files_that_the_docstrings_of_rooms_name_exist() -> None:
    rooms = [ROOM / "__init__.py", *ROOM.glob("*/__init__.py")]
    named = [file for room in rooms for file in re.findall(r"`?(\w+/\w+\.py)`?", room.read_text())]
    assert named
    assert [file for file in named if not (ROOM / file).exists()] == []
