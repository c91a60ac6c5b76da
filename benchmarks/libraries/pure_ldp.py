"""pure-ldp 1.2.0: all its frequency oracles, with its own clients, hash functions and servers.

Two of the packages that it uses have moved on. Its hashes need xxhash below 4, which hashes text
(the extra `bench` pins 3.5.0). Its sketches make an array of shape None, which numpy refuses since
2.4: `_OldNumpy` answers as older versions did.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pure_ldp.core._freq_oracle_server as base
import xxhash
from pure_ldp import frequency_oracles as fo
from pure_ldp.core.prob_simplex import project_probability_simplex

import ibukit as ik
from benchmarks.libraries import bloom
from benchmarks.libraries.peer import (
    Peer,
    Session,
    Vector,
    anew,
    as_bits,
    each,
    of_supports,
    peers_of,
    table,
)

ROWS, WIDTH = 64, 256  # of sketches
FUNCTIONS = 1000  # of fast local hashing
COHORTS, BITS, HASHES = 8, 128, 2  # of RAPPOR


class _OldNumpy:
    """numpy, but an array of shape None is a number, as before 2.4."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def zeros(self, shape: Any) -> Any:
        return np.zeros(() if shape is None else shape)


@contextlib.contextmanager
def old_numpy() -> Iterator[None]:
    base.np = _OldNumpy()
    try:
        yield
    finally:
        base.np = np


def same(x: Any) -> Any:
    return x


