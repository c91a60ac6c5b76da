"""Type checkers know what every public call returns: mypy reveals no `Any`."""

import re

import pytest

from type_checker import said_of

HEAD = """
import ibukit as ik
def f(
    estimate: ik.Estimate, tally: ik.Tally, unfolded: ik.Unfolded, posterior: ik.Posterior
) -> None:
"""
ONE, EACH = "float", "ndarray[tuple[Any, ...], dtype[float64]]"
# Each call, and the type that it is to have. numpy's arrays name no shape, which is their only Any.
CALLS = {
    "estimate['label']": "float",
    "estimate.interval()": f"tuple[{EACH}, {EACH}]",
    "estimate.interval(0.9, None, 'wald')": f"tuple[{EACH}, {EACH}]",
    "estimate.interval(0.9, {'a': 1, 'b': 1})": "tuple[float, float]",
    "estimate.interval(of=[0, 1, 1])": "tuple[float, float]",
    "estimate.interval(of=[[0, 1, 1], [1, 0, 0]])": f"tuple[{EACH}, {EACH}]",
    "estimate.interval(of=estimate.to_series())": f"tuple[float | {EACH}, float | {EACH}]",
    "estimate.band()": f"tuple[{EACH}, {EACH}]",
    "estimate.standard_errors()": EACH,
    "estimate.standard_errors(of={'a': 1})": "float",
    "estimate.standard_errors(of=[0, 1, 1])": "float",
    "estimate.standard_errors(of=[[0, 1, 1]])": EACH,
    "estimate.covariance()": EACH,
    "estimate.identified": "ndarray[tuple[Any, ...], dtype[bool[bool]]]",
    "estimate.summary()": "Summary",
    "estimate.summary().table": "DataFrame",
    "estimate.to_frame()": "DataFrame",
    "estimate.to_series()": "Series[float]",
    "estimate.to_json()": "str",
    "estimate.plot()": "Axes",
    "ik.Estimate.load('file')": "Estimate",
    "ik.Unfolded.load('file')": "Unfolded",
    "ik.Tally.load('file')": "Tally",
    "tally.parts[0].mechanism": "ReportModel",
    "unfolded.counts": EACH,
    "unfolded.count_errors()": EACH,
    "posterior.interval()": f"tuple[{EACH}, {EACH}]",
    "posterior.interval(0.9, {'a': 1})": "tuple[float, float]",
    "posterior.interval_errors()": f"tuple[{EACH}, {EACH}]",
    "ik.posterior_mean(tally, 1.0)": "Estimate",
    "ik.theory.mle_set(tally)": "MleSet",
    "ik.theory.mle_set(tally).estimate": "Estimate",
    "ik.theory.mle_set(tally).bounds([1, 0])": "tuple[float, float]",
}


WITHOUT_A_TYPE = "__import__('json').loads(estimate.to_json())"


@pytest.fixture(scope="module")
def revealed(tmp_path_factory):
    """The type of each call as mypy reveals it, without the names of modules.

    Every call is asked for in one run, as what mypy reads first is most of what a run takes.
    """
    folder, calls = tmp_path_factory.mktemp("types"), [*CALLS, WITHOUT_A_TYPE]
    snippet = HEAD + "".join(f"    reveal_type({call})\n" for call in calls)
    kinds = [
        re.sub(r"\b[a-z_]\w*\.(?=\w)", "", found)
        for found in re.findall(r'Revealed type is "(.*)"', said_of(snippet, folder))
    ]
    return dict(zip(calls, kinds, strict=True))


def test_every_public_call_has_a_type(revealed):
    assert {call: revealed[call] for call, kind in CALLS.items() if revealed[call] != kind} == {}


def test_a_call_without_a_type_is_seen(revealed):
    assert revealed[WITHOUT_A_TYPE] == "Any"
