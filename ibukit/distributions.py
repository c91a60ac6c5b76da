"""Probability vectors: make one, check one, project onto the simplex."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ibukit import _validate
from ibukit._validate import Floats
from ibukit.errors import InvalidDistribution


def uniform(k: int) -> Floats:
    """The uniform distribution, theta_x = 1/k.

    Parameters
    ----------
    k : int
        Number of elements.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    ValueError
        If `k` is not a whole number of at least 1.

    Examples
    --------
    >>> uniform(4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    return np.full(_validate.whole("k", k, 1), 1 / k)


def check_distribution(p: ArrayLike, name: str = "p") -> Floats:
    """Check that p_x >= 0 and sum_x p_x = 1 (within 1e-9); nothing is clipped or renormalised.

    Parameters
    ----------
    p : array_like, shape (k,)
        The vector to check.
    name : str
        What the error message calls it.

    Returns
    -------
    ndarray, shape (k,)
        The same numbers as float64.

    Raises
    ------
    InvalidDistribution
        If an entry is negative or NaN, or the sum is not 1.

    Examples
    --------
    >>> check_distribution([0.25, 0.75])
    array([0.25, 0.75])
    """
    return _validate.distribution(name, p)


def normalize(weights: ArrayLike) -> Floats:
    """Divide by the sum: p_x = w_x / sum_u w_u.

    Parameters
    ----------
    weights : array_like, shape (k,)
        Finite, not negative, not all zero.

    Returns
    -------
    ndarray, shape (k,)

    Raises
    ------
    InvalidDistribution
        If a weight is negative or not finite, or all are zero.

    Examples
    --------
    >>> normalize([1, 3])
    array([0.25, 0.75])
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not (np.isfinite(w) & (w >= 0)).all() or not w.any():
        raise InvalidDistribution(f"weights must be finite, not negative and not all zero, got {weights!r}")
    w = w / w.max()  # so that neither tiny nor huge weights under- or overflow in the sum
    return np.asarray(w / w.sum())


def project_to_simplex(v: ArrayLike) -> Floats:
    """Project onto the simplex: argmin ||p - v||_2 over p >= 0, sum p = 1.

    Parameters
    ----------
    v : array_like, shape (k,)
        Any finite vector.

    Returns
    -------
    ndarray, shape (k,)
        max(v - tau, 0) with the tau that makes it sum to 1.

    Raises
    ------
    ValueError
        If `v` is not a non-empty vector of finite numbers.

    Notes
    -----
    Solved by sorting, O(k log k) [wang2013projection]_; the sort is POT's.

    References
    ----------
    .. [wang2013projection] W. Wang and M. A. Carreira-Perpinan, "Projection onto the probability simplex: an
       efficient algorithm with a simple proof, and an application", arXiv:1309.1541, 2013.

    Examples
    --------
    >>> project_to_simplex([0.75, 0.5, -0.25])
    array([0.625, 0.375, 0.   ])
    """
    array = np.asarray(v, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"v must be a non-empty vector of finite numbers, got {v!r}")
    from ot.utils import proj_simplex  # here, because importing ot takes longer than importing ibukit

    p = np.asarray(proj_simplex(array - array.max()), dtype=np.float64)  # a shift changes nothing but saves digits
    return np.asarray(p / p.sum())
