"""What a regression reads: formulas, columns, a mechanism for each; and what it refuses."""

import sys

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
import regression_reference as reference

RR = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)


@pytest.fixture(scope="module")
def frame():
    n = 240
    X, reports = reference.drawn(2, n, np.array([[-0.5], [0.8], [0.6]]), [RR.matrix()] * n)
    columns = {
        "age": 40 + 10 * X[:, 0],
        "sex": np.where(X[:, 1] == 1, "woman", "man"),
        "region": np.resize(["north", "south", "west"], n),
        "report": np.where(reports == 1, "yes", "no"),
        "eps": np.resize([1.0, 2.0], n),
        "w": np.resize([1.0, 2.0, 0.5], n),
        "village": np.arange(n) // 6,
    }
    return pd.DataFrame(columns)


def matrix_of(frame):
    return np.column_stack([frame["age"], frame["sex"] == "woman"])


def same(one, other):
    assert one.coefficients == pytest.approx(other.coefficients, abs=1e-10)
    assert one.standard_errors() == pytest.approx(other.standard_errors(), rel=1e-9)


def test_a_formula_reads_categories(frame):
    pytest.importorskip("formulaic")
    found = ik.regress("age + sex", "report", RR, data=frame)
    assert found.variables == ("intercept", "age", "sex[T.woman]")
    same(found, ik.regress(matrix_of(frame), frame["report"], RR))
    new = pd.DataFrame({"age": [30.0, 60.0], "sex": ["woman", "man"]})
    numbers = ik.regress(matrix_of(frame), frame["report"], RR)
    assert found.predict(new) == pytest.approx(numbers.predict([[30, 1], [60, 0]]), abs=1e-10)
    three = ik.regress("age + C(region)", "report", RR, data=frame)
    assert three.variables[2:] == ("C(region)[T.south]", "C(region)[T.west]")


def test_frames_of_polars_are_read_alike(frame):
    pytest.importorskip("formulaic")
    pl = pytest.importorskip("polars")
    theirs = pl.from_pandas(frame)
    found = ik.regress("age + sex", "report", RR, data=theirs, clusters="village")
    same(found, ik.regress("age + sex", "report", RR, data=frame, clusters="village"))
    assert np.array_equal(found.predict(theirs[:3]), found.predict(frame[:3]))
    numbers = ik.regress(theirs.select("age"), theirs["report"], RR)
    assert numbers.variables == ("intercept", "age")
    assert numbers.predict(theirs.select("w", "age")) == pytest.approx(
        numbers.predict(frame["age"]), abs=1e-12
    )


def test_means_of_a_formula_are_those_of_the_fit(frame):
    pytest.importorskip("formulaic")
    found = ik.regress("center(age)", "report", RR, data=frame)
    plain = ik.regress("age", "report", RR, data=frame)
    new = frame[["age"]].iloc[:3]
    assert found.predict(new) == pytest.approx(plain.predict(new), abs=1e-9)


def test_a_frame_of_numbers_is_aligned_by_its_names(frame):
    X = pd.DataFrame({"age": frame["age"], "woman": frame["sex"] == "woman"})
    found = ik.regress(X, frame["report"], RR)
    assert found.variables == ("intercept", "age", "woman")
    same(found, ik.regress(matrix_of(frame), frame["report"], RR))
    assert np.array_equal(found.predict(X[["woman", "age"]]), found.predict(X))
    with pytest.raises(ValueError, match=r"X must have the columns .*none of \['woman'\]"):
        found.predict(X[["age"]])
    single = ik.regress(frame["age"], frame["report"], RR)
    assert single.variables == ("intercept", "age")


def test_columns_may_be_given_by_name(frame):
    pytest.importorskip("formulaic")
    by_name = ik.regress("age", "report", RR, data=frame, weights="w", clusters="village")
    by_value = ik.regress(
        frame["age"], frame["report"], RR, weights=frame["w"], clusters=frame["village"]
    )
    same(by_name, by_value)
    groups = by_name.predict_groups("sex")
    assert groups.index.get_level_values("group").unique().tolist() == [*frame["sex"].unique()]
    same_groups = by_value.predict_groups(frame["sex"])
    assert groups.to_numpy() == pytest.approx(same_groups.to_numpy(), abs=1e-9)


def test_the_mechanism_of_each_is_a_sequence_a_mapping_or_a_function(frame):
    def of_epsilon(eps):
        return ik.RandomizedResponse(["no", "yes"], eps)

    X, reports, eps = frame["age"], frame["report"], frame["eps"]
    each = [of_epsilon(e) for e in eps]
    expected = ik.regress(X, reports, each)
    mapping = {1.0: of_epsilon(1.0), 2.0: of_epsilon(2.0)}
    same(expected, ik.regress(X, reports, mapping, by=eps))
    same(expected, ik.regress(X, reports, mapping, data=frame, by="eps"))
    same(expected, ik.regress(X, reports, of_epsilon, by=eps))
    for other in (reports.tolist(), reports.to_numpy()):
        same(expected, ik.regress(X, other, each))
    assert expected.log_likelihood != ik.regress(X, reports, RR).log_likelihood


