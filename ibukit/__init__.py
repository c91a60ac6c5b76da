"""Reconstruct distributions from locally private reports, and certify how well they fit.

A mechanism turns reports into a tally, and an estimator turns a tally into an estimate:

>>> import numpy as np, ibukit as ik
>>> mechanism = ik.RandomizedResponse(4, epsilon=2.0)
>>> reports = mechanism.randomize(np.repeat([0, 1, 2], 1000), np.random.default_rng(1))
>>> estimate = ik.ibu(mechanism.tally(reports))
>>> estimate.distribution.round(1), estimate.gap < 1e-6
(array([0.4, 0.3, 0.3, 0. ]), True)
"""

import lazy_loader as _lazy

# The stub `__init__.pyi` is the one list of names: type checkers read it, and so does lazy_loader,
# which imports a name when it is first asked for.
_load, _, __all__ = _lazy.attach_stub(__name__, __file__)
# These modules are attributes, but are too special for `from ibukit import *`.
for _room in (
    "bayes",
    "estimators",
    "evaluation",
    "mechanisms",
    "planning",
    "plotting",
    "testing",
):
    __all__.remove(_room)
del _room, _


def __getattr__(name: str) -> object:
    if name != "__version__":
        return _load(name)
    # This is imported only when needed: it takes as long as everything else in `import ibukit`.
    from importlib.metadata import version

    return version(__name__)


def __dir__() -> list[str]:
    # Python adds every submodule that is loaded to the package; completion shows only public names.
    return sorted({*__all__, *(name for name in globals() if name.startswith("_"))})
