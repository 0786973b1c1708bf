"""A folder with an app in it, and a terminal there."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shiftwork.serve.loading import load_app
from tests.cli.terminal import SHOP, Terminal
from tests.polling import eventually


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal in a folder of its own; no store exists there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("SHIFTWORK_STORE", "SHIFTWORK_APP", "SHIFTWORK_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "shop.py").write_text(SHOP)
    here = Terminal(tmp_path)
    yield here
    here.close()
    forget_modules_of(tmp_path)


def forget_modules_of(folder: Path) -> None:
    """Forget what was imported from a folder: other tests have modules of the same names."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def shop(terminal: Terminal) -> Terminal:
    """A terminal in a shop that has been open: its workers are known, fetch has run, and no node is left."""

    async def open_and_close() -> None:
        app = load_app("shop:app")
        await app.start()
        await eventually(lambda: app.find_jobs(worker="fetch"))
        await (await app.find_jobs(worker="fetch"))[0].ended(60)
        await app.stop()

    asyncio.run(open_and_close())
    return terminal
