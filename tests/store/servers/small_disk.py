"""A small disk of its own, which a test can fill."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A disk that can be filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filling = folder / "filling"

    def fill(self, *, but: int = 0) -> None:
        """Leave room for only this many bytes."""
        with self._filling.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                file.truncate(max(0, file.tell() - but))

    def free(self) -> None:
        self._filling.unlink()


@contextmanager
def small_disk(folder: Path, *, megabytes: int = 24) -> Iterator[SmallDisk]:
    """A disk in this new folder. Skips the test where none can be mounted."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a disk can be mounted by root alone")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)
