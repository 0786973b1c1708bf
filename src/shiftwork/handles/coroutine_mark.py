"""Marks an object that is called like a coroutine function as one, for frameworks that check before they call."""

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

if sys.version_info >= (3, 12):

    def mark_as_coroutine_function(called: Callable[..., Any]) -> None:
        """Let `inspect.iscoroutinefunction` and `asyncio.iscoroutinefunction` return True for this object."""
        inspect.markcoroutinefunction(called)

else:

    def mark_as_coroutine_function(called: Callable[..., Any]) -> None:
        """Let `asyncio.iscoroutinefunction` return True for this object, and that of `inspect` if it is a function."""
        called._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # noqa: SLF001
        if inspect.isfunction(called):
            # `inspect` has no mark in this Python, and reads the flag, which is for readers alone: what makes a
            # coroutine is an instruction of the code.
            code = called.__code__
            called.__code__ = code.replace(co_flags=code.co_flags | inspect.CO_COROUTINE)
