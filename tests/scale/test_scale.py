"""Reports on the workers of a real cluster, of which some are killed:
the same bits, and nothing lost.
"""

import io
import logging
import multiprocessing
import pickle
import sys
from dataclasses import replace

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

import ibukit as ik
from ibukit import scale
from ibukit.errors import AlphabetMismatch, DataChanged, MissingExtra
from ibukit.scale._worker_rows import WorkerPartitions
from replicate_cases import PEOPLE, ask, noisy, numbers
from scale_cases import Doomed, die_once, draw, draw_anew

K, ROWS_EACH = 40, 300
RAPPOR = ik.Rappor(K, 2.0)
SEEDS = range(17)  # one more than are added at once


# a port that is free: on 8787, the usual one, somebody else may have a cluster
LOADED = ["distributed", "distributed.nanny", "pandas", "dask.array"]
LOADED += [f"ibukit.{room}" for room in ("estimators", "evaluation", "mechanisms", "scale")]
HOW = {
    "processes": True,
    "threads_per_worker": 1,
    "dashboard_address": ":0",
    "silence_logs": logging.CRITICAL,
}


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Workers are forks of one process that has loaded what all need;
    else each loads it, and who follows a dead one.

    Where a process cannot be forked each worker starts anew.
    """
    if "forkserver" in multiprocessing.get_all_start_methods():
        with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
            get_mp_context().set_forkserver_preload(LOADED)
            yield
    else:
        yield


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, **HOW) as cluster, Client(cluster) as found:
        yield found


def blocks():
    return [delayed(draw, pure=False)(seed, ROWS_EACH) for seed in SEEDS]


def rows():
    return [draw(seed, ROWS_EACH) for seed in SEEDS]


@pytest.fixture(scope="module")
def undisturbed():
    """The answer on this machine, from the same partitions."""
    return ik.mle(scale.tally(rows(), RAPPOR))


def score_of(tally):
    """One pass: the bits of its three numbers."""
    log_likelihood, g, least = tally.operator.score(ik.uniform(K), tally.counts)
    return log_likelihood, g.tobytes(), least


@pytest.fixture(scope="module")
def score():
    return score_of(scale.tally(rows(), RAPPOR))


def processes(client):
    return set(client.run(lambda: __import__("os").getpid()).values())


def test_factors_left_out_on_workers_are_in_the_likelihood(client):
    """With thousands of secrets a row's probability is beyond the doubles."""
    mechanism = ik.Rappor(4000, 1.0)
    rows = mechanism.randomize(np.arange(30), np.random.default_rng(1))
    parts = [delayed(part) for part in np.split(rows, 3)]
    memory = mechanism.tally(rows)
    assert memory.log_offset != 0
    assert scale.tally(parts, mechanism, client).log_offset == pytest.approx(
        memory.log_offset, rel=1e-13
    )


@pytest.fixture
def in_the_third_pass(monkeypatch, tmp_path):
    """A file that is there from the third pass over the rows on."""
    file, passes, total = tmp_path / "die", [], WorkerPartitions.total

    def counting(self, *what):
        passes.append(what)
        if len(passes) == 3:
            file.touch()
        return total(self, *what)

    monkeypatch.setattr(WorkerPartitions, "total", counting)
    return file


def test_workers_give_the_bits_of_this_machine(client, undisturbed, score):
    tally = scale.tally(blocks(), RAPPOR, client)
    assert (tally.n, len(tally.operator.partitions.sizes)) == (5100, 17)
    found = ik.mle(tally)
    assert found.distribution.tobytes() == undisturbed.distribution.tobytes()
    assert (found.log_likelihood, found.gap) == (undisturbed.log_likelihood, undisturbed.gap)
    whole = RAPPOR.tally(np.concatenate(rows()))
    # As computed the gap is the same; the bounds on rounding depend on how reports are summed.
    computed = whole.operator.score(found.distribution, whole.counts).gap(whole.n)
    spread = tally.operator.score(found.distribution, tally.counts).gap(tally.n)
    assert spread == pytest.approx(computed, abs=1e-14)
    assert computed < found.gap < computed + 1e-12
    assert found.gap <= 1e-9
    assert score_of(tally) == score
    assert score_of(scale.tally(rows()[::-1], RAPPOR)) != score, (
        "bits must be seen to depend on the order"
    )


