r"""The likelihood of a multinomial logit whose outcomes are seen through mechanisms.

With p_is = softmax(x_i' B)_s the probability of secret s and L_is = P(z_i | s), report i has the
probability P_i = sum_s p_is L_is, and given its report the secret has the posterior probabilities
r_is = p_is L_is / P_i. Derivatives by the linear predictors are

    d log P_i / d eta_is = r_is - p_is,
    - d^2 log P_i / d eta_is d eta_it = (diag p - p p')_st - (diag r - r r')_st:

the information of the secrets minus that which the reports withhold (Louis 1982). The first term
alone, the complete information, is positive semidefinite; the difference need not be, which is why
the likelihood is not concave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ibukit._ground.arguments import Floats, Ints


class Derivatives(NamedTuple):
    """The log-likelihood, its gradient and the observed information at some coefficients."""

    value: float
    gradient: Floats
    """Shape (p,), the coefficients of one secret after the other."""
    observed: Floats
    """Shape (p, p)."""


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The log-likelihood of coefficients, shape (k - 1, d + 1), a row for each secret but one.

    Parameters
    ----------
    design : ndarray, shape (n, d + 1)
        Covariates of each respondent.
    log_rows : ndarray, shape (s, k)
        Logarithms of the probabilities of the distinct reports; -inf where a secret excludes a
        report.
    at : ndarray of int, shape (n,)
        The row of `log_rows` that belongs to each respondent.
    weights : ndarray, shape (n,)
        Above 0; ones if respondents count equally.
    """

    design: Floats
    log_rows: Floats
    at: Ints
    weights: Floats

    @property
    def total(self) -> float:
        """Number of respondents, or the sum of their weights."""
        return float(self.weights.sum())

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the coefficients, (k - 1, d + 1)."""
        return self.log_rows.shape[1] - 1, self.design.shape[1]

    def value(self, coefficients: Floats) -> float:
        """Return the log-likelihood; finite for finite coefficients."""
        return float(self.weights @ self._logs(coefficients)[2])

    def derivatives(self, coefficients: Floats) -> Derivatives:
        """Return the log-likelihood with its gradient and observed information."""
        log_p, log_joint, log_reports = self._logs(coefficients)
        p, r = np.exp(log_p), np.exp(log_joint - log_reports)
        score = (r - p)[1:] * self.weights

        def withheld(s: int, t: int) -> Floats:
            own = p[s] - r[s] if s == t else 0.0
            return own - (p[s] * p[t] - r[s] * r[t])

        return Derivatives(
            float(self.weights @ log_reports),
            (score @ self.design).ravel(),
            self._information(withheld),
        )

    def complete_information(self, coefficients: Floats) -> Floats:
        """Return the information if the secrets were known, positive semidefinite, shape (p, p)."""
        p = np.exp(log_probabilities(self.design, coefficients))

        def known(s: int, t: int) -> Floats:
            return (p[s] if s == t else 0.0) - p[s] * p[t]

        return self._information(known)

    def scores(self, coefficients: Floats) -> Floats:
        """Return the gradient of each respondent's log-likelihood, without weights, (p, n)."""
        log_p, log_joint, log_reports = self._logs(coefficients)
        score = (np.exp(log_joint - log_reports) - np.exp(log_p))[1:]
        return (score[:, None, :] * self.design.T).reshape(-1, len(self.at))

    @cached_property
    def _log_rows_at(self) -> Floats:
        """The row of each respondent, shape (k, n)."""
        return self.log_rows.T[:, self.at]

    def _logs(self, coefficients: Floats) -> tuple[Floats, Floats, Floats]:
        """Return log p and log p L, both (k, n), and the log-probabilities of the reports, (n,)."""
        log_p = log_probabilities(self.design, coefficients)
        log_joint = log_p + self._log_rows_at
        return log_p, log_joint, _log_sum(log_joint)

    def _information(self, entry: Callable[[int, int], Floats]) -> Floats:
        """Return sum_i w_i h_i (x) x_i x_i' for entries h_i of two secrets other than the first."""
        q, d = self.shape
        blocks = np.empty((q, d, q, d))
        for s in range(q):
            for t in range(s + 1):
                weights = self.weights * entry(s + 1, t + 1)
                block = (self.design.T * weights) @ self.design
                blocks[s, :, t] = block
                blocks[t, :, s] = block.T
        return blocks.reshape(q * d, q * d)


def log_probabilities(design: Floats, coefficients: Floats) -> Floats:
    """Return the logarithm of the probability of each secret, shape (k, n)."""
    predictors = np.vstack([np.zeros(len(design)), coefficients @ design.T])
    return predictors - _log_sum(predictors)


def probabilities(design: Floats, coefficients: Floats) -> Floats:
    """Return the probability of each secret, shape (n, k)."""
    return np.exp(log_probabilities(design, coefficients)).T


def _log_sum(logs: Floats) -> Floats:
    """Return log sum_s exp(logs_s), shape (n,); one of the terms is finite."""
    # Along the first axis numpy adds whole rows, several times as fast as scipy's logsumexp.
    top = logs.max(axis=0)
    total: Floats = top + np.log(np.exp(logs - top).sum(axis=0))
    return total
