"""Type checkers know the type of everything public without inferring it: `pyright --verifytypes`."""

import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import shiftwork
from shiftwork import testing, types

CONTRIB = ("fastapi", "flask", "sentry", "sqlalchemy", "structlog")
"""Not Django's: Django has no types."""


def public_prefixes() -> list[str]:
    """Where everything public is defined, with the classes that it inherits from."""
    modules = [shiftwork, testing, types, *(importlib.import_module(f"shiftwork.contrib.{name}") for name in CONTRIB)]
    found = {getattr(module, name) for module in modules for name in module.__all__ if name != "Duration"}
    kinds = {kind for value in found if inspect.isclass(value) for kind in inspect.getmro(value)}
    values = {value for value in found | kinds if str(getattr(value, "__module__", "")).startswith("shiftwork")}
    return sorted({f"{value.__module__}.{value.__qualname__}" for value in values if hasattr(value, "__qualname__")})


@pytest.mark.timeout(120)
def test_every_public_symbol_has_a_known_type(checkout: Path) -> None:
    command = [sys.executable, "-m", "basedpyright", "--verifytypes", "shiftwork", "--ignoreexternal", "--outputjson"]
    # It asks the first Python of the path where packages are.
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ended = subprocess.run(command, cwd=checkout / "src", env=env, capture_output=True, text=True, check=False)
    symbols = json.loads(ended.stdout)["typeCompleteness"]["symbols"]
    prefixes = public_prefixes()
    assert len(prefixes) > 100
    public = re.compile(rf"(?:{'|'.join(map(re.escape, prefixes))})(?:\..*)?")
    seen = [one for one in symbols if public.fullmatch(one["name"])]
    assert len(seen) > 800
    unsure = [one["name"] for one in seen if not one["isTypeKnown"] or one["isTypeAmbiguous"]]
    inferred = [one["name"] for one in symbols if "missing type annotation" in str(one["diagnostics"])]
    assert unsure == [], f"annotate {inferred}"