def test_standard_errors_are_added_up_by_the_workers(client, undisturbed):
    """k x k numbers come from each partition:
    the bits of this machine, and what all rows in memory give.
    """
    found = replace(undisturbed, tally=scale.tally(blocks(), RAPPOR, client)).standard_errors()
    assert found.tobytes() == undisturbed.standard_errors().tobytes()
    memory = replace(undisturbed, tally=RAPPOR.tally(np.concatenate(rows())))
    np.testing.assert_allclose(found, memory.standard_errors(), rtol=1e-9)


def test_a_worker_killed_during_a_run_changes_no_bit(client, undisturbed, in_the_third_pass):
    mechanism = Doomed(K, 2.0, str(in_the_third_pass))
    tally = scale.tally(blocks(), mechanism, client)
    before = processes(client)
    found = ik.mle(tally)
    assert not in_the_third_pass.exists(), "a worker must have seen the file, and died"
    client.wait_for_workers(2)
    assert processes(client) != before
    assert found.distribution.tobytes() == undisturbed.distribution.tobytes()
    assert (found.log_likelihood, found.gap) == (undisturbed.log_likelihood, undisturbed.gap)
    assert tally.operator.score(ik.uniform(K), tally.counts).g @ ik.uniform(K) == pytest.approx(
        5100
    )


def test_rows_that_come_out_differently_are_found_out(in_the_third_pass):
    """Of one worker all rows are lost;
    of two the other may have copies of them, and then nothing is.
    """
    mechanism = Doomed(K, 2.0, str(in_the_third_pass))
    with (
        LocalCluster(n_workers=1, **HOW) as cluster,
        Client(cluster, set_as_default=False) as alone,
    ):
        tally = scale.tally(
            [delayed(draw_anew, pure=False)(ROWS_EACH) for _ in SEEDS], mechanism, alone
        )
        with pytest.raises(DataChanged, match="was lost with its worker, and came out differently"):
            ik.mle(tally)
    assert not in_the_third_pass.exists()


@pytest.mark.parametrize(
    ("collect", "how"),
    [
        (lambda: da.from_array(np.concatenate(rows()), chunks=(ROWS_EACH, 16)), {}),
        (
            lambda: da.from_array(
                np.packbits(np.concatenate(rows()), axis=1), chunks=(ROWS_EACH, 5)
            ),
            {"packed": True},
        ),
        (lambda: db.from_delayed([delayed(list, pure=False)(block) for block in blocks()]), {}),
        (lambda: [delayed(pd.DataFrame, pure=False)(block) for block in blocks()], {}),
    ],
    ids=["array", "packed", "bag", "frames"],
)
def test_dask_collections_are_taken(client, score, collect, how):
    assert score_of(scale.tally(collect(), RAPPOR, **how)) == score  # the client that was made last


def test_a_single_partition_is_a_collection(client, score):
    alone = score_of(scale.tally(blocks()[0], RAPPOR, client))
    assert alone == score_of(scale.tally(rows()[0], RAPPOR)) != score


def test_workers_read_files(client, tmp_path, score):
    paths = [tmp_path / f"{seed}.npy" for seed in SEEDS]
    for path, block in zip(paths, rows(), strict=True):
        np.save(path, block)
    tally = scale.tally(paths, RAPPOR, client)
    assert isinstance(tally.operator.partitions, WorkerPartitions)
    assert score_of(tally) == score


def test_workers_count_what_counting_reduces(client):
    mechanism = ik.RandomizedResponse(ik.Line(0, 9), 1.0)
    reports = np.arange(4000) ** 2 % 10
    ours = scale.tally(da.from_array(reports, chunks=500), mechanism, client)
    assert np.array_equal(ours.counts, mechanism.tally(reports).counts)
    assert ik.mle(pickle.loads(pickle.dumps(ours))).gap <= 1e-9


