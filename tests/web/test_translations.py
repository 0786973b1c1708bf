"""The dashboard's catalogue of our sentences has what we write, word for word: what it does not have stays English."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

SOURCES: Final = (
    *("core/health", "core/admission", "core/schedule", "core/durations", "core/bounds", "core/scaling"),
    *("core/placement", "core/plan", "core/plurals", "core/worker_state", "views/explanation", "views/flow_waits"),
    *("control/explanations", "control/audit", "control/bulk", "control/jobs", "control/nodes", "control/pools"),
    *("control/schedules", "control/tokens", "control/workers", "runtime/engine/breakers", "runtime/engine/reporter"),
    *("runtime/leader/leadership", "runtime/leader/recovery", "runtime/leader/schedules"),
    *("runtime/leader/stored_schedules", "runtime/node/health_monitor", "runtime/node/node"),
    "runtime/node/start_failures",
)
"""Where the sentences are written that the dashboard translates."""
COMPLETE: Final = ("core/health", "core/admission")
"""Where every sentence has a translation: the problems, and why a job waits."""
OF_CRONSIM: Final = {"at {clock} every day"}
HOLE: Final = re.compile(r"\{\w+\}")
FEW: Final = 15
"""A text with fewer letters is part of many others."""
LETTER: Final = re.compile(r"[A-Za-z]")


def catalogues(checkout: Path) -> dict[str, dict[str, str]]:
    paths = (checkout / "ui/src/languages").glob("*.sentences.json")
    return {path.name.split(".")[0]: json.loads(path.read_text()) for path in paths}


def written(checkout: Path, module: str) -> Iterator[str]:
    """Yield every text of a module that has words, with a hole for each value."""
    tree = ast.parse((checkout / f"src/shiftwork/{module}.py").read_text())
    parts = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    parts -= {node for node in parts if isinstance(node, ast.JoinedStr)}
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if node not in docstrings and (node not in parts or isinstance(node, ast.JoinedStr)):
            text = template(node)
            if " " in text.strip():
                yield text


def template(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{x}" for part in node.values)
    value: Any = node.value if isinstance(node, ast.Constant) else ""
    return value if isinstance(value, str) else ""


def letters(text: str) -> int:
    return len(LETTER.findall(HOLE.sub("", text)))


def is_of(sentence: str, text: str) -> bool:
    """Whether a sentence of a catalogue is one that this text becomes, or the greater part of it."""
    pattern = ".*".join(re.escape(part) for part in HOLE.split(text.removeprefix("{x}").strip("; ")))
    return letters(text) >= 0.5 * letters(sentence) and re.search(pattern, sentence) is not None


@pytest.mark.parametrize("language", ["zh-CN"])
def test_sentences_in_a_catalogue_are_those_that_we_write(checkout: Path, language: str) -> None:
    texts = [text for module in SOURCES for text in written(checkout, module)]
    phrases = [key for key in catalogues(checkout)[language] if " " in key and letters(key) > FEW]
    assert [key for key in phrases if not any(is_of(key, text) for text in texts) and key not in OF_CRONSIM] == []


@pytest.mark.parametrize("language", ["zh-CN"])
def test_every_problem_and_every_reason_to_wait_is_translated(checkout: Path, language: str) -> None:
    known = list(catalogues(checkout)[language])
    texts = [text for module in COMPLETE for text in written(checkout, module) if letters(text) > FEW]
    assert len(texts) > 60
    assert [text for text in texts if not any(is_of(key, text) for key in known)] == []
