"""A right value for every parameter of the public functions, by its name,
with its owner's in front if need be.
"""

import inspect
import re

import numpy as np
import pandas as pd

import ibukit as ik
from fuzz.world import TWO_SECRETS
from ibukit.mechanisms.longitudinal.chances import Chances
from ibukit.solvers import METHODS, Problem

TOLERANCES = (1e-9, 1e-6, 1e-3, 1e-12, 1e-17)
CITIES = ("manhattan", "paris", "san_francisco")
STOPS = (
    lambda: ik.Gap(1e-6),
    lambda: ik.Steps(3),
    lambda: ik.Change(1e-3),
    lambda: ik.Discrepancy(),
)


def squared_l2(p, q, _):
    return ik.squared_l2(p, q)


TWO_SAMPLES = ("CheatingDetection", "ItemCount", "StochasticLieDetector", "UnrelatedQuestion")
INTERVALS = ("profile", "wald", "guaranteed", "credible", "calibrated", "bootstrap")


def plan_of(world):
    return ik.plan(world.mechanism, width=0.1)


RIGHT = {
    "adversary_loss": lambda w: w.loss,
    "accelerate": lambda w: w.pick(False, True),
    "alpha": lambda w: w.pick(0.5, np.full(w.k, 0.5), 1.0, 1e-3, 1e3, np.full(w.k, 1e15)),
    "alphabet": lambda w: w.alphabet,
    "at": lambda w: w.pick(100, 10**15),
    "attained": lambda w: False,
    "background": lambda w: np.full(w.k + 1, 0.5),
    "balanced": lambda w: w.pick(False, True),
    "ba_start": lambda w: w.pick(None, ik.uniform(w.k)),
    "ba_steps": lambda w: w.pick(8, 1, None),
    "beta": lambda w: w.epsilon,
    "bins": lambda w: w.pick(None, 5),
    "bits": lambda w: 4,
    "block": lambda w: w.pick(1, 2),
    "blocks": lambda w: w.pick(None, 2),
    "bounds": lambda w: None,
    "callbacks": lambda w: (),
    "cell_size": lambda w: w.pick(1.0, (0.5, 2.0), 1e-9, 1e9),
    "cells": lambda w: np.array([[0, 0], [5, -3]]),
    "channel": lambda w: w.rng.dirichlet(np.ones(2), min(getattr(w.mechanism, "m", 3), 64)),
    "choice": lambda w: w.pick(None, "least-information", "vertex"),
    "city": lambda w: w.pick(*CITIES),
    "client": lambda w: None,
    "codes": lambda w: True,
    "cohort": lambda w: 1,
    "cohorts": lambda w: 2,
    "combine": lambda w: w.pick("last", "average"),
    "confidence": lambda w: w.pick(0.99, 1e-9, 1 - 1e-9),
    "count": lambda w: None,
    "counts": lambda w: w.counts(min(getattr(w.mechanism, "m", 3), 64)),
    "criterion": lambda w: w.pick("mse", "emd"),
    "cycles": lambda w: w.pick(1, 2),
    "difference": lambda w: w.pick(None, 0.05),
    "distance": lambda w: w.pick(None, 1.0),
    "distances": lambda w: w.pick(None, w.loss),
    "distortion": lambda w: w.pick(None, 0.1),
    "distribution": lambda w: w.simplex,
    "draws": lambda w: 50,
    "edges": lambda w: np.linspace(-5, 5, 4),
    "efficiency": lambda w: w.pick(None, True, np.full(w.k, 0.5)),
    "entropy": lambda w: w.pick(0.5, 0.0),
    "epsilon": lambda w: w.epsilon,
    "epsilon_inf": lambda w: w.epsilon * 2,
    "estimate": lambda w: w.pick(None, w.simplex),
    "estimator": lambda w: w.pick(ik.inv, ik.ibu),
    "estimators": lambda w: {"ibu": ik.ibu, "inv": ik.inv},
    "f": lambda w: 0.5,
    "factor": lambda w: 1.0,
    "false_alarms": lambda w: w.pick(0.01, 1e-9),
    "first": lambda w: -2,
    "fraction": lambda w: w.pick(0.1, 0.0, 1e-12),
    "frame": lambda w: w.grid.to_geodataframe(np.ones(w.k), "value"),
    "g": lambda w: w.pick(None, 2, 7),
    "gamma": lambda w: w.pick(None, 0.5),
    "grid": lambda w: w.grid,
    "hashes": lambda w: 2,
    "ibu_steps": lambda w: w.pick(10, 1, None),
    "instantaneous": lambda w: Chances(0.7, 0.2),
    "k": lambda w: w.k,
    "L": lambda w: np.asarray(w.matrix).T,
    "from_likelihoods.counts": lambda w: None,
    "labels": lambda w: w.labels,
    "last": lambda w: w.k - 3,
    "lat": lambda w: None,
    "lat0": lambda w: 40.0,
    "lat1": lambda w: 40.2,
    "level": lambda w: w.pick(0.95, 0.5, 1 - 1e-9, 1e-9),
    "lon": lambda w: None,
    "lon0": lambda w: -74.0,
    "lon1": lambda w: -73.8,
    "loss": lambda w: w.loss,
    "losses": lambda w: {"l2": squared_l2},
    "m": lambda w: 1,
    "matrix": lambda w: w.matrix,
    "max_iter": lambda w: w.pick(50, 1),
    "max_quality_loss": lambda w: w.pick(0.5, 0.0, w.epsilon),
    "max_sweeps": lambda w: 300,
    "mechanism": lambda w: w.mechanism,
    "mechanisms": lambda w: [w.mechanism, w.other],
    "method": lambda w: w.pick(*METHODS),
    "most": lambda w: 1,
    "n": lambda w: w.pick(1, 100, 10**15),
    "n_cols": lambda w: w.k,
    "n_jobs": lambda w: 1,
    "n_rows": lambda w: 2,
    "name": lambda w: "value",
    "near": lambda w: w.simplex,
    "normalize": lambda w: w.pick(False, True),
    "of": lambda w: w.pick(None, w.rng.normal(size=w.k), w.loss),
    "outside": lambda w: w.pick("raise", "nearest", "drop"),
    "p": lambda w: w.simplex,
    "power": lambda w: w.pick(0.8, 0.5, 1e-9, 1 - 1e-9),
    "packed": lambda w: False,
    "path": lambda w: None,
    "penalty": lambda w: w.pick(None, 0.0, 1.0, 1e-12, 1e12),
    "permanent": lambda w: Chances(0.75, 0.25),
    "points": lambda w: np.array([[40.05, -73.95], [40.15, -73.85]]),
    "pooled": lambda w: w.pick(False, True),
    "population": lambda w: w.population,
    "post": lambda w: w.pick(
        "project", "none", "normalize", "norm-mul", "norm-sub", "base-pos", "norm", "norm-cut"
    ),
    "prior": lambda w: w.simplex,
    "problem": lambda w: Problem(w.tally.operator, w.tally.counts),
    "project": lambda w: w.pick(False, True),
    "protocol": lambda w: ik.LongitudinalUnaryEncoding(w.k, Chances(0.75, 0.25), Chances(0.7, 0.2)),
    "public": lambda w: ik.uniform(w.k),
    "published": lambda w: False,
    "q": lambda w: ik.uniform(w.k),
    "release": lambda w: w.mechanism.release,
    "repetitions": lambda w: 2,
    "report": lambda w: 0,
    "report_bins": lambda w: w.pick(None, 7),
    "reports": lambda w: w.reports,
    "restart": lambda w: w.pick(False, True),
    "rng": lambda w: np.random.default_rng(w.seed),
    "rounds": lambda w: 2,
    "rows": lambda w: 2,
    "secret": lambda w: 0,
    "secret_counts": lambda w: w.secret_counts,
    "sums": lambda w: w.secret_counts,
    "secrets": lambda w: w.secrets,
    "seed": lambda w: w.pick(0, 7),
    "seeds": lambda w: np.arange(12),
    "shares": lambda w: w.pick(None, [0.25, 0.75]),
    "sigma": lambda w: w.sigma,
    "size": lambda w: w.pick(None, 1),
    "start": lambda w: ik.uniform(w.k),
    "stated": lambda w: 0,
    "steps": lambda w: w.pick(10, 1),
    "stop": lambda w: w.pick(*STOPS)(),
    "strict": lambda w: w.pick(True, False),
    "subset": lambda w: w.pick("all", "train"),
    "table": lambda w: pd.DataFrame({"report": w.secrets}),
    "tally": lambda w: w.pooled,
    "tallies": lambda w: [w.tally, w.tally],
    "tally_1": lambda w: w.tally,
    "tally_2": lambda w: w.pooled,
    "target": lambda w: w.pick("distribution", "frequencies"),
    "theta": lambda w: w.simplex,
    "threshold": lambda w: w.pick(20.0, 1e6),
    "tol": lambda w: w.pick(*TOLERANCES),
    "unit": lambda w: "",
    "unknown": lambda w: w.pick("raise", "drop"),
    "missing": lambda w: w.pick("raise", "drop"),
    "by": lambda w: None,
    "v": lambda w: w.rng.normal(size=w.k),
    "values": lambda w: [f"v{i}" for i in range(w.k)],
    "w": lambda w: np.ones(min(getattr(w.mechanism, "m", 3), 64)),
    "weight": lambda w: w.pick(0.5, 0.0, 1.0, 1e-300),
    "weighted": lambda w: w.pick(False, True),
    "groups": lambda w: None,
    "strata": lambda w: None,
    "clusters": lambda w: None,
    "replicate_weights": lambda w: None,
    "weights": lambda w: w.counts(w.k),
    "width": lambda w: w.pick(0.1, 0.01, 0.5, 1e-9),
    "x_edges": lambda w: np.linspace(-5, 5, 4),
    "y_edges": lambda w: np.linspace(-5, 5, 4),
    # survey designs, whose labels are two
    "cards": lambda w: w.pick(1, 3),
    "design": lambda w: w.mechanism,
    "items": lambda w: w.pick(1, 3),
    "numbers": lambda w: [1, 2, 4],
    "p_no": lambda w: w.pick(0.25, 0.0, 1e-12),
    "p_yes": lambda w: w.pick(0.5, 0.125, 1e-6),
    "scramble": lambda w: w.pick("replace", "add", "multiply"),
    "share": lambda w: w.pick(None, 0.25, 0.0),
    "posterior_odds.of": lambda w: np.eye(w.k)[0],
    "tally.first": lambda w: w.pick(["no", "yes"], [0, 1]),
    "tally.second": lambda w: w.pick(["no", "yes"], [0, 1]),
    "tally_counts.first": lambda w: w.counts(2),
    "tally_counts.second": lambda w: w.counts(2),
    "simulate.first": lambda w: w.counts(3),
    "simulate.second": lambda w: w.counts(3),
    **{f"{name}.labels": lambda w: w.alphabet for name in TWO_SECRETS},
    **{f"{name}.labels": lambda w: w.pick(["no", "yes"], [0, 1]) for name in TWO_SAMPLES},
    **{
        f"{name}.p": lambda w: w.pick(0.7, 0.25, 1 - 1e-12)
        for name in ("Warner", "Mangat", "Crosswise", "Triangular", "ScrambledResponse")
    },
    **{f"{name}.p": lambda w: w.pick((0.25, 0.75), [0.6, 0.1]) for name in TWO_SAMPLES},
    "ScrambledResponse.shares": lambda w: None,
    # twelve people, of whom the world draws secrets and reports
    "X": lambda w: w.pick(w.rng.normal(size=12), w.rng.normal(size=(12, 2))),
    "data": lambda w: None,
    "regress.start": lambda w: None,
    "regress.weights": lambda w: w.pick(np.ones(12), w.rng.uniform(0.5, 2, 12)),
    "regress.clusters": lambda w: np.arange(12) // 2,
    "regress.strata": lambda w: np.arange(12) // 6,
    "regress.replicate_weights": lambda w: None,
    "regress.by": lambda w: None,
    # the same name means something else there
    "Change.of": lambda w: w.pick("log_likelihood", "mean_log_likelihood", "distribution"),
    "CountMeanSketch.width": lambda w: 4,
    "Estimate.method": lambda w: w.pick(*INTERVALS),
    "Grid.first": lambda w: (0, 0),
    "Grid.labels": lambda w: w.grid.labels_of(w.secrets),
    "Grid.values": lambda w: np.ones(w.k),
    "HadamardCountMeanSketch.width": lambda w: 4,
    "LinearLaplace.values": lambda w: w.rng.normal(size=9),
    "MatrixMechanism.reports": lambda w: None,
    "from_trials.counts": lambda w: np.rint(1000 * np.asarray(w.matrix)),
    "Plan.estimator": lambda w: w.pick("mle", "inv"),
    "Plans.estimator": lambda w: w.pick("mle", "inv", None),
    "PlanarGaussian.outside": lambda w: w.pick("raise", "keep", "drop"),
    "PlanarGaussian.points": lambda w: w.rng.normal(size=(9, 2)),
    "PlanarLaplace.outside": lambda w: w.pick("raise", "keep", "drop"),
    "PlanarLaplace.points": lambda w: w.rng.normal(size=(9, 2)),
    "SquareWave.init.secrets": lambda w: w.pick("centre", "uniform"),
    "Tally.epsilon": lambda w: None,
    "Tally.report": lambda w: "report",
    "Tally.w": lambda w: np.ones(len(w.tally.counts)),
    "BloomRappor.p": lambda w: 0.25,
    "BloomRappor.q": lambda w: 0.75,
    "BloomRappor.sums": lambda w: np.array([[3, 4, 5, 6], [7, 8, 9, 10]]),
    "BloomRappor.n": lambda w: np.array([20, 30]),
    "LongitudinalUnaryEncoding.p": lambda w: 0.25,
    "LongitudinalUnaryEncoding.q": lambda w: 0.75,
    "UnaryEncoding.p": lambda w: 0.75,
    "UnaryEncoding.q": lambda w: 0.25,
    "ThresholdedHistogram.threshold": lambda w: w.pick(None, 0.75),
    "codes.name": lambda w: "labels",
    "tally.counts": lambda w: w.counts(12),
    "audit.n": lambda w: 400,
    "audit.secrets": lambda w: None,
    "bayes_limits.alpha": lambda w: w.pick(0.5, 1.0, np.full(w.k, 2.0)),
    "check_distribution.name": lambda w: "p",
    "compare.method": lambda w: w.pick("profile", "wald", "guaranteed"),
    "combine_results.weights": lambda w: w.pick("users", "variance"),
    "average_mechanism.weights": lambda w: w.pick(None, [0.25, 0.75]),
    "compound_squared_error.weights": lambda w: w.pick(None, [0.25, 0.75]),
    "MleSet.weights": lambda w: w.rng.normal(size=w.k),
    "detect_poisoning.rng": lambda w: np.random.default_rng(w.seed),
    "likely_region.reports": lambda w: np.array([[0, 0], [0, 1], [2, 2]]),
    "maximise.channel": lambda w: w.tally.operator,
    "maximise.counts": lambda w: w.tally.counts,
    "poison_inputs.counts": lambda w: w.secret_counts,
    "poison_inputs.target": lambda w: 0,
    "poisoned_distribution.target": lambda w: 0,
    "poison_inputs.alphabet": lambda w: None,
    "poisoned_distribution.alphabet": lambda w: None,
    "breakdown_fraction.target": lambda w: w.labels[0],
    "coarse_map.weights": lambda w: w.simplex,
    "posterior.method": lambda w: w.pick("exact", "enumerate", "gibbs"),
    "posterior.of": lambda w: w.pick("distribution", "frequencies"),
    "posterior_mean.method": lambda w: w.pick("exact", "enumerate", "gibbs"),
    "posterior_mean.of": lambda w: w.pick("distribution", "frequencies"),
    "quantize.bits": lambda w: w.pick(20, 1, 52),
    "rappor_concavity_bound.by": lambda w: w.pick("sets", "product"),
    "smooth.of": lambda w: w.pick("distribution", "frequencies"),
    "plan.groups": lambda w: w.pick(1, 2),
    "tally.rows": lambda w: pd.DataFrame({"report": w.secrets}),
    "unfold.counts": lambda w: w.counts(w.k + 1),
    "van_trees_bound.of": lambda w: w.pick("distribution", "frequencies"),
    "rate_distortion.beta": lambda w: w.pick(None, w.epsilon),
}


def parameters(function):
    """Name to parameter, but `self` and what collects the rest."""
    rest = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters
    return {
        name: p for name, p in found.items() if name not in ("self", "cls") and p.kind not in rest
    }


def key_of(owner: str, name: str) -> str:
    """Where the right value of a parameter stands:
    under its owner's name and its own, or its own.
    """
    cls, _, method = owner.partition(".")
    keys = (f"{owner}.{name}", f"{method}.{name}", f"{cls}.{name}", name)
    return next((key for key in keys if key in RIGHT), "")


def promised(parameter) -> bool:
    """Whether an argument is a promise between modules:
    an array by its type, or what only they make.
    """
    return (
        re.match(
            r"NDArray|Floats|Ints|Bits|Iterate|Merged|Problem|Channel", str(parameter.annotation)
        )
        is not None
    )