def test_mechanisms_with_reports_of_different_forms_pool(frame):
    rappor = ik.Rappor(["no", "yes"], epsilon=2.0)
    bits = {"no": "10", "yes": "01"}
    reports = [bits[r] if i % 2 else r for i, r in enumerate(frame["report"])]
    each = [rappor if i % 2 else RR for i in range(len(frame))]
    found = ik.regress(frame["age"], reports, each)
    # The likelihood ratio of two secrets given "10" or "01" is e^2, as that of RR's reports.
    same(found, ik.regress(frame["age"], frame["report"], RR))


def test_secrets_of_a_grid_and_reports_of_a_line_without_end():
    grid = ik.PlanarGeometric(ik.Grid(1, 3), epsilon=1.5)
    line = ik.LinearGeometric(ik.Line(0, 2), epsilon=1.5)
    rng = np.random.default_rng(5)
    X = rng.normal(size=400)
    secrets = np.clip(np.rint(1 + X + rng.normal(size=400)), 0, 2).astype(int)
    cells = ik.regress(X, grid.randomize(secrets, rng, codes=True), grid, codes=True)
    assert cells.secrets == ((0, 1), (0, 2))
    assert cells.marginal_effects().shape == (3, 4)
    assert cells.to_frame().index[0] == ((0, 1), "intercept")
    numbers = ik.regress(X, line.randomize(secrets, rng, codes=True), line, codes=True)
    assert numbers.secrets == (1, 2)
    assert numbers.coefficients[1, 1] > numbers.coefficients[1, 0] > 0


def test_a_regression_without_covariates_has_no_marginal_effects():
    found = ik.regress(np.zeros((200, 0)), np.arange(200) % 2, ik.RandomizedResponse(2, 2.0))
    effects = found.marginal_effects()
    assert list(effects) == ["effect", "standard_error", "lower", "upper"]
    assert effects.empty
    assert effects.index.names == ["secret", "variable"]


N = ["no", "yes", "no", "yes"]
LOSSY = ik.MatrixMechanism([[0.5, 0.1], [0.2, 0.8]], alphabet=["no", "yes"], efficiency=[0.6, 1])
MEASURED = ik.MatrixMechanism.from_trials([[90, 10], [10, 90]])
REFUSED = [
    ((["a", "b", "c", "d"], N, RR), {}, ValueError, r"X must be numbers.*formula"),
    (([1, 2, np.nan, 3], N, RR), {}, ValueError, r"X must be finite, got nan at index \(2, 0\)"),
    ((np.zeros((2, 2, 2)), N, RR), {}, ValueError, r"X must have shape \(n, d\)"),
    (
        ([1, 2, 3], N, RR),
        {},
        ValueError,
        r"reports must have 3 entries, one for each row of X, got 4",
    ),
    (([1, 2, 3, 4], [*N[:3], "maybe"], RR), {}, ik.errors.AlphabetMismatch, "reports.*'maybe'"),
    (("age", N, RR), {}, TypeError, r"data must be the frame of the formula X='age'"),
    (([1, 2, 3, 4], "report", RR), {}, TypeError, r"reports must be values, or a column of data"),
    (([1, 2, 3, 4], N, "RR"), {}, TypeError, r"mechanism must be a mechanism, or one"),
    (([1, 2, 3, 4], N, [RR, RR, 3, RR]), {}, TypeError, r"mechanism must .* got 3 at index 2"),
    (
        ([1, 2, 3, 4], N, [RR] * 3),
        {},
        ValueError,
        r"mechanism must be one mechanism for all, or have 4",
    ),
    (([1, 2, 3, 4], N, {1: RR}), {}, TypeError, r"also pass by, which says which"),
    (([1, 2, 3, 4], N, {1: RR}), {"by": [1, 1, 2, 1]}, ValueError, r"by contains 2 at index 2"),
    (([1, 2, 3, 4], N, {1: RR}), {"by": [1, 1, None, 1]}, ValueError, r"by has a missing value"),
    (([1, 2, 3, 4], N, {1: RR}), {"by": [1]}, ValueError, r"by must have 4 values"),
    (
        ([1, 2, 3, 4], N, [RR, RR, RR, ik.RandomizedResponse(["yes", "no"], 2.0)]),
        {},
        ik.errors.AlphabetMismatch,
        "same secrets for all",
    ),
    (([1, 2, 3, 4], [0, 1, 0, 1], LOSSY), {"codes": True}, ValueError, "must not lose reports"),
    (([1, 2, 3, 4], [0, 1, 0, 1], MEASURED), {}, ik.errors.MatrixUncertain, "measured"),
    (
        ([1, 2, 3, 4], [0, 1, 0, 1], ik.LinearGeometric(ik.Line(0, None), 1.0)),
        {},
        ik.errors.TooLarge,
        "bounded alphabet",
    ),
    (([1, 2], [0, 1], ik.MatrixMechanism([[0.5, 0.5]])), {}, ValueError, "at least two secrets"),
    (([1, 2, 3, 4], N, RR), {"weights": [1, 1, -1, 1]}, ValueError, r"weights.*-1.0 at index 2"),
    (([1, 2, 3, 4], N, RR), {"weights": [0, 0, 0, 0]}, ValueError, r"weights must not all be 0"),
    (([1, 2, 3, 4], N, RR), {"clusters": [1, 1, 1, 1]}, ValueError, r"clusters.*at least two"),
    (([1, 2, 3, 4], N, RR), {"start": [0, 0]}, ValueError, r"start must have shape \(2, 1\)"),
    (([1, 2, 3, 4], N, RR), {"start": [[0], [np.inf]]}, ValueError, r"start must be finite"),
    (([1, 2, 3, 4], N, RR), {"tol": 0}, ValueError, r"tol must be"),
    (([1, 2, 3, 4], N, RR), {"max_iter": 0}, ValueError, r"max_iter must be"),
    (([1e200, 2, 3, 4], N, RR), {}, ValueError, r"X must have .*change its unit"),
]


