"""Deprecated names warn, and are gone in time."""

import inspect
import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest

from shiftwork.deprecation import DEPRECATIONS, Deprecation, deprecate, deprecated_alias
from shiftwork.version import __version__

USE = re.compile(r"^from shiftwork\.deprecation import", re.MULTILINE)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def overdue(version: str) -> list[str]:
    """The names that should be gone in a version, and those that would stay for longer than one minor version."""
    major, minor, _ = numbers(version)
    return [
        name
        for name, one in DEPRECATIONS.items()
        if not (major, minor) < numbers(one.gone_in)[:2] <= (major, minor + 1) or numbers(one.gone_in)[2] != 0
    ]


class Shop:
    def new_name(self, n: int) -> int:
        """Double it."""
        return n * 2

    async def new_coroutine(self, n: int) -> int:
        return n * 2

    old_name = deprecated_alias("shop.old_name()", new_name, instead="shop.new_name()", gone_in="0.4.0")
    old_coroutine = deprecated_alias("shop.old_coroutine()", new_coroutine, instead="it", gone_in="0.4.0")


OURS = {name: DEPRECATIONS.pop(name) for name in ("shop.old_name()", "shop.old_coroutine()")}


def test_no_name_is_kept_past_its_version(checkout: Path) -> None:
    source = checkout / "src"
    for path in source.rglob("*.py"):
        if USE.search(path.read_text()):
            import_module(".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"))
    assert overdue(__version__) == []


def test_a_name_is_overdue_in_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, deprecation in OURS.items():
        monkeypatch.setitem(DEPRECATIONS, name, deprecation)
    assert overdue("0.3.2") == []
    assert len(overdue("0.4.0")) == len(overdue("0.4.1")) == len(overdue("1.0.0")) == 2
    assert len(overdue("0.2.9")) == 2  # deprecated for longer than one minor version


def test_the_warning_names_the_caller_the_remedy_and_the_version() -> None:
    with pytest.warns(DeprecationWarning, match="shop.old_name") as caught:
        assert Shop().old_name(2) == 4
    (warning,) = caught
    assert str(warning.message) == (
        "shop.old_name() is deprecated and will be removed in shiftwork 0.4.0; use shop.new_name() instead"
    )
    assert warning.filename == __file__
    assert "old_name(2)" in Path(__file__).read_text().splitlines()[warning.lineno - 1]


def test_the_warning_is_shown_once_for_each_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for n in range(3):
            Shop().old_name(n)
        Shop().old_name(3)
    assert len(caught) == 2


async def test_a_coroutine_is_awaited_under_its_old_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"old_coroutine\(\) is deprecated"):
        assert await Shop().old_coroutine(2) == 4


def test_an_alias_has_the_signature_and_the_documentation() -> None:
    assert inspect.signature(Shop.old_name) == inspect.signature(Shop.new_name)
    assert Shop.old_name.__doc__ == "Double it."


def test_a_name_that_is_not_a_function_warns_where_it_is_used() -> None:
    option = deprecate("option old=", instead="new=", gone_in="0.3.0")
    del DEPRECATIONS["option old="]

    def register(*, old: int) -> int:
        option.warn()
        return old

    with pytest.warns(DeprecationWarning, match="option old= is deprecated .* use new= instead") as caught:
        register(old=1)
    assert "register(old=1)" in Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert isinstance(option, Deprecation)
