"""A copy of the package, in which one file at a time is broken. The checkout is never touched."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from tests.mutants.mutant import PACKAGE

_CLOCK: Final = count(1_000_000_000)
"""Bytecode is valid for a time in whole seconds and a size, so each text gets a time of its own."""


class PackageCopy:
    """`src` in a folder of its own, for `PYTHONPATH`."""

    def __init__(self, folder: Path) -> None:
        self.source: Path = folder / "src"
        self.package: Path = self.source / PACKAGE.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__", "dist"))
        if (PACKAGE / "web/dist").exists():
            (self.package / "web/dist").symlink_to(PACKAGE / "web/dist", target_is_directory=True)
        for module in PACKAGE.parent.glob("*.py"):
            shutil.copy(module, self.source)

    def write(self, file: str, text: str) -> None:
        """Replace the text of a file."""
        path = self.package / file
        path.write_text(text)
        instant = next(_CLOCK)
        os.utime(path, (instant, instant))

    @contextmanager
    def with_file(self, file: str, text: str) -> Iterator[None]:
        """Have another text in a file for a while."""
        self.write(file, text)
        try:
            yield
        finally:
            self.write(file, (PACKAGE / file).read_text())