@pytest.mark.parametrize(("given", "options", "error", "message"), REFUSED)
def test_bad_arguments_are_refused_by_name(given, options, error, message):
    with pytest.raises(error, match=message):
        ik.regress(*given, **options)


FORMULAS = [
    ("age +", "X must be a formula"),
    ("height", "X must be a formula of covariates that are in data.*height"),
    ("0 + age", "X must have the intercept"),
    ("report ~ age", "X must be a formula"),
    ("log(0 * age)", "X must be finite"),
]


@pytest.mark.parametrize(("formula", "message"), FORMULAS)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_bad_formulas_are_refused(frame, formula, message):
    pytest.importorskip("formulaic")
    with pytest.raises(ValueError, match=message):
        ik.regress(formula, "report", RR, data=frame)


def test_missing_values_and_levels_that_the_fit_did_not_see_are_refused(frame):
    pytest.importorskip("formulaic")
    with pytest.raises(ValueError, match=r"reports must be a column of data.*no 'answer'"):
        ik.regress("age", "answer", RR, data=frame)
    lost = frame.assign(age=frame["age"].where(frame.index != 3))
    with pytest.raises(ValueError, match="complete"):
        ik.regress("age", "report", RR, data=lost)
    found = ik.regress("age + sex", "report", RR, data=frame)
    with pytest.raises(ValueError, match="known to the fit"):
        found.predict(pd.DataFrame({"age": [3.0], "sex": ["unknown"]}))
    with pytest.raises(TypeError, match="X must be a frame with the columns of the formula"):
        found.predict([[3.0, 1.0]])


def test_without_formulaic_the_error_says_what_to_install(monkeypatch, frame):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(
        ik.errors.MissingExtra, match=r'formulaic.* pip install "ibukit\[regression\]"'
    ):
        ik.regress("age", "report", RR, data=frame)


def test_what_takes_too_much_memory_is_refused(monkeypatch, frame):
    from ibukit.estimators.regression import inputs

    # Two secrets and two distinct reports of each of two mechanisms are eight probabilities.
    other = ik.RandomizedResponse(["no", "yes"], epsilon=1.0)
    given = frame["age"], frame["report"], [RR, other] * 120
    monkeypatch.setattr(inputs, "MAX_PROBABILITIES", 8)
    assert ik.regress(*given).local_maximum
    monkeypatch.setattr(inputs, "MAX_PROBABILITIES", 7)
    with pytest.raises(ik.errors.TooLarge, match="reports must have at most"):
        ik.regress(*given)
    with pytest.raises(ik.errors.TooLarge, match="at most 2000 coefficients"):
        ik.regress(np.zeros((240, 2000)), frame["report"], RR)


def test_methods_refuse_what_they_do_not_know(frame):
    found = ik.regress(frame["age"], frame["report"], RR)
    for call, message in [
        (lambda: found.interval(1.5), "level"),
        (lambda: found.interval(method="score"), 'method must be "wald" or "profile"'),
        (lambda: found.predict([[1, 2]]), r"X must have shape \(m, 1\)"),
        (lambda: found.predict_groups(["a"]), "groups must have 240 values"),
        (lambda: found.predict_groups("sex"), None),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    weighted = ik.regress(frame["age"], frame["report"], RR, weights=frame["w"])
    with pytest.raises(ik.errors.WeightsRefused, match="method must be 'wald'"):
        weighted.interval(method="profile")
