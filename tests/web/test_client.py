"""The TypeScript client: generated from the document, built and packed as it is published, and used from Node."""

import asyncio
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.web.openapi import document
from tests.cli.terminal import SHOP
from tests.node import COMPILER, install_client, node
from tests.polling import wait_until
from tests.web.test_serving import Process

SCRIPT = Path(__file__).with_name("client.mjs")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of a node that demands a token."""
    (tmp_path / "shop.py").write_text(SHOP)
    running = Process(tmp_path, "run", "shop:app", "--port", "0", "--always-token")
    wait_until(lambda: running.serves)
    yield running.address()
    assert running.stop() == 0


async def tokens(store: str) -> tuple[str, str]:
    """Return a token that may operate, and one that may only read."""
    app = WorkerOrchestrator(store)
    _, operate = await app.control.tokens.create("operator", "operate")
    _, read = await app.control.tokens.create("reader", "read")
    await app.close()
    return operate, read


def test_the_client_does_what_it_says_with_a_real_node(served: str, tmp_path: Path) -> None:
    install_client(tmp_path)
    shutil.copy(SCRIPT, tmp_path)
    operate, read = asyncio.run(tokens(f"sqlite:///{tmp_path}/shop.db"))
    node(SCRIPT.name, served, operate, read, cwd=tmp_path)


def test_the_types_are_those_of_the_document(checkout: Path) -> None:
    generate = _module(checkout / "ui/client/generate.py")
    assert generate.WRITTEN.read_text() == generate.written(document()), "run `make client`"


def test_the_package_is_published_under_the_version_of_the_server(checkout: Path) -> None:
    package = json.loads((checkout / "ui/client/package.json").read_text())
    assert (package["name"], package["version"]) == ("shiftwork", version("shiftwork"))
    assert package.keys().isdisjoint({"private", "dependencies", "peerDependencies"})


def test_the_example_is_the_one_that_is_run(checkout: Path) -> None:
    page, readme = (checkout / "docs/api.md").read_text(), (checkout / "ui/client/README.md").read_text()
    (example,) = re.findall(r"^```ts$.*?^```$", readme, re.MULTILINE | re.DOTALL)
    assert example.replace("8421", "8437") in page


@pytest.mark.soak
def test_what_npm_packs_is_complete_and_its_types_hold(checkout: Path, tmp_path: Path) -> None:
    (checkout / "dist").mkdir(exist_ok=True)
    subprocess.run([sys.executable, "hatch_build.py", "pack"], cwd=checkout, check=True, capture_output=True)
    with tarfile.open(checkout / "dist" / f"shiftwork-{version('shiftwork')}.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
    assert {"README.md", "LICENSE", "package.json"} < {path.name for path in (tmp_path / "package").iterdir()}
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "package").rename(tmp_path / "node_modules/shiftwork")
    shutil.copy(checkout / "ui/client/uses.ts", tmp_path / "uses.mts")
    options = ("--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "")
    node(COMPILER, *options, "uses.mts", cwd=tmp_path)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
