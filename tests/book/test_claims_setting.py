"""Outside the published setting a check says that it fails, and raises nothing."""

import re

import pytest

import ibukit_claims as claims
from ibukit_claims import _setting

NOT_HERE = [
    ("x is 1 (3.1)", False, "it is 2", "reproduced"),
    ("y is 1 (3.2)", True, "", "reproduced"),
]
AGREES = {("A-N1", "n times the bound on the squared error of raw INV"): 277.28}
DISAGREES = {("A-N1", "n times the bound on the squared error of raw INV"): 227.28}


@pytest.fixture
def explored(capsys):
    """A setting that is not the published one."""
    claims.published(False)
    assert capsys.readouterr().out.startswith("This is not the published setting")
    yield
    claims.published(True)


def test_by_default_a_check_must_hold():
    with pytest.raises(AssertionError, match="computed reproduced, recorded deviates"):
        claims.check(claims.beside("consistency", DISAGREES))
    with pytest.raises(AssertionError, match=r"x is 1 \(3\.1\): the test says False"):
        claims.statements(NOT_HERE)


def test_elsewhere_a_table_that_deviates_is_said(explored, capsys):
    claims.check(claims.beside("consistency", AGREES))
    assert capsys.readouterr().out == ""
    claims.check(claims.beside("consistency", DISAGREES))
    assert re.match(
        r"Does not hold in this setting: A-N1 .*: computed reproduced", capsys.readouterr().out
    )


def test_elsewhere_a_verdict_that_its_test_does_not_bear_out_is_not_shown(explored, capsys):
    assert list(claims.statements(NOT_HERE).table["verdict"]) == [
        "not in this setting",
        "reproduced",
    ]
    assert "Does not hold in this setting: x is 1 (3.1)" in capsys.readouterr().out


def test_back_in_the_published_setting_it_raises_again(explored, capsys):
    claims.published(True)
    assert capsys.readouterr().out == ""
    with pytest.raises(AssertionError):
        claims.statements(NOT_HERE)


@pytest.mark.parametrize("wrong", [None, 1, "yes", (0.05, 7)])
def test_a_setting_is_true_or_false(wrong):
    with pytest.raises(TypeError, match="setting must be True or False"):
        claims.published(wrong)
    assert _setting.is_published()
