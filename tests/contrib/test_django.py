"""Django itself, in processes of its own: it has one set of settings for each process."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.soak  # several processes that import Django; `test_the_cases` and `test_the_example` have the rest
def test_manage_py_runs_the_jobs_of_a_request(checkout: Path, tmp_path: Path) -> None:
    site, data = checkout / "examples" / "django_site", {"SHOP_DATA": str(tmp_path)}
    run(site, "manage.py", "migrate", "--verbosity=0", **data)
    command = [sys.executable, str(site / "manage.py"), "shiftwork", "run", "--no-web"]
    node = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **data})
    try:
        script = (
            "from django.test import Client; from orders.models import Order; from shiftwork.contrib.django import app;"
            "Client().post('/orders/', {'email': 'ada@example.org'}); (job,) = app.blocking.find_jobs();"
            "print(job.blocking.result(60), Order.objects.get().receipt_sent)"
        )
        assert "ada@example.org True" in run(site, "manage.py", "shell", "--command", script, **data)
        assert job_lines(run(site, "manage.py", "shiftwork", "jobs", **data)) == ["completed"]
    finally:
        node.send_signal(signal.SIGTERM)
    assert node.wait(timeout=60) == 0


def job_lines(printed: str) -> list[str]:
    return [line.split()[1] for line in printed.splitlines() if "send_receipt" in line]
