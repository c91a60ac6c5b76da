"""Old ways to call what is public: taken in this release with a warning, or refused where they would mislead."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from warnings import warn

P = ParamSpec("P")
R = TypeVar("R")


def once_positional(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Take arguments that are keyword-only now by position, too, in their old order and with a warning."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        most = _positional(function)

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> R:
            given = dict(zip(names, args[most:], strict=False))
            # one too many, or one twice: Python's own error says so
            if 0 < len(given) == len(args) - most and not given.keys() & kwargs.keys():
                warn(
                    f"{function.__name__} takes {', '.join(given)} by keyword; by position they go in the next release",
                    DeprecationWarning,
                    2,
                )
                return function(*args[:most], **given, **kwargs)
            return function(*args, **kwargs)

        return called

    return decorate


def reordered(was: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Refuse what can only be meant in the old order, where the same numbers stood for other things."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        most = _positional(function)
        first = function.__code__.co_varnames[:most]

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> R:
            if len(args) > most or set(first[: len(args)]) & kwargs.keys():
                raise TypeError(
                    f"{function.__name__} takes {', '.join(first)} first and all else by keyword; the order of the "
                    f"last release, {was}, is refused because its numbers would be taken for others"
                )
            return function(*args, **kwargs)

        return called

    return decorate


def hyphenated(argument: str, value: Any, known: Collection[str]) -> Any:
    """The value of an argument that was once spelt with spaces in the place of hyphens."""
    if isinstance(value, str) and value not in known and (new := value.replace(" ", "-")) in known:
        warn(
            f"{argument}={value!r} is now {new!r}; the old spelling goes in the next release",
            DeprecationWarning,
            3,
        )
        return new
    return value


def moved(module: str, names: dict[str, str], there: dict[str, Any]) -> Callable[[str], Any]:
    """A module's ``__getattr__``, by which functions are found under their old names, with a warning."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(
            f"{module}.{name} is now {module}.{names[name]}, and goes in the next release",
            DeprecationWarning,
            2,
        )
        return there[names[name]]

    return find


def _positional(function: Callable[..., Any]) -> int:
    """How many arguments may come by position."""
    return int(function.__code__.co_argcount)
