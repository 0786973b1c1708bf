"""`run --reload`: which files count, and a command that fails or is slow to end."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from shiftwork.serve import reloading
from shiftwork.serve.reloading import Reloader, changed, python_files
from tests.polling import eventually


def test_python_files_count_unless_they_are_installed_or_hidden(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    ours = ["shop.py", "src/shop/mail.py"]
    for name in [*ours, "notes.txt", ".git/hook.py", "env/lib/foreign.py", "node_modules/gyp.py", "__pycache__/a.py"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    before = python_files(tmp_path)
    assert set(before) == {str(tmp_path / name) for name in ours}
    os.utime(tmp_path / "shop.py", (1, 1))
    (tmp_path / "src/shop/mail.py").unlink()
    (tmp_path / "new.py").touch()
    assert changed(before, python_files(tmp_path)) == ["mail.py", "new.py", "shop.py"]


async def test_a_command_that_failed_starts_again_when_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reloading, "FILES_LOOK_SECONDS", 0.01)
    starts, app = tmp_path / "starts", tmp_path / "shop.py"
    app.write_text("exit 1")
    command = ["sh", "-c", f"echo >> {starts}; . {app}"]
    run = asyncio.create_task(Reloader(command, tmp_path).run())

    async def until(text: str) -> None:
        await eventually(lambda: starts.exists() and text in caplog.text + starts.read_text())

    await until("the node has ended (exit code 1)")
    # The first signal is ignored, as by a job that takes long; the second one ends it.
    monkeypatch.setattr(reloading, "RELOAD_PATIENCE_SECONDS", 0.05)
    app.write_text(f"trap 'trap - TERM' TERM; echo waits >> {starts}; while :; do sleep 0.01; done")
    await until("waits")
    app.write_text(f"echo third >> {starts}; exec sleep 60")
    await until("third")
    os.kill(os.getpid(), signal.SIGTERM)
    assert await run == 128 + signal.SIGTERM
    assert starts.read_text().split() == ["waits", "third"]
