"""Reads queries.sql: statements under the names they are called by, for the schema they are to work in."""

import re
from functools import cache
from importlib.resources import files
from typing import Final

DEFAULT_SCHEMA: Final = "shiftwork"
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_SCHEMA: Final = re.compile(r"\bshiftwork\.(?=\w|')")


def read(name: str) -> str:
    """A file that lies beside this one."""
    return files("shiftwork.store.postgres").joinpath(name).read_text(encoding="utf-8")


def quoted(name: str) -> str:
    """A name as SQL wants it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def in_schema(text: str, schema: str) -> str:
    """SQL that is written for the schema "shiftwork", for another one."""
    return text if schema == DEFAULT_SCHEMA else _SCHEMA.sub(lambda _: f"{quoted(schema)}.", text)


@cache
def statements(schema: str) -> dict[str, str]:
    """The statements by name, without their comments."""
    parts = _NAME.split(in_schema(read("queries.sql"), schema))
    return {name: _bare(body) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _bare(body: str) -> str:
    lines = (line for line in body.splitlines() if line.strip() and not line.startswith("--"))
    return "\n".join(lines).rstrip().removesuffix(";")
