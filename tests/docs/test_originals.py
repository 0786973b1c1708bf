"""Programs for other libraries on the pages of docs/coming-from print what ours print. `make originals` runs them."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from benchmarks.__main__ import CHECKOUT, PEERS_PYTHON
from tests.store.servers.redis import Server, binary, required, wheel_binary

PAGES: Final = CHECKOUT / "docs" / "coming-from"
ORIGINAL: Final = re.compile(r'^```python title="(\w+\.py)"\n(.*?)^```', re.MULTILINE | re.DOTALL)
PRINTED: Final = re.compile(r'^```text title="It prints"\n(.*?)^```', re.MULTILINE | re.DOTALL)
PEERS: Final = ("apscheduler", "celery", "dramatiq", "huey", "rq", "temporal")


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    program = required(wheel_binary() or binary("valkey-server", "redis-server"), "valkey-server")
    with Server(program) as server:
        yield server.url


def test_every_page_shows_its_original_and_what_both_print() -> None:
    pages = {page.stem: page.read_text() for page in PAGES.glob("*.md")}
    assert {name for name, text in pages.items() if ORIGINAL.search(text)} == set(PEERS)
    assert {name for name, text in pages.items() if PRINTED.search(text)} == {*PEERS, "orchestrator"}


@pytest.mark.soak
@pytest.mark.skipif(not PEERS_PYTHON.exists(), reason="`make peers` has not been run")
@pytest.mark.parametrize("peer", PEERS)
def test_the_original_prints_the_same(peer: str, tmp_path: Path, redis_url: str) -> None:
    page = (PAGES / f"{peer}.md").read_text()
    (printed,) = PRINTED.findall(page)
    for name, source in ORIGINAL.findall(page):
        (tmp_path / name).write_text(source)
    ran = subprocess.run(
        [PEERS_PYTHON, "shop.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONUTF8": "1", "REDIS_URL": redis_url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr
