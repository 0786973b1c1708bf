"""`module:name` that cannot be imported: the user's own error, and what to do about it."""

import importlib
from pathlib import Path

import pytest

from shiftwork.serve.loading import load_app
from tests.cli.terminal import Terminal

HEAD = "from shiftwork import WorkerOrchestrator\n"


def told(terminal: Terminal, name: str, text: str | None = None) -> str:
    if text is not None:
        Path("broken.py").write_text(text)
        importlib.invalidate_caches()  # the folder may have been listed in the same moment
    return terminal.refused("run", name, store=None)


def test_no_such_module(terminal: Terminal) -> None:
    said = told(terminal, "shp:app")
    assert "there is no module 'shp' (did you mean 'shop'?)" in said
    assert str(terminal.folder) in said


def test_no_such_package(terminal: Terminal) -> None:
    assert "there is no module 'nowhere'" in told(terminal, "nowhere.shop:app")


def test_a_module_that_lacks_another_one(terminal: Terminal) -> None:
    said = told(terminal, "broken", "import sys\nimport nothing_like_it\n")
    assert "module broken cannot be imported: ModuleNotFoundError: No module named 'nothing_like_it'" in said
    assert 'broken.py", line 2' in said
    assert "importlib" not in said


def test_an_error_inside_the_module(terminal: Terminal) -> None:
    said = told(terminal, "broken", "def f():\n    return 1 / 0\n\nf()\n")
    assert "ZeroDivisionError: division by zero" in said
    assert "in f" in said
    assert "shiftwork/cli" not in said


def test_a_syntax_error(terminal: Terminal) -> None:
    said = told(terminal, "broken", "def f(:\n")
    assert said.startswith("shiftwork: module broken cannot be imported: SyntaxError: ")
    assert 'broken.py", line 1' in said


def test_a_module_that_exits(terminal: Terminal) -> None:
    assert "SystemExit: set DATABASE first" in told(terminal, "broken", "raise SystemExit('set DATABASE first')\n")


def test_a_bad_registration_shows_the_users_line_not_ours(terminal: Terminal) -> None:
    said = told(terminal, "broken", HEAD + "app = WorkerOrchestrator()\n@app.worker(cron='61 * * * *')\ndef f(): ...\n")
    assert "ScheduleError: worker 'f': cron '61 * * * *'" in said
    assert 'broken.py", line 3' in said
    assert "registration.py" not in said


def test_a_missing_attribute_names_the_orchestrators_there_are(terminal: Terminal) -> None:
    said = told(terminal, "broken", HEAD + "orchestrator = WorkerOrchestrator('memory://')\n")
    assert "module broken has no 'app'; use broken:orchestrator" in said


def test_a_module_without_any_orchestrator(terminal: Terminal) -> None:
    assert "it defines no WorkerOrchestrator: write `app = WorkerOrchestrator(…)`" in told(
        terminal, "broken", "x = 1\n"
    )


def test_something_else_than_an_orchestrator(terminal: Terminal) -> None:
    assert "broken:app is of type int, not a WorkerOrchestrator" in told(terminal, "broken", "app = 3\n")
    assert "shop:WorkerOrchestrator is the class" in told(terminal, "shop:WorkerOrchestrator")


@pytest.mark.parametrize("name", ["shop.py", "shop.py:app", "./shop.py"])
def test_a_path_is_not_a_name(name: str, terminal: Terminal) -> None:
    assert "name the app as it is imported: shop:app" in told(terminal, name)


def test_nonsense_is_not_a_name(terminal: Terminal) -> None:
    assert "write MODULE:NAME" in told(terminal, "sh op:app")


def test_an_attribute_of_an_attribute(terminal: Terminal) -> None:
    Path("nested.py").write_text(HEAD + "class Holder:\n    app = WorkerOrchestrator('memory://')\n")
    assert load_app("nested:Holder.app").control.store.url == "memory://"