def estimated(server: Any, reports: Any, k: int) -> Vector:
    """All frequencies, after all reports were aggregated again."""
    with old_numpy(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.reset()
        server.aggregate_all(reports)
        found = server.estimate_all(range(k), suppress_warnings=True, normalization=0)
    return np.asarray(found, dtype=float) / len(reports)


def session(client: Any, server: Any, k: int, convert: Any, **more: Any) -> Session:
    return Session(
        each(client.privatise),
        {"estimate": lambda reports: estimated(server, reports, k)},
        convert,
        {"simplex": lambda v: np.asarray(project_probability_simplex(v))},
        **more,
    )


def direct(k: int, eps: float) -> Session:
    client, server = fo.DEClient(eps, k, index_mapper=same), fo.DEServer(eps, k, index_mapper=same)
    return session(
        client, server, k, lambda reports: (ik.RandomizedResponse(k, eps), np.array(reports))
    )


def unary(optimised: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        client = fo.UEClient(eps, k, use_oue=optimised, index_mapper=same)
        server = fo.UEServer(eps, k, use_oue=optimised, index_mapper=same)
        ours = (ik.OptimizedUnaryEncoding if optimised else ik.Rappor)(k, eps)
        return session(client, server, k, lambda reports: (ours, as_bits(reports)))

    return start


def hash_rows(reports: Any, k: int, g: int) -> Any:
    """The secrets that have the reported bucket, by the library's hash of the text of each."""
    words = [str(x) for x in range(k)]
    return np.array(
        [[xxhash.xxh32(w, seed=s).intdigest() % g == y for w in words] for y, s in reports],
        dtype=np.uint8,
    )


def hashing(optimised: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        client = fo.LHClient(eps, k, g=2, use_olh=optimised, index_mapper=same)
        server = fo.LHServer(eps, k, g=2, use_olh=optimised, index_mapper=same)
        client.update_params(use_olh=optimised, epsilon=eps)
        g = server.g
        ours = ik.LocalHashing(k, eps, g)
        return session(
            client,
            server,
            k,
            lambda reports: of_supports(k, eps, hash_rows(reports, k, g), 1 / g),
            ours=ours,
        )

    return start


def fast_hashing(k: int, eps: float) -> Session:
    client = fo.FastLHClient(eps, k, FUNCTIONS, use_olh=True, index_mapper=same)
    server = fo.FastLHServer(eps, k, FUNCTIONS, use_olh=True, index_mapper=same)
    g = server.g

    def convert(reports: Any) -> Any:
        y, s = np.array(reports).T
        return of_supports(k, eps, server.hash_matrix[s] == y[:, None], 1 / g)

    server.reset = lambda: _reset_counts(server)
    return session(client, server, k, convert, ours=ik.LocalHashing(k, eps, g))


def _reset_counts(server: Any) -> None:
    """Reset all counts: the server's own `reset` leaves the counts of the reports before."""
    base.FreqOracleServer.reset(server)
    server.hash_counts = np.zeros_like(server.hash_counts)


def histogram(thresholded: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        client = fo.HEClient(eps, k, index_mapper=same)
        server = fo.HEServer(eps, k, use_the=thresholded, index_mapper=same)

        def copies(reports: Any) -> Vector:  # its server writes the bits into the reports
            return estimated(server, [report.copy() for report in reports], k)

        def convert(reports: Any) -> Any:
            rows = np.stack(reports)
            if not thresholded:
                return ik.HistogramEncoding(k, eps), rows
            return ik.UnaryEncoding(k, server.p, server.q), (rows > server.theta).astype(np.uint8)

        ours = ik.ThresholdedHistogram(k, eps, server.theta) if thresholded else None
        started = session(client, server, k, convert, ours=ours)
        return Session(started.client, {"estimate": copies}, convert, started.derived, ours=ours)

    return start


def hadamard_mechanism(k: int, eps: float) -> Session:
    d = (
        1 << (k - 1).bit_length()
    )  # the library crashes on other numbers, so it is told of secrets that nobody has
    client, server = (
        make(eps, d, 1, index_mapper=same)
        for make in (fo.HadamardMechClient, fo.HadamardMechServer)
    )

    def lists(secrets: Any) -> Any:
        return [list(client.privatise(int(x))) for x in secrets]

    started = session(
        client, server, k, lambda reports: (ik.HadamardMechanism(k, eps), np.array(reports)[:, 0])
    )
    return Session(lists, started.estimators, started.convert, started.derived)


def hadamard_response(k: int, eps: float) -> Session:
    server = fo.HadamardResponseServer(eps, k, index_mapper=same)
    client = fo.HadamardResponseClient(eps, k, server.get_hash_funcs(), index_mapper=same)
    if eps <= 1:
        return session(
            client,
            server,
            k,
            lambda reports: (ik.HadamardResponse(k, eps, blocks=1), np.array(reports)),
        )
    # the library shuffles the secrets first: our secrets are those of the shuffled alphabet
    ours, order = (
        ik.HadamardResponse(k, eps, published=True),
        np.array(server.hr.permute, dtype=int),
    )
    return session(client, server, k, lambda reports: (ours, np.array(reports)), order=order)


def sketch(hadamard: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        with old_numpy():
            server = fo.CMSServer(eps, ROWS, WIDTH, is_hadamard=hadamard)
            client = fo.CMSClient(eps, server.get_hash_funcs(), WIDTH, is_hadamard=hadamard)
        buckets = table(server.get_hash_funcs(), [str(x) for x in range(k)])

        def convert(reports: Any) -> Any:
            if hadamard:
                signs, rows, columns = np.array(reports).T
                return of_supports(
                    k, eps, server.had[columns[:, None], buckets[rows]] == signs[:, None]
                )
            vectors, rows = np.stack([v for v, _ in reports]), np.array([j for _, j in reports])
            return of_supports(k, eps, np.take_along_axis(vectors, buckets[rows], axis=1) > 0)

        ours = (ik.HadamardCountMeanSketch if hadamard else ik.CountMeanSketch)(k, eps, ROWS, WIDTH)
        return session(client, server, k, convert, inverts=False, ours=ours)

    return start


def private_count_sketch(k: int, eps: float) -> Session:
    with old_numpy():
        server = fo.PCSServer(eps, ROWS, WIDTH, use_median=False)
        client = fo.PCSClient(eps, ROWS, WIDTH, server.get_hash_funcs())
    places, signs = (
        table([pair[i] for pair in server.get_hash_funcs()], [str(x) for x in range(k)])
        for i in range(2)
    )

    def convert(reports: Any) -> Any:
        vectors, rows = np.stack([v for v, _ in reports]), np.array([j for _, j in reports])
        said = np.take_along_axis(vectors, places[rows], axis=1)
        return of_supports(k, eps, said == 2 * signs[rows] - 1)

    return session(client, server, k, convert, inverts=False)


def rappor(k: int, eps: float) -> Session:
    """RAPPOR with the library's hash functions and server.

    The reports are drawn as in the paper, because the library's client clears no bit.
    """
    f = 2 / (1 + np.exp(eps / (2 * HASHES)))
    server = fo.RAPPORServer(f, BITS, HASHES, k, COHORTS, index_mapper=same)
    filters = np.zeros((COHORTS, k, BITS))
    for j, functions in enumerate(server.get_hash_funcs()):
        filters[j][np.arange(k), table(functions, [str(x) for x in range(k)])] = 1

    def estimate(reports: Any) -> Vector:
        server.bloom_filters, server.cohort_count = (
            [np.zeros(BITS) for _ in range(COHORTS)],
            np.zeros(COHORTS),
        )
        return estimated(server, reports, k)

    known = bloom.KnownFilters(k, bloom.chances(f, 0.0, 1.0), filters)
    return Session(
        lambda secrets: [(row[1:], int(row[0])) for row in known.draw(secrets, anew())],
        {"ridge, non-negative": estimate},
        lambda reports: (known, np.array([[j, *bits] for bits, j in reports], dtype=np.uint8)),
        inverts=False,
        ours=ik.BloomRappor(k, BITS, HASHES, COHORTS, f, 0.0, 1.0),
    )


def peers() -> list[Peer]:
    told = {
        "HM": "secrets padded to a power of two, without which its client crashes",
        "CMS": "np.zeros(None) answered as before numpy 2.4",
        "HCMS": "np.zeros(None) answered as before numpy 2.4",
        "PCS": "np.zeros(None) answered as before numpy 2.4; its server does not debias",
        "FLH": "its reset keeps the counts; they are cleared",
        "RAPPOR": "reports drawn by the paper's law: its client never clears a set bit",
    }
    starts = {
        "DE": direct,
        "SUE": unary(False),
        "OUE": unary(True),
        "BLH": hashing(False),
        "OLH": hashing(True),
        "FLH": fast_hashing,
        "SHE": histogram(False),
        "THE": histogram(True),
        "HM": hadamard_mechanism,
        "HR": hadamard_response,
        "CMS": sketch(False),
        "HCMS": sketch(True),
        "PCS": private_count_sketch,
        "RAPPOR": rappor,
    }
    return peers_of("pure-ldp", starts, told)
