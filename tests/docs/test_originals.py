"""Programs for other libraries on the pages of docs/coming-from print what ours print. `make originals` runs them."""

import inspect
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import shiftwork
from benchmarks.__main__ import CHECKOUT, PEERS_PYTHON
from shiftwork import Call
from shiftwork.app.testing import Bench
from shiftwork.handles.worker import Worker
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


def test_every_equivalent_exists() -> None:
    exported = [getattr(shiftwork, name) for name in shiftwork.__all__]
    holders = [value for value in exported if inspect.isclass(value)]
    known = {name for holder in [*holders, Worker, Bench] for name in [*dir(holder), *inspect.get_annotations(holder)]}
    known |= {
        *shiftwork.__all__,
        *inspect.signature(Call.after).parameters,
        *inspect.signature(Bench.advance).parameters,
    }
    known.add("fetch")  # the task of the programs
    unknown = []
    for page in PAGES.glob("*.md"):
        for row in re.findall(r"^\|.*\|$", page.read_text(), re.MULTILINE):
            for code in re.findall(r"`([^`]+)`", row.strip("|").split("|")[-1]):
                unknown += [f"{page.stem}: {name}" for name in re.findall(r"(\w+)[(=]", code) if name not in known]
    assert unknown == []


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
