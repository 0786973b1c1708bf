"""Tags: words that people give to jobs, to find them by."""

import re
from typing import Any, Final

from shiftwork.core.words import control_character
from shiftwork.errors import ConfigurationError

MOST_TAGS: Final = 20
LONGEST_TAG: Final = 100
TAG_PATTERN: Final = r"^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$"
"""The form of a tag: no control characters, and no space at either end."""

_tag = re.compile(TAG_PATTERN)


def tags_in(value: Any) -> tuple[str, ...]:
    """The tags that people have written, each once. Raises a `ConfigurationError` that does not name the option."""
    if isinstance(value, str):
        raise ConfigurationError(f"must be a list of tags, not one string; write tags=[{value!r}]")
    if not isinstance(value, list | tuple | set | frozenset):
        raise ConfigurationError(f"must be a list of strings, not {value!r}")
    for tag in value:
        _check(tag)
    tags = tuple(dict.fromkeys(sorted(value) if isinstance(value, set | frozenset) else value))
    if len(tags) > MOST_TAGS:
        raise ConfigurationError(f"must have at most {MOST_TAGS} tags, not {len(tags)}")
    return tags


def _check(tag: Any) -> None:
    if not isinstance(tag, str):
        raise ConfigurationError(f"must be a list of strings, not of {type(tag).__name__}: {tag!r}")
    if len(tag) > LONGEST_TAG:
        raise ConfigurationError(f"has a tag of {len(tag)} characters, {tag[:20]!r}…; the limit is {LONGEST_TAG}")
    if not _tag.fullmatch(tag) or control_character(tag):
        what = "an empty tag" if not tag.strip() else f"the tag {tag!r}"
        raise ConfigurationError(
            f"has {what}: a tag has at least one character, no control characters, and no space at either end"
        )
