"""The names that readers and other programs rely on: none disappears, none appears unnoticed."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms import FiniteMechanism, Mechanism
from public_names import ATTACK, NAMES, ROOMS, SURVEYS, THEORY


def for_type_checkers():
    """The stub: its list of names, and each name written `X as X` with the module it comes from."""
    tree = ast.parse(Path(ik.__file__).with_suffix(".pyi").read_text("utf8"))
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {
        alias.name: node.module
        for node in froms
        for alias in node.names
        if alias.asname == alias.name
    }
    (listed,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return listed, homes


def test_the_public_names_are_these():
    assert ik.__all__ == NAMES
    assert all(hasattr(ik, name) for name in NAMES)
    assert isinstance(ik.__version__, str)


def test_type_checkers_see_what_is_there():
    listed, homes = for_type_checkers()
    assert listed == NAMES
    assert set(homes) == {*NAMES, *ROOMS}
    assert {name for name, home in homes.items() if home is None} == {
        name for name in homes if inspect.ismodule(getattr(ik, name))
    }
    for name, home in homes.items():
        if home is not None:
            assert getattr(import_module(f"ibukit.{home}"), name) is getattr(ik, name)


# As contract.md writes them; parameters that are left out there may follow.
SIGNATURES = {
    "Line": ["first", "last"],
    "Grid": ["n_rows", "n_cols", "cell_size"],
    "Alphabet": ["values"],
    "RandomizedResponse": ["alphabet", "epsilon"],
    "Rappor": ["alphabet", "epsilon"],
    "OptimizedUnaryEncoding": ["alphabet", "epsilon"],
    "SubsetSelection": ["alphabet", "epsilon", "size"],
    "LinearGeometric": ["alphabet", "epsilon"],
    "TruncatedGeometric": ["alphabet", "epsilon"],
    "PlanarGeometric": ["alphabet", "epsilon"],
    "SquareWave": ["alphabet", "epsilon"],
    "Piecewise": ["alphabet", "epsilon"],
    "Staircase": ["alphabet", "epsilon"],
    "DiscreteGaussian": ["alphabet", "sigma"],
    "LinearGaussian": ["alphabet", "sigma"],
    "PlanarGaussian": ["alphabet", "sigma"],
    "TruncatedPlanarGeometric": ["alphabet", "epsilon"],
    "LinearLaplace": ["alphabet", "epsilon"],
    "PlanarLaplace": ["alphabet", "epsilon"],
    "Exponential": ["alphabet", "epsilon"],
    "TightConstraints": ["alphabet", "epsilon"],
    "UnaryEncoding": ["alphabet", "p", "q"],
    "ThresholdedHistogram": ["alphabet", "epsilon", "threshold"],
    "LongitudinalUnaryEncoding": ["alphabet", "permanent", "instantaneous"],
    "LongitudinalResponse": ["alphabet", "epsilon", "epsilon_inf"],
    "LinkedRounds": ["alphabet", "permanent", "instantaneous", "rounds"],
    "LongitudinalHashing": ["alphabet", "epsilon", "epsilon_inf", "g"],
    "LocalHashing": ["alphabet", "epsilon", "g", "balanced"],
    "HadamardResponse": ["alphabet", "epsilon", "blocks", "published"],
    "HadamardMechanism": ["alphabet", "epsilon", "bits"],
    "CountMeanSketch": ["alphabet", "epsilon", "rows", "width", "seed"],
    "HadamardCountMeanSketch": ["alphabet", "epsilon", "rows", "width", "seed"],
    "BloomRappor": ["alphabet", "bits", "hashes", "cohorts", "f", "p", "q", "seed"],
    "HistogramEncoding": ["alphabet", "epsilon"],
    "MatrixMechanism": ["matrix", "alphabet", "reports", "efficiency", "normalize"],
    "ibu": ["tally", "start", "stop", "max_iter", "strict"],
    "mle": ["tally", "tol"],
    "unfold": ["counts", "matrix", "efficiency", "background"],
    "gibu": ["tallies"],
    "smooth": ["tally", "penalty", "tol", "of"],
    "inv": ["tally", "post"],
    "posterior_mean": ["tally", "alpha", "of", "method", "rng"],
    "plan": ["mechanism", "width", "level", "of", "near"],
    "posterior": ["tally", "alpha", "of", "method", "rng"],
    "gap": ["tally", "distribution"],
    "Privic": ["alphabet", "beta", "ba_steps", "ibu_steps"],
    "shokri": ["prior", "alphabet", "max_quality_loss", "loss", "adversary_loss", "choice"],
    "blahut_arimoto": ["prior", "alphabet", "beta", "steps"],
    "rate_distortion": ["prior", "alphabet", "beta", "distortion"],
    "optimal_private": ["prior", "alphabet", "epsilon", "criterion"],
    "emd": ["p", "q", "alphabet"],
    "ems": ["tally", "stop", "max_iter"],
    "total_variation": ["p", "q"],
    "squared_l2": ["p", "q"],
    "Gap": ["tol"],
    "Change": ["tol", "of"],
    "Steps": ["n"],
    "Discrepancy": [],
    "project_to_simplex": ["v"],
    "check_distribution": ["p", "name"],
    "uniform": ["k"],
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_keep_their_names_and_order(name):
    parameters = list(inspect.signature(getattr(ik, name)).parameters)
    assert parameters[: len(SIGNATURES[name])] == SIGNATURES[name]


def test_defaults():
    defaults = {name: p.default for name, p in inspect.signature(ik.ibu).parameters.items()}
    assert defaults["stop"] == ik.Gap(1e-6)
    assert (defaults["start"], defaults["strict"]) == (None, False)
    assert inspect.signature(ik.mle).parameters["tol"].default == 1e-9
    assert inspect.signature(ik.inv).parameters["post"].default == "project"
    assert inspect.signature(ik.blahut_arimoto).parameters["steps"].default == 10
    assert ik.Change(1e-6).of == "log_likelihood"


GRID = ik.Grid(2, 2)
MECHANISMS = [
    ik.RandomizedResponse(4, 1.0),
    ik.Rappor(4, 1.0),
    ik.OptimizedUnaryEncoding(4, 1.0),
    ik.SubsetSelection(4, 1.0),
    ik.LinearGeometric(4, 1.0),
    ik.TruncatedGeometric(ik.Line(1, 4), 1.0),
    ik.PlanarGeometric(GRID, 1.0),
    ik.TruncatedPlanarGeometric(GRID, 1.0),
    ik.LinearLaplace(4, 1.0),
    ik.PlanarLaplace(GRID, 1.0),
    ik.Exponential(ik.Alphabet(list("abcd")), 1.0),
    ik.TightConstraints(GRID, 1.0),
    ik.MatrixMechanism(np.full((4, 3), 1 / 3)),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_every_mechanism_offers_what_was_promised(mechanism, rng):
    assert isinstance(mechanism, Mechanism)
    assert (mechanism.k, len(mechanism.alphabet)) == (4, 4)
    assert mechanism.epsilon == (0 if isinstance(mechanism, ik.MatrixMechanism) else 1)
    reports = mechanism.randomize(mechanism.alphabet.values[[0, 1, 2, 3, 3]], rng)
    tally = mechanism.tally(reports)
    simulated = mechanism.simulate([1, 1, 1, 2], rng)
    for each in (tally, simulated):
        assert (each.n, each.counts.sum(), each.frequencies.sum()) == (5, 5, pytest.approx(1))
        s = len(each.counts)
        assert each.forward(ik.uniform(4)).shape == (s,)
        assert each.adjoint(np.ones(s)).shape == (4,)
        assert (each + tally).n == 10
    listed = not isinstance(mechanism, (ik.LinearGeometric, ik.PlanarGeometric))
    assert isinstance(mechanism, FiniteMechanism) is listed
    if listed:
        assert mechanism.matrix().shape == (4, mechanism.m)
        assert mechanism.forward(ik.uniform(4)).shape == (mechanism.m,)
        assert mechanism.adjoint(np.ones(mechanism.m)) == pytest.approx(np.ones(4))
        assert mechanism.tally_counts(np.ones(mechanism.m, int)).n == mechanism.m
        level = ik.privacy.epsilon_metric if mechanism.metric else ik.privacy.epsilon_ldp
        assert level(mechanism) <= mechanism.epsilon * (1 + 1e-9)


@pytest.mark.parametrize(
    "alphabet", [ik.Line(3, 6), GRID, ik.Alphabet(list("abcd"))], ids=["line", "grid", "labels"]
)
def test_every_alphabet_offers_what_was_promised(alphabet):
    assert len(alphabet) == len(alphabet.values) == 4
    assert alphabet.distances().shape == (4, 4)
    assert alphabet.codes(alphabet.values).tolist() == [0, 1, 2, 3]


def test_every_estimate_offers_what_was_promised():
    tally = ik.RandomizedResponse(4, 1.0).tally_counts([4, 3, 2, 1])
    estimates = [ik.ibu(tally), ik.mle(tally), ik.inv(tally), ik.gibu([tally]), ik.smooth(tally)]
    estimates += [ik.posterior_mean(tally, 0.5)]
    for estimate in estimates:
        assert isinstance(estimate, ik.Estimate)
        assert estimate.distribution.shape == (4,)
        assert isinstance(estimate.log_likelihood, float)
        assert isinstance(estimate.gap, float)
        assert isinstance(estimate.n_iter, int)
        assert isinstance(estimate.status, ik.Status)
        assert isinstance(estimate.method, str)
        assert estimate.standard_errors().shape == (4,)
        lower, upper = estimate.interval(0.95)
        assert (lower <= upper).all()


def test_the_names_of_scale_are_these():
    assert [
        name
        for name, thing in vars(ik.scale).items()
        if not inspect.ismodule(thing) and name[0] != "_"
    ] == ["tally"]


def test_the_names_of_attack_are_these():
    shown = [
        name
        for name, thing in vars(ik.attack).items()
        if not inspect.ismodule(thing) and name[0] != "_"
    ]
    assert sorted(shown) == ATTACK


def test_the_names_of_theory_are_these():
    shown = [
        name
        for name, thing in vars(ik.theory).items()
        if not inspect.ismodule(thing) and name[0] != "_"
    ]
    assert sorted(shown) == sorted(THEORY)


# As contract.md writes them.
OF_SURVEYS = {
    "Warner": ["labels", "p"],
    "ForcedResponse": ["labels", "p_no", "p_yes"],
    "UnrelatedQuestion": ["labels", "p", "share"],
    "Kuk": ["labels", "p_no", "p_yes", "cards"],
    "Mangat": ["labels", "p"],
    "Crosswise": ["labels", "p"],
    "Triangular": ["labels", "p"],
    "ItemCount": ["labels", "items"],
    "CheatingDetection": ["labels", "p"],
    "StochasticLieDetector": ["labels", "p"],
    "ScrambledResponse": ["alphabet", "numbers", "shares", "scramble", "p"],
    "posterior_odds": ["design", "prior", "of"],
}


def test_the_names_of_surveys_are_these():
    shown = [
        name
        for name, thing in vars(ik.surveys).items()
        if not inspect.ismodule(thing) and name[0] != "_"
    ]
    assert sorted(shown) == SURVEYS
    assert {*OF_SURVEYS, "SurveyDesign", "TwoSampleDesign"} == {*SURVEYS}


@pytest.mark.parametrize("name", OF_SURVEYS)
def test_parameters_of_surveys_keep_their_names_and_order(name):
    assert list(inspect.signature(getattr(ik.surveys, name)).parameters) == OF_SURVEYS[name]


def test_theory_offers_what_was_promised():
    mechanism = ik.RandomizedResponse(4, 1.0)
    tally = mechanism.tally_counts([4, 3, 2, 1])
    answer = ik.theory.identifiable(mechanism)
    assert (answer.identifiable, answer.rank) == (True, 4)
    assert ik.theory.strictly_concave(tally)
    assert not ik.theory.strictly_concave(mechanism.tally([1]))
    found = ik.theory.mle_set(tally)
    assert (found.unique, found.dimension, found.lower.shape, found.upper.shape) == (
        True,
        0,
        (4,),
        (4,),
    )
    assert ik.mle(tally).identified.tolist() == [True] * 4


@pytest.mark.parametrize(
    "city", ["manhattan", "paris", "san_francisco", "privic_paris", "privic_san_francisco"]
)
def test_every_city_can_be_loaded(city):
    assert_dataset(ik.datasets.load_gowalla(city))


def test_the_ages_can_be_loaded():
    assert_dataset(ik.datasets.load_adult_ages())


def assert_dataset(dataset):
    k = len(dataset.alphabet)
    assert dataset.counts.shape == dataset.distribution.shape == (k,)
    assert dataset.distribution.sum() == pytest.approx(1, abs=1e-12)
    assert dataset.name
    assert dataset.source
