"""Random cron expressions, judged by croner: the library of the author of the Open Cron Pattern Specification."""

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from shiftwork.core.options.value_checks import cron
from shiftwork.core.schedules.cron import upcoming_fires
from tests.outside.tally import Tally

HERE: Final = Path(__file__).parent / "croner"
VERSION: Final[str] = json.loads((HERE / "package.json").read_text())["dependencies"]["croner"]
PATTERNS: Final = 3_000
FIRES: Final = 10
"""How many fire times of each are compared."""
AFTER: Final = 1_767_225_600
"""The beginning of 2026."""
MARCH: Final = "croner leaves out 1 March, which `*/n` names, after a February without the days that it names, too"
THEIRS: Final = {
    "29 2 */10,5 * *": MARCH,
    "29-32/31 6-8,5-15/7 */30 4-AUG/3,2-JUL,2 *": MARCH,
    "9,14 9 */30,*/15,4 3-12/7,2-12,8-SEP/6 *": MARCH,
    "28-36 7-18 * * SUN-SUN": "croner takes SUN-SUN for all days, 0 to 7",
}
"""Where croner is wrong, by the text of the specification."""
DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def judged(node: str, folder: Path, seed: int = 1) -> Tally:
    """Compare fire times of random expressions; `folder` is where croner is installed."""
    dice = random.Random(seed)
    patterns = [pattern(dice) for _ in range(PATTERNS)]
    asked = json.dumps({"after": AFTER, "count": FIRES, "patterns": patterns})
    module = folder / "node_modules" / "croner" / "dist" / "croner.js"
    command = [node, str(HERE / "judge.mjs"), module.resolve().as_uri()]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    tally = Tally(suite="croner, random expressions", version=VERSION)
    for text, theirs in zip(patterns, json.loads(told), strict=True):
        ours = _fires(text)
        if ours == theirs or (theirs == [] and isinstance(ours, str)):  # it never fires, which we reject
            tally.passed += 1
        elif text in THEIRS:
            tally.skipped[text] = THEIRS[text]
        else:
            tally.failed[text] = f"{ours}, not {theirs}"
    return tally


def _fires(text: str) -> Any:
    try:
        return [int(at) for at in upcoming_fires(cron(text), "UTC", AFTER, FIRES)]
    except ValueError as error:
        return str(error)


def pattern(dice: random.Random) -> str:
    """Return an expression of OCPS 1.0, with `L` and `#` of 1.3.

    If both kinds of days are given, neither begins with `*`: there we differ by decision.
    """
    minute, hour = _field(dice, 0, 59), _field(dice, 0, 23)
    month = _field(dice, 1, 12, MONTHS)
    day, weekday = _day(dice), _weekday(dice)
    if "*" in {day[0], weekday[0]}:
        day, weekday = dice.choice([(day, "*"), ("*", weekday)])
    return f"{minute} {hour} {day} {month} {weekday}"


def _day(dice: random.Random) -> str:
    return "L" if dice.random() < 0.1 else _field(dice, 1, 31)


def _weekday(dice: random.Random) -> str:
    if dice.random() < 0.7:
        return _field(dice, 0, 7, DAYS)
    day = dice.choice([*DAYS, *"01234567"])
    return dice.choice([f"{day}#{dice.randint(1, 5)}", f"{day}#L", f"{dice.randint(0, 7)}L"])


def _field(dice: random.Random, low: int, high: int, names: Sequence[str] = ()) -> str:
    return (
        "*"
        if dice.random() < 0.3
        else ",".join(_part(dice, low, high, names) for _ in range(dice.choice([1, 1, 2, 3])))
    )


def _part(dice: random.Random, low: int, high: int, names: Sequence[str]) -> str:
    kind = dice.choice(["value", "value", "range", "steps", "steps of a range"])
    if kind == "steps":
        return f"*/{dice.randint(1, high)}"  # croner takes no larger step, though the specification has no such rule
    first, last = sorted(dice.randint(low, high) for _ in range(2))
    if kind == "value":
        return _named(dice, first, low, names)
    between = f"{_named(dice, first, low, names)}-{_named(dice, last, low, names)}"
    return between if kind == "range" else f"{between}/{dice.randint(1, high)}"


def _named(dice: random.Random, value: int, low: int, names: Sequence[str]) -> str:
    if value - low >= len(names) or dice.random() < 0.6:
        return str(value)
    name = names[value - low]
    return dice.choice([name, name.lower(), name.title()])
