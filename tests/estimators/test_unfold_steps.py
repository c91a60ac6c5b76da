"""Unfolding that stops early: the steps of D'Agostini and of Richardson and Lucy, by formula."""

import numpy as np
import pytest

import ibukit as ik
from ibukit.estimators.unfolding import poisson_steps as _poisson_steps

RESPONSE = np.array([[0.6, 0.2, 0.0], [0.1, 0.5, 0.2], [0.0, 0.2, 0.6]])
BACKGROUND = np.array([20.0, 10.0, 5.0])
COUNTS = np.array([120, 150, 90])


def steps(response, counts, background, n):
    """The iteration from a flat start of all counts, as the papers write it."""
    numbers = np.full(len(response), counts.sum() / len(response))
    for _ in range(n):
        folded = numbers @ response + background
        numbers = numbers * (response @ (counts / folded)) / response.sum(axis=1)
    return numbers


@pytest.mark.parametrize("n", [1, 4, 30])
@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["alone", "background"])
@pytest.mark.parametrize("unit", [1.0, 37.3], ids=["probabilities", "areas"])
def test_steps_are_those_of_the_papers(n, background, unit):
    found = ik.unfold(COUNTS, unit * RESPONSE, background=background, stop=ik.Steps(n))
    right = steps(unit * RESPONSE, COUNTS, 0.0 if background is None else background, n)
    np.testing.assert_allclose(found.counts, right, rtol=1e-13)
    assert (found.n_iter, found.status) == (n, ik.Status.STOPPED)
    assert f"Steps(n={n})" in found.method
    if background is not None:
        nu = right @ (unit * RESPONSE) + background
        np.testing.assert_allclose(found.expected, nu, rtol=1e-13)
        assert found.log_likelihood == pytest.approx(COUNTS @ np.log(nu) - nu.sum())
    best = ik.unfold(COUNTS, unit * RESPONSE, background=background)
    lacking = (best.log_likelihood - found.log_likelihood) / COUNTS.sum()
    assert 0 <= lacking <= found.gap


def test_the_flat_start_has_all_counts():
    start = ik.unfold(COUNTS, RESPONSE, background=BACKGROUND, stop=ik.Steps(0))
    np.testing.assert_allclose(start.counts, np.full(3, 120.0), rtol=1e-14)


@pytest.mark.parametrize("stop", [ik.Gap(1e-8), ik.Change(1e-12), ik.Change(1e-9, "distribution")])
@pytest.mark.parametrize("background", [None, BACKGROUND], ids=["alone", "background"])
def test_other_rules_lead_to_the_maximum(stop, background):
    found = ik.unfold(COUNTS, RESPONSE, background=background, stop=stop)
    best = ik.unfold(COUNTS, RESPONSE, background=background)
    assert found.status is ik.Status.CONVERGED
    np.testing.assert_allclose(found.counts, best.counts, rtol=1e-3)
    if isinstance(stop, ik.Gap):
        assert found.gap <= stop.tol


def test_discrepancy_knows_no_background():
    assert ik.unfold(COUNTS, RESPONSE, stop=ik.Discrepancy()).n_iter >= 0
    with pytest.raises(ValueError, match="stop must be Steps, Gap or Change where there is a back"):
        ik.unfold(COUNTS, RESPONSE, background=BACKGROUND, stop=ik.Discrepancy())


def test_a_rule_that_is_missed(monkeypatch):
    monkeypatch.setattr(_poisson_steps, "MAX_STEPS", 3)
    arguments = {"background": BACKGROUND, "stop": ik.Gap(1e-9)}
    with pytest.raises(ik.ConvergenceError, match=r"stop=Gap\(tol=1e-09\) was not met") as caught:
        ik.unfold(COUNTS, RESPONSE, **arguments)
    found = ik.unfold(COUNTS, RESPONSE, strict=False, **arguments)
    assert found.status is caught.value.estimate.status is ik.Status.MAX_ITER
    assert found.n_iter == 3


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"stop": 4}, TypeError, "stop must be"),
        ({"stop": "Steps"}, TypeError, "stop must be"),
        ({"stop": 4, "background": None}, TypeError, "stop must be"),
        ({"counts": [0, 0, 0]}, ValueError, "counts must not all be 0 with stop"),
        ({"counts": [0, 0, 0], "background": None}, ValueError, "counts must not all be 0"),
        (
            {"counts": [1, 1, 1], "matrix": [[1, 0, 0]], "background": [1, 1, 0]},
            ik.errors.ImpossibleReport,
            "counts has 1 of report 2",
        ),
    ],
)
def test_what_cannot_be_stepped_is_refused(arguments, error, message):
    given = {
        "counts": COUNTS,
        "matrix": RESPONSE,
        "background": BACKGROUND,
        "stop": ik.Steps(4),
    } | arguments
    with pytest.raises(error, match=message):
        ik.unfold(**given)


def test_a_summary_of_stopped_steps_says_so():
    text = str(ik.unfold(COUNTS, RESPONSE, background=BACKGROUND, stop=ik.Steps(2)).summary())
    assert "360 reports; unfold, Steps(n=2), with a background" in text
    assert "not the maximum of the likelihood" in text
