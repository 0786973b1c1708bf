"""One mutant: a file of the package, a text in it, and what is there instead."""

from difflib import unified_diff
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

PACKAGE: Final = Path(__file__).resolve().parents[2] / "src" / "shiftwork"


class DoesNotApplyError(Exception):
    """The text that a mutant changes is not in its file, or is there more than once."""


class Mutant(Struct, frozen=True):
    """A breakage with a name."""

    name: str
    """What is wrong, in words."""
    file: str
    """Below `src/shiftwork`."""
    right: str
    """What the file has."""
    wrong: str
    """What it has instead."""
    noticed_by: tuple[str, ...]
    """The tests each of which must fail: checks of the conformance suite, or tests as pytest names them."""
    behind: str = ""
    """A text behind which it is, if the file has it more often than once."""

    def applied_to(self, text: str) -> str:
        """Return the text of the file with this breakage."""
        before, marker, rest = text.partition(self.behind) if self.behind else ("", "", text)
        found = rest.count(self.right)
        if found == 0 or (found > 1 and not self.behind) or self.right == self.wrong:
            raise DoesNotApplyError(f"{self.name}: {self.file} has {found} times: {self.right}")
        return before + marker + rest.replace(self.right, self.wrong, 1)


def table(folder: str, *mutants: Mutant) -> tuple[Mutant, ...]:
    """Return mutants whose files are named inside a folder."""
    return tuple(replace(mutant, file=folder + mutant.file) for mutant in mutants)


def difference(file: str, before: str, after: str) -> str:
    """Return what changed, as a diff with one line of context."""
    lines = unified_diff(before.splitlines(), after.splitlines(), file, file, lineterm="", n=1)
    return "\n".join(list(lines)[2:])
