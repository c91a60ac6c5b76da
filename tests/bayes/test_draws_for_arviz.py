"""Draws of a posterior as an xarray Dataset: chains, labels, and what ArviZ makes of them.

ArviZ itself is large, and no extra of ours has it; the last test runs where it is installed.
"""

import sys
import warnings

import numpy as np
import pytest
import xarray as xr

import ibukit as ik


def drawn(mechanism, counts, **options):
    tally = mechanism.simulate(counts, np.random.default_rng(1))
    return ik.posterior(tally, 0.5, method="gibbs", rng=np.random.default_rng(2), **options)


@pytest.mark.parametrize("of", ["distribution", "frequencies"])
def test_chains_and_draws_are_dimensions_and_labels_a_coordinate(of):
    posterior = drawn(ik.RandomizedResponse(["a", "b", "c"], 2.0), [50, 30, 20], of=of)
    found = posterior.to_xarray()
    assert list(found) == [of]
    assert dict(found.sizes) == {"chain": 4, "draw": 1000, "secret": 3}
    assert found["secret"].values.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(found[of].values.reshape(-1, 3), posterior.draws())
    np.testing.assert_allclose(found[of].sum("secret"), 1)
    # The Monte-Carlo error of the mean is far below this.
    assert abs(found[of].mean(("chain", "draw")) - posterior.mean).max() < 0.02
    assert found.attrs["inference_library"] == "ibukit"
    assert found.attrs["inference_library_version"] == ik.__version__


def test_a_grid_has_a_dimension_for_rows_and_one_for_columns():
    grid = ik.Grid(2, 3)
    posterior = drawn(ik.RandomizedResponse(grid, 2.0), [60, 20, 10, 5, 3, 2])
    cells = posterior.to_xarray()["distribution"]
    assert cells.dims == ("chain", "draw", "row", "col")
    for code, (row, col) in enumerate(grid.labels_of(np.arange(6))):
        np.testing.assert_array_equal(
            cells.sel(row=row, col=col).values.ravel(), posterior.draws()[:, code]
        )


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (ik.Line(3, 5), [3, 4, 5]),
        ([("a", 1), ("b", 2), ("b", 3)], ["('a', 1)", "('b', 2)", "('b', 3)"]),
        ([0.5, "half", None], ["0.5", "half", "None"]),
    ],
)
def test_labels_are_themselves_or_their_text(values, shown):
    alphabet = values if isinstance(values, ik.Line) else ik.Alphabet(values)
    found = drawn(ik.RandomizedResponse(alphabet, 2.0), [50, 30, 20]).to_xarray()
    assert found["secret"].values.tolist() == shown


def test_a_change_of_the_dataset_leaves_the_posterior_as_it_was():
    posterior = drawn(ik.RandomizedResponse(3, 2.0), [50, 30, 20])
    before = posterior.draws()
    posterior.to_xarray()["distribution"][:] = 0
    np.testing.assert_array_equal(posterior.draws(), before)


def test_an_exact_posterior_has_no_draws_to_hand_over():
    exact = ik.posterior(ik.RandomizedResponse(3, 2.0).tally_counts([5, 3, 2]), 0.5)
    with pytest.raises(ValueError, match=r"drawn with method='gibbs' .* got method='exact'"):
        exact.to_xarray()


def test_without_xarray_the_extra_is_named(monkeypatch):
    posterior = drawn(ik.RandomizedResponse(3, 2.0), [50, 30, 20])
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ik.errors.MissingExtra, match=r'pip install "ibukit\[bayes\]"'):
        posterior.to_xarray()


@pytest.mark.parametrize("alphabet", [ik.Alphabet(["a", "b", "c", "d"]), ik.Grid(2, 2)])
def test_arviz_summarises_the_draws_under_their_labels(alphabet):
    with warnings.catch_warnings():
        # ArviZ announces its next version, and its plots import what is deprecated.
        warnings.simplefilter("ignore")
        az = pytest.importorskip("arviz")
        posterior = drawn(ik.RandomizedResponse(alphabet, 2.0), [50, 30, 20, 10])
        dataset = posterior.to_xarray()
        table = az.summary(dataset, round_to="none")
        convert = getattr(az, "convert_to_datatree", None) or az.convert_to_inference_data
        group = convert(dataset)["posterior"]
    shown = ["0, 0", "0, 1", "1, 0", "1, 1"] if isinstance(alphabet, ik.Grid) else "abcd"
    assert list(table.index) == [f"distribution[{label}]" for label in shown]
    np.testing.assert_allclose(table["mean"].astype(float), posterior.draws().mean(axis=0))
    assert (table["r_hat"].astype(float) < 1.01).all()
    xr.testing.assert_equal(group["distribution"], dataset["distribution"])
