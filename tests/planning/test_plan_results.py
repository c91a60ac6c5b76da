"""What goes into a plan and comes out: labels, estimates, tables, plots, and bad input by name."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch, InvalidDistribution, TooLarge


def test_of_and_near_are_aligned_by_label():
    labels = ["bike", "bus", "car"]
    mechanism = ik.RandomizedResponse(labels, 1.0)
    theta, weights = [0.2, 0.3, 0.5], [1, 1, 0]
    plan = ik.plan(mechanism, of=weights, near=theta)
    for of in ({"bus": 1, "bike": 1}, pd.Series([1, 0, 1], index=["bus", "car", "bike"])):
        for near in ({"car": 0.5, "bus": 0.3, "bike": 0.2}, pd.Series(theta, index=labels)[::-1]):
            assert ik.plan(mechanism, of=of, near=near).n == plan.n


def test_near_may_be_an_estimate_or_a_dataset():
    ages = ik.datasets.load_adult_ages()
    mechanism = ik.TruncatedGeometric(ages.alphabet, 0.5)
    plan = ik.plan(mechanism, near=ages)
    assert plan.n == ik.plan(mechanism, near=ages.distribution).n
    estimate = ik.mle(mechanism.simulate(ages.counts, np.random.default_rng(1)))
    assert ik.plan(mechanism, near=estimate).n == ik.plan(mechanism, near=estimate.distribution).n
    with pytest.raises(AlphabetMismatch, match="near"):
        ik.plan(ik.TruncatedGeometric(74, 0.5), near=ages)


def test_several_mechanisms_make_a_table():
    mechanisms = [
        ik.RandomizedResponse(8, 1.0),
        ik.OptimizedUnaryEncoding(8, 1.0),
        ik.SubsetSelection(6, 1.0),
    ]
    with pytest.raises(AlphabetMismatch):
        ik.plan(mechanisms)
    plans = ik.plan(mechanisms[:2], width=0.05)
    frame = plans.to_frame()
    assert list(frame) == ["mechanism", "epsilon", "n", "at", "width", "error"]
    assert (
        frame["n"].tolist()
        == [each.n for each in plans]
        == [ik.plan(m, width=0.05).n for m in mechanisms[:2]]
    )
    assert plans.best is min(plans, key=lambda each: each.n)
    assert (len(plans), plans[0].mechanism) == (2, mechanisms[0])
    assert frame["at"].tolist() == [plans.best.n] * 2
    assert frame["width"].min() == pytest.approx(0.05, rel=1e-3)
    other = plans.to_frame(at=100, estimator="inv")
    assert other["error"].tolist() == [each.error(100, "inv") for each in plans]
    assert "error" not in plans.to_frame(estimator=None)
    with pytest.raises(ValueError, match="at must be at least 1"):
        plans.to_frame(at=0)


def test_the_plot_shows_what_can_be_read_off():
    plans = ik.plan([ik.RandomizedResponse(8, 1.0), ik.OptimizedUnaryEncoding(8, 1.0)], width=0.05)
    axes = plans.plot()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    lines = [line for line in axes.lines if line.get_label().startswith(("Random", "Optim"))]
    for each, line in zip(plans, lines, strict=True):
        n, widths = line.get_data()
        assert widths == pytest.approx([each.width(1) / np.sqrt(users) for users in n])
        assert f"{each.n:,}" in line.get_label()
    assert plans[0].plot(axes) is axes


def test_a_plan_of_more_reports_than_64_bits_count_is_drawn():
    plan = ik.plan(ik.RandomizedResponse(3, 1e-12), width=0.1)
    assert plan.n > 2**64
    marker = plan.plot().lines[1]
    assert marker.get_data() == (pytest.approx([plan.n]), pytest.approx([0.1]))
    assert ik.plan([plan.mechanism], width=0.1).to_frame()["at"].tolist() == [2**63 - 1]


def test_plans_say_what_they_are():
    mechanism = ik.RandomizedResponse(3, 1.0)
    assert (
        repr(ik.plan(mechanism, level=0.9))
        == f"Plan(RandomizedResponse(k=3, epsilon=1), n={ik.plan(mechanism, level=0.9).n:,} for"
        " width 0.01 at level 0.9, worst case)"
    )
    assert "near the given distribution)" in repr(ik.plan(mechanism, near=ik.uniform(3)))
    assert repr(ik.plan([mechanism, mechanism])).count("Plan(") == 2


K3 = ik.RandomizedResponse(3, 1.0)
BAD = {
    "no width": (K3, {"width": 0}, ValueError, "width"),
    "a negative width": (K3, {"width": -0.1}, ValueError, "width"),
    "a width of NaN": (K3, {"width": float("nan")}, ValueError, "width"),
    "all there is": (K3, {"width": 2}, ValueError, "width must be below 2"),
    "all there is of a mean": (
        K3,
        {"width": 4.5, "of": [0, 1, 2]},
        ValueError,
        "width must be below 4",
    ),
    "too small": (K3, {"width": 1e-200}, ValueError, "width must be larger"),
    "level 0": (K3, {"level": 0}, ValueError, "level"),
    "level 1": (K3, {"level": 1}, ValueError, "level"),
    "percent": (K3, {"level": 95}, ValueError, "level"),
    "of too short": (K3, {"of": [1, 0]}, AlphabetMismatch, r"of must .* got shape \(2,\)"),
    "of three dimensions": (K3, {"of": np.ones((1, 1, 3))}, AlphabetMismatch, "of must"),
    "no question": (K3, {"of": np.ones((0, 3))}, AlphabetMismatch, "of must"),
    "of with NaN": (
        K3,
        {"of": [1, 0, float("nan")]},
        ValueError,
        "of must be finite, got nan at index 2",
    ),
    "of with inf": (
        K3,
        {"of": [[1, 0, 0], [1, 0, float("inf")]]},
        ValueError,
        r"at index \(1, 2\)",
    ),
    "of text": (K3, {"of": ["a", "b", "c"]}, ValueError, "of must be whole numbers"),
    "of one text": (K3, {"of": "abc"}, ValueError, "of must be whole numbers"),
    "of an unknown label": (K3, {"of": {7: 1}}, AlphabetMismatch, "of must be codes|7"),
    "of a frame": (K3, {"of": pd.DataFrame(np.eye(4))}, AlphabetMismatch, "of must be codes|3"),
    "of nothing": (K3, {"of": [1, 1, 1]}, ValueError, "of must depend"),
    "near too short": (K3, {"near": [0.5, 0.5]}, AlphabetMismatch, "near"),
    "near no distribution": (
        K3,
        {"near": [0.5, 0.5, 0.5]},
        InvalidDistribution,
        "near must sum to 1",
    ),
    "near negative": (K3, {"near": [1.5, -0.5, 0]}, InvalidDistribution, "near"),
    "near others": (K3, {"near": {7: 1.0}}, AlphabetMismatch, "near|7"),
    "an endless line": (ik.LinearGeometric(ik.Line(0, None), 1.0), {}, TooLarge, "no end"),
    "all of the plane": (ik.PlanarGeometric(ik.Grid(2, 2), 1.0), {}, ValueError, "listed"),
    "too large a matrix": (ik.Exponential(6000, 1.0), {}, TooLarge, "6.00e\\+3 x 6.00e\\+3"),
    "too many weights": (ik.Rappor(3000, 1.0), {"of": np.arange(3000)}, TooLarge, "3000 secrets"),
    "too many bits": (
        ik.Rappor(30_000, 1.0),
        {"near": ik.normalize(np.arange(30_000))},
        TooLarge,
        "near=None",
    ),
    "one secret": (ik.MatrixMechanism([[0.5, 0.5]]), {}, ValueError, "two secrets"),
    "lost reports": (
        ik.MatrixMechanism([[0.5, 0.1], [0.1, 0.5]], efficiency=True),
        {},
        ValueError,
        "lose reports",
    ),
    "no mechanism": ([], {}, ValueError, "at least one mechanism"),
    "something else among them": ([K3, "oue"], {}, TypeError, "oue"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_named(what):
    mechanism, arguments, error, message = BAD[what]
    with pytest.raises(error, match=message):
        ik.plan(mechanism, **arguments)


def test_bad_numbers_of_reports_and_estimators_are_named():
    plan = ik.plan(K3)
    with pytest.raises(ValueError, match="estimator must be one of 'mle', 'inv', got 'ibu'"):
        plan.error(100, "ibu")
    for call in (plan.width, plan.error):
        with pytest.raises(ValueError, match="n must be at least 1"):
            call(0)
        with pytest.raises(ValueError, match="whole"):
            call(1.5)
