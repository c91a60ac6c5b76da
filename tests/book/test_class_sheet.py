"""The sheet for a class: its exact numbers, its formulas and its code."""

import contextlib
import io
import re

import numpy as np
import pytest

import class_sheet
import ibukit as ik
from class_sheet import COIN, OUTCOMES, REDS, N, expected, law, percent, simulated

PAGE = class_sheet.FILE.read_text("utf8")


def one_by_one(chances):
    """The law of a sum of independent yes and no, person by person."""
    p = np.array([1.0])
    for chance in chances:
        p = np.append(p * (1 - chance), 0) + np.insert(p * chance, 0, 0)
    return p


@pytest.mark.parametrize("red", REDS)
def test_the_outcomes_of_a_class_have_the_probabilities_of_the_coin(red):
    chances = [COIN.matrix()[1, 1]] * red + [COIN.matrix()[0, 1]] * (N - red)
    assert np.allclose(law(red), one_by_one(chances), atol=1e-14)


@pytest.mark.parametrize("red", REDS)
def test_simulated_classes_agree_with_the_exact_number(red):
    share, error = simulated(red)
    # false alarm: below 1 in 10,000 for each; no class below zero has no error
    assert abs(share - expected(red).negative) < 4 * max(error, 5e-4)
    assert abs(share - expected(red).negative - 0.02) > 4 * error


@pytest.mark.parametrize("yes", range(N + 1))
def test_the_formulas_of_the_sheet_give_what_the_package_gives(yes):
    found, step = OUTCOMES[yes], (0.75 * yes + 0.25 * (N - yes)) / N
    assert abs(found.inverse - (yes - N / 4) / (N / 2)) < 1e-12
    assert abs(found.step - step) < 1e-12
    assert abs(found.gap - np.log(max(step, 1 - step) / 0.5)) < 1e-12
    assert abs(found.mle - min(1, max(0, found.inverse))) < 1e-6


@pytest.mark.parametrize("yes", [7, 10, 13])
def test_the_standard_error_of_the_sheet_is_that_of_the_package(yes):
    by_hand = 2 * np.sqrt(yes * (N - yes) / N) / N
    errors = ik.mle(COIN.tally_counts([N - yes, yes])).standard_errors()
    assert abs(errors[1] - by_hand) < 1e-6


def test_the_standard_deviation_does_not_depend_on_the_cards():
    said = float(re.search(r"standard deviation is (\d+) points", PAGE)[1])
    for red in REDS:
        p, inverse = law(red), np.array([each.inverse for each in OUTCOMES])
        spread = np.sqrt(p @ (inverse - p @ inverse) ** 2)
        assert abs(p @ inverse - red / N) < 1e-12
        assert abs(100 * spread - said) < 0.5


def test_the_code_of_the_sheet_prints_the_row_of_its_table():
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    share, low, high = (
        float(x) for x in re.findall(r"yes +(\S+) +(\S+) +(\S+)", printed.getvalue())[0]
    )
    assert f"| 8 | {percent(share)} |" in PAGE
    assert f"| {percent(share)} | {100 * low:.0f} to {percent(high)} |" in PAGE


def test_silent_cheaters_lower_the_estimate_by_what_the_sheet_says():
    said = float(re.search(r"lower the estimate by (\d+)\s+points", PAGE)[1])
    honest = one_by_one([0.75] * 6 + [0.25] * 14) @ np.arange(N + 1)
    cheated = one_by_one([0.75] * 6 + [0.25] * 12 + [0, 0]) @ np.arange(N + 1)
    assert abs(100 * (honest - cheated) / (N / 2) - said) < 1e-9
