"""The design of a regression: covariates with an intercept, from numbers or a formula."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.array_arguments import first_index
from ibukit._ground.extras import missing_extra
from ibukit.errors import CollinearDesign

INTERCEPT = "intercept"
# Columns whose part outside the span of the others is smaller than this, relative to the columns,
# are combinations of the others: rounding would leave no digit of their coefficients.
MIN_INDEPENDENT = 1e-9
# Range of the largest entry of a column, whose square a double must hold.
MIN_COLUMN, MAX_COLUMN = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class Covariates:
    """The reader of covariates: the names of the columns, and the formula if there is one."""

    names: tuple[str, ...]
    spec: Any = field(default=None, repr=False)
    labelled: bool = False

    def read(self, X: Any) -> Floats:
        """Return the columns for other people, the intercept first, shape (m, d + 1)."""
        if self.spec is not None:
            if isinstance(X, str) or not hasattr(X, "columns"):
                raise TypeError(
                    f"X must be a frame with the columns of the formula, got {arguments.brief(X)}"
                )
            return _evaluated(self.spec, X)[0]
        if self.labelled and hasattr(X, "columns"):
            places = {str(name): name for name in X.columns}
            missing = [name for name in self.names[1:] if name not in places]
            if missing:
                raise ValueError(
                    f"X must have the columns {list(self.names[1:])}, got none of {missing}"
                )
            X = X[[places[name] for name in self.names[1:]]]
        return _with_intercept(_matrix(X, len(self.names) - 1))


def read_design(X: Any, data: Any) -> tuple[Covariates, Floats]:
    """Return the covariates and their columns, the intercept first, shape (n, d + 1)."""
    if isinstance(X, str):
        if data is None:
            raise TypeError(f"data must be the frame of the formula X={X!r}, got None")
        columns, spec, names = _evaluated(_formula(X), data)
        return Covariates(names, spec), columns
    labelled = len(getattr(X, "shape", ())) == 2 and hasattr(X, "columns")
    columns = _with_intercept(_matrix(X, None))
    d = columns.shape[1] - 1
    name = getattr(X, "name", None)
    if labelled:
        names = tuple(map(str, X.columns))
    else:
        names = (str(name),) if name is not None else tuple(f"x{j + 1}" for j in range(d))
    if len({INTERCEPT, *names}) < d + 1:
        raise ValueError(
            f"X must have columns of different names other than {INTERCEPT!r}, got {list(names)}"
        )
    return Covariates((INTERCEPT, *names), labelled=labelled), columns


def whitened(columns: Floats, weights: Floats, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Return columns R^-1, which are orthogonal and of mean square 1, and R.

    Means are weighted. If the columns are dependent there is no such R, and CollinearDesign is
    raised. Likelihoods of the new columns are of the same scale in all directions, whatever the
    units of the covariates, and the coefficients are R^-1 times those of the new columns.
    """
    largest = np.abs(columns).max(axis=0)
    zero = np.flatnonzero(largest == 0)
    if zero.size:
        raise CollinearDesign(
            f"X must have independent columns, {names[zero[0]]!r} is 0 everywhere: leave it out"
        )
    bad = ~((largest >= MIN_COLUMN) & (largest <= MAX_COLUMN))
    if bad.any():
        raise ValueError(
            f"X must have columns with largest entries from {MIN_COLUMN:g} to {MAX_COLUMN:g}, "
            f"{names[int(np.argmax(bad))]!r} has {largest[bad][0]:.3g}: change its unit"
        )
    share = np.sqrt(weights / weights.sum())
    scaled = columns / largest * share[:, None]
    norms = np.sqrt((scaled**2).sum(axis=0))
    _, triangle, order = qr(scaled / norms, mode="economic", pivoting=True)
    depths = np.abs(np.diag(triangle))
    dependent = np.flatnonzero(depths <= MIN_INDEPENDENT * depths[0])
    if dependent.size or len(depths) < len(names):
        place = int(dependent[0]) if dependent.size else len(depths)
        _refuse_dependent(scaled / norms, sorted(order[:place]), int(order[place]), names)
    R = qr(scaled, mode="r")[0][: len(names)]
    return solve_triangular(R, (columns / largest).T, trans="T").T, R * largest


def _refuse_dependent(
    columns: Floats, others: list[int], column: int, names: tuple[str, ...]
) -> None:
    """Raise CollinearDesign, which names a column and the others that it is a combination of."""
    found = np.linalg.lstsq(columns[:, others], columns[:, column], rcond=None)[0]
    used = [names[other] for other, c in zip(others, found, strict=True) if abs(c) > 1e-6]
    if len(others) == len(columns):
        why = f"there are {len(names)} columns for {len(columns)} respondents"
    else:
        why = f"{names[column]!r} is a combination of {', '.join(map(repr, used))}"
    constant = " (the intercept is added by itself)" if INTERCEPT in (*used, names[column]) else ""
    raise CollinearDesign(
        f"X must have columns that are independent of each other, {why}{constant}: leave one of "
        "them out"
    )


def _matrix(X: Any, d: int | None) -> Floats:
    expected = "numbers, a row for each respondent; categories need a formula with data=frame"
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        X = X.to_numpy()
    found = arguments.numbers("X", arguments.whole_array("X", X), expected)
    found = found[:, None] if found.ndim == 1 and d in (None, 1) else found
    if found.ndim != 2 or not len(found) or d not in (None, found.shape[1]):
        shape = "(n, d)" if d is None else f"(m, {d})"
        raise ValueError(f"X must have shape {shape}, a row for each person, got {found.shape}")
    bad = ~np.isfinite(found)
    if bad.any():
        raise ValueError(
            f"X must be finite, got {found[bad][0]} at index {first_index(bad)}: enter missing "
            "values, or remove these people from all arguments, which is right only if they are "
            "like the others"
        )
    return found


def _with_intercept(columns: Floats) -> Floats:
    return np.hstack([np.ones((len(columns), 1)), columns])


def _formula(text: str) -> Any:
    try:
        from formulaic import Formula
    except ImportError as error:
        raise missing_extra("X as a formula", "formulaic") from error
    try:
        return Formula(text)
    except Exception as error:
        raise ValueError(f"X must be a formula, as 'age + sex', got {text!r}: {error}") from error


def _evaluated(formula: Any, data: Any) -> Any:
    """Return columns, the specification for other data, and names; the intercept is first."""
    from formulaic.errors import DataMismatchWarning

    try:
        with warnings.catch_warnings():
            # A level that the fit did not see would become a missing value.
            warnings.simplefilter("error", DataMismatchWarning)
            found = formula.get_model_matrix(data, na_action="raise", output="numpy")
        columns, spec = np.array(found, dtype=np.float64), found.model_spec
        names = [str(name) for name in spec.column_names]
    # Formulas are code of the reader's, which may raise anything.
    except Exception as error:
        raise ValueError(
            f"X must be a formula of covariates that are in data, complete and known to the fit, "
            f"but it fails: {error}"
        ) from error
    if "Intercept" not in names:
        raise ValueError(f"X must have the intercept, take '- 1' or '0 +' out of it, got {names}")
    if not np.isfinite(columns).all():
        raise ValueError(f"X must be finite, but it has NaN or infinite values: columns {names}")
    place = names.index("Intercept")
    order = [place, *(j for j in range(len(names)) if j != place)]
    return columns[:, order], spec, (INTERCEPT, *(names[j] for j in order[1:]))
