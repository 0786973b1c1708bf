"""SQL and Lua name their numbers and sentences: no status, flag or column is a digit, and no text is for people."""

import re
from pathlib import Path
from typing import Final

import pytest

import shiftwork.store
from shiftwork.core.jobs.transitions import NUMBERS
from shiftwork.core.stored_numbers import with_numbers
from shiftwork.store.sqlite.sql import SQL, script

STORES: Final = Path(shiftwork.store.__file__).parent
CLEAN: Final = ("sqlite", "postgres", "redis")
"""The stores whose texts have no bare numbers, apart from migrations, which are history."""
TEXTS: Final = [
    path
    for store in CLEAN
    for path in sorted((STORES / store).rglob("*"))
    if path.suffix in (".sql", ".lua") and path.parent.name != "migrations"
]
COMMENT: Final = re.compile(r"--.*$", re.MULTILINE)
BARE: Final = re.compile(
    r"\b(?!flags ~= 0)(?:status|said|kind|priority|flags)\b\)?\s*(?:=|==|~=|<>|!=|<=|>=|<|>|&|\+(?! 0 | 1\])|-)\s*\d"
    r"|\b(?:status|said|kind|priority)\b\)?\s+(?:NOT\s+)?IN\s*\(\s*\d"
    r"|\bband\([^()]*,\s*\d"
    r"|\bTHEN\s+\d\s+ELSE\s+\d\s+END\b"
    r"|\b(?:landing|m\.old|m\.new|verdict|slot)\b\s*(?:=|<>|<=|>=|<|>|\+)\s*\d"
    r"|\b\d::smallint|'\{\s*\d[\d, ]*\}'::smallint|\bpg_backend_pid\(\)\s*%\s*\d"
    r"|\b(?:86400|3600)\b"
    # in Lua: the status in a state, flags and statuses as arguments, in names of keys and fields, and columns
    r"|\bstruct\.pack\(\s*(?:LAYOUT|WITH_INSTANCE),\s*\d"
    r"|\bstring\.byte\([^()]*\)\s*(?:==|~=|<=|>=|<|>)\s*\d"
    r"|\b(?:is|set)\(\w+,\s*\d|\bcount\(\w+,\s*\d"
    r"|\d\s*\+\s*FLAG_|\bFLAG_\w+\s*\+\s*\d"
    r"|'(?:[pw]|st:)\d"
    r"|\b(?:columns?|known|info|infos|extra)\[\d"
)


def bare_numbers(text: str) -> list[str]:
    """Return the places where a number stands that has a name."""
    return [found[0] for found in BARE.finditer(COMMENT.sub("", text))]


LITERAL: Final = re.compile(r"'(?:[^'\\\n]|\\.|'')*'|\"(?:[^\"\\\n]|\\.)*\"")
SENTENCE: Final = re.compile(r"[A-Za-z]{2,},? [a-z]+,? [a-z]{2,}")


def sentences(text: str) -> list[str]:
    """Return the literals that look like sentences for people, which Python makes."""
    return [found[0] for found in LITERAL.finditer(COMMENT.sub("", text)) if SENTENCE.search(found[0])]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(STORES)))
def test_no_text_has_a_sentence(path: Path) -> None:
    assert sentences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "changes.why = failures .. ' runs in a row failed, the last one with ' .. failure",
        "state.reason := format('%s runs in a row failed, the last one with %s', n, e);",
        'local DAMAGED = "unreadable: its record in the store is damaged"',
    ],
)
def test_a_sentence_is_found(text: str) -> None:
    assert sentences(text)


@pytest.mark.parametrize(
    "text",
    [
        "-- 'this is a comment'",
        "is(type(x) == 'string' and x or '')",
        "set_config('idle_in_transaction_session_timeout', '5s', true)",
        "EXECUTE 'SELECT 1 FROM jobs'",
    ],
)
def test_other_literals_are_not_sentences(text: str) -> None:
    assert sentences(text) == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(STORES)))
def test_no_text_has_a_bare_number(path: Path) -> None:
    assert bare_numbers(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "WHERE j.status = 3 AND NOT j.parked",
        "WHERE j.status<>4",
        "job.status NOT IN (0, 1, 6, 7)",
        "if job.status == 4 then",
        "SET kind = kind + 4",
        "AND kind & 5 = 0",
        "if band(job.flags, 32) > 0 then",
        "CASE WHEN run_at <= ?1 THEN 3 ELSE 0 END",
        "keep_until = at + 86400",
        "struct.pack(LAYOUT, 3, 0, 0, 0, 0, 0, run_at)",
        "if string.byte(state) > 7 then",
        "if is(job, 32) then",
        "set(job, 32, true)",
        "local HELD = 3 + FLAG_KEYED + FLAG_WAITS",
        "count(at, 3, -1)",
        "call('ZADD', P .. 'st:6', created, id)",
        "changes['p3' .. pool]",
        "local worker = columns[2]",
        "count(*) FILTER (WHERE m.new = 3)",
        "IF landing = 0 THEN",
        "AND t.verdict < 2",
        "array_fill(9::smallint, ARRAY[n])",
        "j.status = ANY ('{0, 1, 6}'::smallint[])",
        "AND l.slot >= 24",
        "pg_backend_pid() % 8",
    ],
)
def test_a_bare_number_is_found(text: str) -> None:
    assert bare_numbers(text)


@pytest.mark.parametrize(
    "text",
    [
        "status = STATUS_QUEUED",
        "status + 0 = STATUS_QUEUED",
        "parked = 0",
        "-- status = 3",
        "attempt = attempt + 1",
        "numbers[status + 1]",
        "if flags ~= 0 then",
    ],
)
def test_other_numbers_are_not_meant(text: str) -> None:
    assert bare_numbers(text) == []


def test_every_status_has_a_name() -> None:
    for status, number in NUMBERS.items():
        assert with_numbers(f"status = STATUS_{status.name}") == f"status = {number}"


def test_a_store_adds_names_of_its_own() -> None:
    assert with_numbers("flags & FLAG_PARKED <> 0", {"FLAG_PARKED": 1}) == "flags & 1 <> 0"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="STATUS_BURIED"):
        with_numbers("status = STATUS_BURIED")


def test_what_sqlite_runs_has_numbers_only() -> None:
    for text in (*SQL.values(), *script("schema.sql"), *script("upgrade.sql")):
        assert not re.search(r"\b(?:STATUS|PRIORITY|NEED)_[A-Z]", text)