def test_empty_partitions_are_no_reports(client):
    some = [draw(1, 0), draw(1, ROWS_EACH), draw(2, 0)]
    tally = scale.tally([delayed(one) for one in some], RAPPOR, client)
    assert (tally.n, tally.operator.partitions.sizes) == (ROWS_EACH, (ROWS_EACH,))
    for mechanism in (RAPPOR, ik.Rappor(4, 1.0)):
        with pytest.raises(ValueError, match="at least one report, got none"):
            scale.tally(delayed(some[0][:, : mechanism.k]), mechanism, client)


def test_wrong_rows_and_clients_are_named(client):
    bad = rows()[:3]
    bad[1][7, 3] = 2
    with pytest.raises(AlphabetMismatch, match="rows of 0 and 1, got 2") as caught:
        scale.tally([delayed(one) for one in bad], RAPPOR, client)
    assert caught.value.__notes__ == ["in partition 1 of rows"]
    with pytest.raises(
        AlphabetMismatch, match=r"shape \(n, 40\), got a Dask Array of shape \(9, 39\)"
    ):
        scale.tally(da.zeros((9, 39)), RAPPOR, client)
    with pytest.raises(
        TypeError, match=r"client must be a dask.distributed.Client, got 'tcp://1.2.3.4'"
    ):
        scale.tally(blocks(), RAPPOR, "tcp://1.2.3.4")
    with pytest.raises(
        TypeError, match="rows must not be arrays of this machine where client is given"
    ):
        scale.tally(bad, RAPPOR, client)
    with pytest.raises(TypeError, match=r"rows must be .* all of a kind"):
        scale.tally([blocks()[0], bad[0]], RAPPOR, client)


def test_a_collection_needs_a_client(client):
    with client.as_current(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "distributed.default_client", lambda: (_ for _ in ()).throw(ValueError("none"))
        )
        with pytest.raises(ValueError, match="client must be given for Dask collections"):
            scale.tally(blocks(), RAPPOR)
        patch.setitem(sys.modules, "distributed", None)
        with pytest.raises(MissingExtra, match=r'pip install "ibukit\[dask\]"'):
            scale.tally(blocks(), RAPPOR)


def test_an_estimate_travels_without_its_tally(client):
    found = ik.mle(scale.tally(blocks()[:2], RAPPOR, client))
    with pytest.raises(TypeError, match="stays with its client"):
        pickle.dumps(found)
    assert pickle.loads(pickle.dumps(replace(found, tally=None))).gap == found.gap


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_shows_each_pass_and_is_silent_off_a_terminal(client, monkeypatch):
    tally = scale.tally(blocks()[:3], RAPPOR, client)
    for screen, speaks in ((io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr(sys, "stderr", screen)
        tally.operator.score(ik.uniform(K), tally.counts)
        assert ("pass over the rows" in screen.getvalue()) is speaks


def test_replicate_on_workers_gives_the_same_table(client, tmp_path):
    path, here = tmp_path / "runs.jsonl", numbers(ask())
    assert numbers(ask(client=client, path=path)) == here
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(lines[:9]) + b"\n")
    assert numbers(ask(path=path)) == here, "what workers wrote, this machine goes on with"
    assert numbers(ask(client=client)) != numbers(ik.replicate(PEOPLE, *ask.args[1:4], 12))


def test_replicate_survives_a_worker(client, tmp_path):
    file = tmp_path / "die"
    file.touch()
    before = processes(client)
    estimators = {"once": lambda tally: die_once(str(file), noisy(tally))}
    found = ik.replicate(*ask.args[:2], estimators, 4, 11, client=client)
    assert not file.exists()
    client.wait_for_workers(2)
    assert processes(client) != before
    assert numbers(found) == numbers(ik.replicate(*ask.args[:2], estimators, 4, 11))


def test_replicate_says_where_an_error_happened(client):
    def bad(tally):
        raise KeyError("missing")

    with pytest.raises(KeyError, match="missing") as caught:
        ask.func(*ask.args[:2], {"bad": bad}, 2, 3, client=client)
    assert "with the estimator 'bad'" in caught.value.__notes__[0]
    with pytest.raises(TypeError, match=r"client must be a dask.distributed.Client, got 3"):
        ask(client=3)
    with pytest.raises(ValueError, match=r"n_jobs must be left out where client is given.*got 2"):
        ask(client=client, n_jobs=2)
