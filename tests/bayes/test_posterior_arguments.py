"""What the posterior's functions return, and what they refuse by name."""

import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.bayes import _count_recursion


def test_what_is_returned():
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([6, 3, 1])
    estimate = ik.posterior_mean(tally, 0.5)
    assert estimate.status is ik.Status.CLOSED_FORM
    assert (estimate.n_iter, estimate.method) == (0, "posterior mean of the distribution, exact")
    assert estimate.gap == ik.gap(tally, estimate.distribution) > 0
    found = ik.posterior(tally, [0.5, 0.5, 0.5])
    assert np.array_equal(found.mean, estimate.distribution)
    assert np.isinf(found.effective_sample_size).all()
    assert (found.r_hat == 1).all()
    assert (found.standard_errors() == 0).all()
    for array in (found.mean, found.standard_deviations, found.r_hat):
        assert array.shape == (3,)
        assert not array.flags.writeable
    assert np.isnan(
        ik.posterior(tally, 0.5, method="gibbs", rng=np.random.default_rng(1)).log_evidence
    )


# What is refused

TALLY = ik.RandomizedResponse(3, 1.0).tally_counts([6, 3, 1])


@pytest.mark.parametrize("function", [ik.posterior, ik.posterior_mean])
@pytest.mark.parametrize(
    ("alpha", "error", "message"),
    [
        (0, ValueError, "alpha must be finite and above 0, got 0.0; 0.5 is Jeffreys'"),
        (-1.0, ValueError, "alpha must be finite and above 0, got -1.0"),
        (float("nan"), ValueError, "alpha must be finite and above 0, got nan"),
        ([1, 2, float("inf")], ValueError, "got inf at index 2"),
        ([1, 0, 1], ValueError, "got 0.0 at index 1"),
        (
            [1, 1],
            ik.errors.AlphabetMismatch,
            "alpha must be a number or have shape .3,., got shape .2,.",
        ),
        ([[1, 1, 1]], ik.errors.AlphabetMismatch, "got shape .1, 3."),
        ("half", ValueError, "alpha must be a number or 3 numbers, got str"),
    ],
)
def test_a_prior_that_is_none_is_refused(function, alpha, error, message):
    with pytest.raises(error, match=message):
        function(TALLY, alpha)


def test_what_is_not_known_is_refused():
    with pytest.raises(
        ValueError, match="of must be 'distribution' or 'frequencies', got 'counts'"
    ):
        ik.posterior(TALLY, 0.5, of="counts")
    with pytest.raises(
        ValueError, match="method must be 'exact', 'enumerate' or 'gibbs', got 'stan'"
    ):
        ik.posterior(TALLY, 0.5, method="stan")
    with pytest.raises(TypeError, match="tally must be a Tally"):
        ik.posterior([6, 3, 1], 0.5)
    with pytest.raises(ValueError, match="the tally is empty: at least one report is needed"):
        ik.RandomizedResponse(3, 1.0).tally_counts([0, 0, 0])


def test_what_is_too_large_says_how_large_and_what_to_use_instead():
    # the matrices of k-RR, which are not known to be: under k-RR itself nothing of this is too
    # large
    tally = ik.MatrixMechanism(ik.RandomizedResponse(10, 1.0).matrix()).tally_counts(
        np.full(10, 100)
    )
    terms, n_bytes = _count_recursion.cost(1000, 10)
    assert (f"{terms:.2e}", f"{n_bytes:.2e}") == ("2.91e+24", "9.22e+22")
    message = (
        r"method='exact' would add 2\.91e\+24 terms .* keep 9\.22e\+22 bytes .* method='gibbs'"
    )
    with pytest.raises(ik.errors.TooLarge, match=message):
        ik.posterior_mean(tally, 0.5)
    splits = f"{float(math.comb(109, 9)) ** 10:.3g}".replace("+", r"\+")
    with pytest.raises(
        ik.errors.TooLarge,
        match=rf"method='enumerate' would list {splits} splits .*'exact'.*'gibbs'",
    ):
        ik.posterior_mean(tally, 0.5, method="enumerate")
    # few enough terms, but too many totals to keep
    assert _count_recursion.cost(10, 24)[0] < _count_recursion.MAX_TERMS
    tally = ik.MatrixMechanism(ik.RandomizedResponse(24, 1.0).matrix()).tally_counts(
        np.r_[10, np.zeros(23, int)]
    )
    with pytest.raises(ik.errors.TooLarge, match=r"keep 2\.96e\+9 bytes"):
        ik.posterior_mean(tally, 0.5)
