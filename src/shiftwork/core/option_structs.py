"""Structs of options that people write themselves, such as `Retry(…)`: a wrong argument is explained."""

from typing import TYPE_CHECKING, Any

from msgspec import StructMeta

from shiftwork.core.option_hints import option_hint
from shiftwork.errors import ConfigurationError, UnknownOptionError


class OptionStructMeta(StructMeta):
    """The class of such structs. A wrong argument raises a `ConfigurationError` that names the remedy."""

    if not TYPE_CHECKING:  # a type checker knows the fields

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - the struct's class
            try:
                return super().__call__(*args, **kwargs)
            except TypeError as error:
                raise _explained(cls, args, kwargs, error) from None


def _explained(cls: StructMeta, args: tuple[Any, ...], kwargs: dict[str, Any], error: TypeError) -> ConfigurationError:
    fields = cls.__struct_fields__
    every = f"{cls.__name__} has {', '.join(fields)}"
    for name, value in kwargs.items():
        if name not in fields:
            hint = option_hint(name, value, fields)
            return UnknownOptionError(f"{cls.__name__} has no {name!r}: {hint.removesuffix('?')}; {every}")
    if args:
        return ConfigurationError(f"{cls.__name__} takes its options by name: {cls.__name__}({fields[0]}=…); {every}")
    return ConfigurationError(f"{cls.__name__}: {error}; {every}")
