"""Django itself, in processes of its own: it has one set of settings for each process."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.store.servers.postgres import names, server_url


def run(folder: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_cases(checkout: Path) -> None:
    plugins = [f"-p{name}" for name in ("pytest_asyncio.plugin", "pytest_timeout", "tests.contrib.django_place")]
    a_thread_ends_with_its_connection = "-Wignore:<psycopg.Connection:ResourceWarning"
    run(
        checkout,
        *("-m", "pytest", "-q", "--noconftest", *plugins, "-oaddopts=--import-mode=importlib"),
        *(a_thread_ends_with_its_connection, "tests/contrib/django_cases.py"),
        CASES_POSTGRES_URL=server_url(names()[0]),
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )


def test_the_page_shows_what_the_example_has(checkout: Path) -> None:
    """The blocks of docs/django.md that name a file are parts of it, so they run with the example."""
    page = (checkout / "docs" / "django.md").read_text()
    blocks = re.findall(r"```text\n# (\w+/\w+\.py)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 5
    for name, block in blocks:
        file = (checkout / "examples" / "django_site" / name).read_text()
        missing = [part for part in block.split("\n\n") if part.strip("\n") not in file]
        assert missing == [], name


def test_the_example(checkout: Path, tmp_path: Path) -> None:
    assert "Ran 2 tests" in run(checkout / "examples" / "django_site", "manage.py", "test", SHOP_DATA=str(tmp_path))
