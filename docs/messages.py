"""Writes build/shiftwork.pot, the template of a translation of the command line: `make messages`.

A message is what `t` and `counted` are called with, a word that a table of the source has for them, and the help of a
command or an option.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

TOP: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = TOP / "src" / "shiftwork" / "cli"
TEMPLATE: Final = TOP / "build" / "shiftwork.pot"
HEAD: Final = """\
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=n != 1;\\n"
"""
TABLES: Final = ("_PAST", "_UNHOSTED", "_COLOURS", "SECTIONS", "_facts", "_HELP", "HELP")
"""Constants, and one function, whose texts are looked up when they are printed."""

Message = tuple[str, str | None]
"""A message, and its plural."""


def messages() -> dict[Message, list[str]]:
    """Return every message, with the places where it is."""
    found: dict[Message, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            for message in _messages_of(node):
                found.setdefault(message, []).append(f"{path.relative_to(TOP)}:{getattr(node, 'lineno', 1)}")
    return found


def _messages_of(node: ast.AST) -> Iterator[Message]:
    if isinstance(node, ast.Call):
        yield from _called(node)
    elif isinstance(node, ast.keyword) and node.arg == "help":
        yield from ((inspect.cleandoc(text), None) for text in _texts([node.value]))
    elif isinstance(node, ast.Tuple) and len(node.elts) > 1:
        texts = [one.value for one in node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        yield from ((text, None) for text in texts if text.isupper() and len(texts) == len(node.elts))
    elif isinstance(node, ast.AnnAssign | ast.Assign):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
        if isinstance(targets[0], ast.Name) and targets[0].id in TABLES and node.value is not None:
            yield from _in_table(node.value)
    elif isinstance(node, ast.FunctionDef):
        if any("command" in ast.unparse(one) or "group" in ast.unparse(one) for one in node.decorator_list):
            yield inspect.cleandoc(ast.get_docstring(node) or ""), None
        if node.name in TABLES:
            yield from ((key, None) for one in ast.walk(node) if isinstance(one, ast.Dict) for key in _texts(one.keys))


def _called(node: ast.Call) -> Iterator[Message]:
    texts = ["".join(_texts([one])) for one in node.args]
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "t" and texts[0]:
        yield texts[0], None
    elif name == "counted" and texts[1]:
        plural = texts[2] if len(texts) > 2 else f"{texts[1]}s"
        yield f"{{n:,}} {texts[1]}", f"{{n:,}} {plural}"


def _in_table(value: ast.expr) -> Iterator[Message]:
    if isinstance(value, ast.Dict):
        keys = _texts(value.keys)
        yield from ((text, None) for text in (*keys, *(key.upper() for key in keys), *_texts(value.values)))
    else:
        yield from ((text, None) for text in _texts([value]))


def _texts(nodes: Sequence[ast.expr | None]) -> list[str]:
    return [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def template(found: dict[Message, list[str]]) -> str:
    """Return the messages in the format of gettext."""
    return HEAD + "".join(_entry(*message, places) for message, places in found.items() if message[0])


def _entry(one: str, many: str | None, places: list[str]) -> str:
    rest = 'msgstr ""\n' if many is None else f'msgid_plural {_quoted(many)}\nmsgstr[0] ""\nmsgstr[1] ""\n'
    return f"\n#: {' '.join(places)}\n#, python-brace-format\nmsgid {_quoted(one)}\n{rest}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\b", "\\b")
    return '"' + escaped.replace("\n", '\\n"\n"') + '"'


def main() -> None:
    """Write the template."""
    found = messages()
    TEMPLATE.parent.mkdir(exist_ok=True)
    TEMPLATE.write_text(template(found))
    sys.stdout.write(f"» {len(found)} messages in {TEMPLATE.relative_to(TOP)}\n")


if __name__ == "__main__":
    main()
