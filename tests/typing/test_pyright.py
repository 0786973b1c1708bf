"""Pyright, strict, agrees with mypy on the same snippets: which lines are wrong, and that all others are right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.typing.snippets import SNIPPETS, marks_in, text_of, write_snippets


@pytest.mark.timeout(120)
def test_pyright_sees_what_is_wrong_and_nothing_else(checkout: Path, tmp_path: Path) -> None:
    files = write_snippets(tmp_path)
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": [str(checkout / "src")]}
    settings |= dict.fromkeys(("reportUnusedImport", "reportUnusedVariable", "reportUnusedFunction"), "none")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    # The distribution of pyright that brings its own Node, and so downloads nothing.
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    report = json.loads(ended.stdout)
    assert report["summary"]["filesAnalyzed"] == len(SNIPPETS)
    found: dict[str, set[int]] = {name: set() for name in SNIPPETS}
    said: list[str] = []
    for one in report["generalDiagnostics"]:
        if one["severity"] == "error":
            name, line = files[Path(one["file"]).name], one["range"]["start"]["line"] + 1
            found[name].add(line)
            if line not in marks_in(text_of(name)):
                said.append(f"{name}: {text_of(name).splitlines()[line - 1].strip()}: {one['message']}")
    assert said == []
    missed = [
        f"{name}: {text_of(name).splitlines()[line - 1].strip()}"
        for name in SNIPPETS
        for line in marks_in(text_of(name)).keys() - found[name]
    ]
    assert missed == []
