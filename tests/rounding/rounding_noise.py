"""As if on another machine:
every operator and every linear solve of the package answers with other last digits.

Of a number x it makes x (1 + u), |u| <= 2^-50, about four units in the last place: what another
processor, another BLAS or another order of a sum may answer as well. u is a hash of the seed and of
the bits of x, so that a repeated computation gives the same result, as on a real machine.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE = 2.0**-50
# methods whose answers are made noisy, wherever a class of the package has them
METHODS = ("forward", "adjoint", "solve", "_solve")

ONE, OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Noise:
    """x -> x (1 + u) for numbers and arrays of doubles; all else is returned as it is."""

    def __init__(self, seed: int):
        self.seed = np.uint64(seed * 0x2545F4914F6CDD1D % 2**64)

    def __call__(self, x: Any) -> Any:
        """The noisy number, or a noisy copy of the array."""
        if isinstance(x, tuple):
            return tuple(map(self, x))
        if not isinstance(x, (float, np.floating, np.ndarray)) or np.asarray(x).dtype != np.float64:
            return x
        exact = np.array(x, dtype=np.float64, ndmin=1, order="C")
        mixed = (exact.view(np.uint64) ^ self.seed) * ONE
        mixed = (mixed ^ mixed >> np.uint64(31)) * OTHER
        u = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
        made = exact * (1 + SIZE * u)
        return made.reshape(np.shape(x)) if isinstance(x, np.ndarray) else float(made[0])

    def after(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with noisy results."""

        @functools.wraps(function)
        def noisy(*args: Any, **kwargs: Any) -> Any:
            return self(function(*args, **kwargs))

        return noisy

    def after_solver(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same for a function that returns a solver, or None."""

        @functools.wraps(function)
        def made(*args: Any, **kwargs: Any) -> Any:
            solve = function(*args, **kwargs)
            return None if solve is None else self.after(solve)

        return made

    def before_updates(self, updates_of: Callable[..., Any]) -> Callable[..., Any]:
        """The same for what makes the compiled steps of IBU:
        every one of them divides the noisy q by p.
        """

        @functools.wraps(updates_of)
        def made(channel: Any, q: Any) -> Any:
            return updates_of(channel, self(q))

        return made


def _replace(modules: list[Any], old: Any, new: Any) -> None:
    for module in modules:
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def install(seed: int) -> int:
    """Put noise into the imported package; the number of places where it enters."""
    import scipy.linalg.lapack
    import scipy.optimize

    import ibukit
    from ibukit.solvers import _normal_equations, em
    from ibukit.solvers.dense.systems import Systems
    from ibukit.tally import likelihood

    for name in ibukit.__all__:
        getattr(
            ibukit, name
        )  # noise enters what is loaded, and a public name is loaded when it is first asked for
    noise, places = Noise(seed), 0
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "ibukit"]
    classes = {
        value
        for module in modules
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.startswith("ibukit.")
    }
    for cls in classes:
        for name in METHODS:
            method = vars(cls).get(name)
            if inspect.isfunction(method) and not getattr(method, "__isabstractmethod__", False):
                setattr(cls, name, noise.after(method))
                places += 1
    for old, new in (
        (scipy.linalg.cho_solve, noise.after(scipy.linalg.cho_solve)),
        (scipy.linalg.solve_triangular, noise.after(scipy.linalg.solve_triangular)),
        (scipy.linalg.lapack.dposv, noise.after(scipy.linalg.lapack.dposv)),
        (scipy.optimize.nnls, noise.after(scipy.optimize.nnls)),
        (likelihood.ratios, noise.after(likelihood.ratios)),
        (_normal_equations.cholesky, noise.after_solver(_normal_equations.cholesky)),
    ):
        _replace([*modules, scipy.optimize], old, new)
        places += 1
    Systems.solver = noise.after_solver(Systems.solver)
    places += 1
    # in whatever takes steps, not in the room that makes them: its tests hold each routine against
    # its source
    steps = types.ModuleType("noisy_updates")
    vars(steps).update(vars(em) | {"updates_of": noise.before_updates(em.updates_of)})
    others = [module for module in modules if module is not em]
    _replace(others, em.updates_of, steps.updates_of)
    _replace([module for module in others if module.__name__ != em.__package__], em, steps)
    np.linalg.solve = noise.after(np.linalg.solve)
    return places + 1
