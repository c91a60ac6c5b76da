"""ldp-toolbox 0.1.3: its five frequency oracles, without its web page.

It is installed without dash and ray.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import parallel_config
from ldp_toolbox.protocols.frequency import grr, he, lh, ss, ue

import ibukit as ik
from benchmarks.libraries.peer import Peer, Session, Vector, as_bits, each, of_supports, peers_of
from benchmarks.libraries.pure_ldp import hash_rows


def alone(protocol: Any) -> Any:
    """The estimator of a protocol, run in this process.

    Local hashing would otherwise start a process for each core, whose time no clock here sees.
    """

    def estimate(reports: Any) -> Vector:
        with parallel_config(backend="sequential"):
            return np.asarray(protocol.estimate(reports))

    return estimate


def response(k: int, eps: float) -> Session:
    theirs = grr.GeneralizedRandomizedResponse(k, eps)
    ours = ik.RandomizedResponse(k, eps)
    return Session(
        each(theirs.obfuscate), {"estimate": alone(theirs)}, lambda r: (ours, np.array(r))
    )


def unary(optimal: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        theirs = ue.UnaryEncoding(k, eps, optimal)
        ours = (ik.OptimizedUnaryEncoding if optimal else ik.Rappor)(k, eps)
        return Session(
            each(theirs.obfuscate), {"estimate": alone(theirs)}, lambda r: (ours, as_bits(r))
        )

    return start


def hashing(k: int, eps: float) -> Session:
    theirs = lh.LocalHashing(k, eps)
    return Session(
        each(theirs.obfuscate),
        {"estimate": alone(theirs)},
        lambda r: of_supports(
            k, eps, hash_rows([(y, int(s)) for y, s in r], k, theirs.g), 1 / theirs.g
        ),
        ours=ik.LocalHashing(k, eps, theirs.g),
    )


def subsets(k: int, eps: float) -> Session:
    theirs = ss.SubsetSelection(k, eps)

    def convert(reports: Any) -> Any:
        bits = np.zeros((len(reports), k), dtype=np.uint8)
        np.put_along_axis(bits, np.array(reports), 1, axis=1)
        return ik.SubsetSelection(k, eps, theirs.omega), bits

    return Session(each(theirs.obfuscate), {"estimate": alone(theirs)}, convert)


def histogram(thresholding: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        theirs = he.HistogramEncoding(k, eps, thresholding)

        def convert(reports: Any) -> Any:
            if not thresholding:
                return ik.HistogramEncoding(k, eps), np.stack(reports)
            bits = np.zeros((len(reports), k), dtype=np.uint8)
            for row, ones in zip(bits, reports, strict=True):
                row[ones] = 1
            return ik.UnaryEncoding(k, theirs.p, theirs.q), bits

        return Session(each(theirs.obfuscate), {"estimate": alone(theirs)}, convert)

    return start


def peers() -> list[Peer]:
    starts = {
        "GRR": response,
        "SUE": unary(False),
        "OUE": unary(True),
        "OLH": hashing,
        "SS": subsets,
        "SHE": histogram(False),
        "THE": histogram(True),
    }
    return peers_of("ldp-toolbox", starts)
