"""Django itself, in processes of its own: it has one set of settings for each process."""

import os
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
    arguments = ["-q", "--noconftest", "-p", "no:cacheprovider", "-p", "tests.contrib.django_place"]
    url = server_url(names()[0])
    run(checkout, "-m", "pytest", *arguments, "tests/contrib/django_cases.py", CASES_POSTGRES_URL=url)


def test_the_example(checkout: Path, tmp_path: Path) -> None:
    assert "Ran 2 tests" in run(checkout / "examples" / "django_site", "manage.py", "test", SHOP_DATA=str(tmp_path))
