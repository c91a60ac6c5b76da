"""Words of comparison have one margin each,
and a verdict on a sentence is believed only when its test bears it out.
"""

import math
import re

import numpy as np
import pytest

import ibukit_claims as claims


@pytest.mark.parametrize(
    ("word", "inside", "outside"),
    [
        ("same", (1 / 1.05, 1.0, 1.05), (0.95, 1.051)),
        ("similar", (0.8, 1.25), (0.799, 1.251)),
        ("slightly larger", (1.0, 1.25), (0.999, 1.251)),
        ("larger", (1.0, 1e6), (0.999,)),
        ("substantially larger", (1.25, 1e6), (1.249,)),
    ],
)
def test_the_margins_of_the_words(word, inside, outside):
    assert all(claims.agrees(word, ratio) for ratio in inside)
    assert not any(claims.agrees(word, ratio) for ratio in outside)
    # two standard errors of chance, no more
    low = claims.MARGINS[word][0]
    assert claims.agrees(word, low - 0.019, 0.01)
    assert not claims.agrees(word, low - 0.021, 0.01)


def test_a_word_without_a_margin_is_refused():
    with pytest.raises(ValueError, match=r"word must be one of same, similar, .*got 'about'"):
        claims.agrees("about", 1.0)
    with pytest.raises(ValueError, match="ratio must be"):
        claims.agrees("same", math.nan)


@pytest.mark.parametrize(
    ("held", "verdict", "passes"),
    [
        (True, "reproduced", True),
        (np.True_, "fitted", True),
        (True, "holds with a condition", True),
        (True, "deviates", False),
        (True, "not checkable", False),
        (False, "deviates", True),
        (np.False_, "reproduced", False),
        (False, "holds with a condition", False),
        (None, "not checkable", True),
        (None, "reproduced", False),
        (None, "deviates", False),
    ],
)
def test_the_verdict_on_a_sentence_is_borne_out_by_its_test(held, verdict, passes):
    rows = [("closer is likelier (8.2)", held, "on all of Z", verdict)]
    if passes:
        assert re.search(
            rf"closer is likelier \(8.2\) +on all of Z +{verdict}", repr(claims.statements(rows))
        )
    else:
        with pytest.raises(AssertionError, match=f"the test says {held}, the verdict is {verdict}"):
            claims.statements(rows)


def test_a_sentence_needs_a_known_verdict_and_a_reason():
    with pytest.raises(
        claims.InvalidClaim, match=r"on 'x' must be one of reproduced, fitted.*got 'setting'"
    ):
        claims.statements([("x", True, "y", "setting")])
    with pytest.raises(AssertionError, match="x: deviates, but what we find is not said"):
        claims.statements([("x", False, "", "deviates")])
