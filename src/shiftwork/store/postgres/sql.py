"""SQL from files: it reads them, quotes names, and puts the name of the schema in place."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

DEFAULT_SCHEMA: Final = "shiftwork"
_SCHEMA: Final = re.compile(r"\bshiftwork\.(?=\w|')")


def read(name: str) -> str:
    """Return the text of a file beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def read_folder(name: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of the SQL files in a folder beside this file, sorted by name."""
    for path in sorted(Path(__file__).with_name(name).glob("*.sql")):
        yield path.name, path.read_text(encoding="utf-8")


def quoted(name: str) -> str:
    """Return a name as an SQL identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def in_schema(text: str, schema: str) -> str:
    """Return SQL that is written for the schema "shiftwork" so that it works in another one."""
    return text if schema == DEFAULT_SCHEMA else _SCHEMA.sub(lambda _: f"{quoted(schema)}.", text)


def without_comments(text: str) -> str:
    """Return SQL without empty lines and without lines that are only a comment."""
    return "\n".join(line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--"))
