"""How `import ibukit` stays light: a public name is loaded when it is first asked for, and nothing before."""

from importlib import import_module
from types import ModuleType
from typing import Any
from warnings import warn


class Front(ModuleType):
    """The class of the package itself, which shows what its ``__all__`` names and nothing else.

    ``_HOMES`` of the package says in which module a name is defined; a name that has no home is a public module.
    ``_MOVED`` has the old names and the modules in which they are now.
    """

    def __getattr__(self, name: str) -> Any:
        own = vars(self)
        if name == "__version__":
            from importlib.metadata import version  # as slow as all else that `import ibukit` does

            own[name] = version(self.__name__)
        elif name in own["_HOMES"]:
            own[name] = getattr(import_module(f"{self.__name__}.{own['_HOMES'][name]}"), name)
        elif name in own["_MOVED"]:
            home = f"{self.__name__}.{own['_MOVED'][name]}"
            warn(f"{self.__name__}.{name} is now {home}.{name}, and goes in the next release", DeprecationWarning, 2)
            return getattr(import_module(home), name)
        else:
            return self._module(name)
        return own[name]

    def _module(self, name: str) -> ModuleType:
        """The module of this name, as after ``import ibukit.name``."""
        path = f"{self.__name__}.{name}"
        if not name.startswith("_"):
            try:
                return import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:  # the module is there, and something that it needs is not
                    raise
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: object) -> None:
        # Python hands each module that it loads to its package. Those that are not public would be seen or not,
        # whatever was loaded before; and the package `ibukit.posterior` would stand in the place of its function.
        own = vars(self)
        public = name in own["__all__"] and name not in own["_HOMES"]
        if public or name.startswith("_") or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # what is sent to a worker may name the package: it is imported there, like any other module
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*self.__all__, *(name for name in vars(self) if name.startswith("_"))})
