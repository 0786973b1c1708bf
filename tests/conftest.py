"""Fixtures that every test may use."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The top of the repository."""
    return Path(__file__).resolve().parent.parent
