"""A type checker sees what a job takes and what it returns: mypy runs over snippets whose errors are marked."""

import re
from pathlib import Path
from typing import Final

import pytest
from mypy import api

from tests.typing.snippets import SNIPPETS, marks_in, text_of, write_snippets

FOUND: Final = re.compile(r"^(?P<file>.+?):(?P<line>\d+): error: .*\[(?P<code>[\w-]+)\]$")


@pytest.fixture(scope="module")
def findings(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[int, str]]]:
    """What mypy says about each snippet; all of them in one run, because starting it costs most."""
    folder = tmp_path_factory.mktemp("snippets")
    files = write_snippets(folder)
    options = ["--strict", "--no-error-summary", "--hide-error-context", "--no-pretty", "--python-version", "3.11"]
    cache = checkout / ".mypy_cache" / "snippets"
    out, problems, _ = api.run(
        [*options, "--config-file", "", "--cache-dir", str(cache), *(str(folder / name) for name in files)]
    )
    assert problems == ""
    found: dict[str, set[tuple[int, str]]] = {name: set() for name in SNIPPETS}
    for line in out.splitlines():
        match = FOUND.match(line)
        if match:
            found[files[Path(match["file"]).name]].add((int(match["line"]), match["code"]))
        else:
            assert ": note: " in line, out
    return found


@pytest.mark.parametrize("name", SNIPPETS)
@pytest.mark.timeout(120)
def test_mypy_sees_what_is_wrong_and_nothing_else(name: str, findings: dict[str, set[tuple[int, str]]]) -> None:
    text = text_of(name)
    lines = text.splitlines()
    found, wanted = findings[name], {(number, code) for number, codes in marks_in(text).items() for code in codes}
    assert sorted((lines[number - 1].strip(), code) for number, code in found - wanted) == []
    assert sorted((lines[number - 1].strip(), code) for number, code in wanted - found) == []
