"""multi-freq-ldpy 0.2.5: the frequency oracles of one attribute, once and longitudinal."""

from __future__ import annotations

from typing import Any

import numpy as np
from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Aggregator_MI, L_GRR_Client
from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Aggregator_MI, L_OSUE_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import (
    GRR_Aggregator_IBU,
    GRR_Aggregator_MI,
    GRR_Client,
)
from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Aggregator_MI, HE_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_IBU, LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_IBU, SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_IBU, UE_Aggregator_MI, UE_Client

import ibukit as ik
from benchmarks.libraries.peer import Peer, Session, as_bits, each, of_supports, peers_of
from benchmarks.libraries.pure_ldp import hash_rows

LATER = 2.0  # epsilon of all rounds of a longitudinal protocol, as a multiple of one round's


def response(k: int, eps: float) -> Session:
    return Session(
        each(lambda x: GRR_Client(x, k, eps)),
        {
            "MI": lambda r: GRR_Aggregator_MI(r, k, eps),
            "IBU": lambda r: GRR_Aggregator_IBU(r, k, eps),
        },
        lambda r: (ik.RandomizedResponse(k, eps), np.array(r)),
    )


def unary(optimal: bool) -> Any:
    def start(k: int, eps: float) -> Session:
        ours = (ik.OptimizedUnaryEncoding if optimal else ik.Rappor)(k, eps)
        return Session(
            each(lambda x: UE_Client(x, k, eps, optimal)),
            {
                "MI": lambda r: UE_Aggregator_MI(r, eps, optimal),
                "IBU": lambda r: UE_Aggregator_IBU(r, k, eps, optimal),
            },
            lambda r: (ours, as_bits(r)),
        )

    return start


def hashing(k: int, eps: float) -> Session:
    g = round(float(np.exp(eps))) + 1
    return Session(
        each(lambda x: LH_Client(x, k, eps)),
        {
            "MI": lambda r: LH_Aggregator_MI(r, k, eps),
            "IBU": lambda r: LH_Aggregator_IBU(r, k, eps),
        },
        lambda r: of_supports(k, eps, hash_rows([(y, int(s)) for y, s in r], k, g), 1 / g),
        ours=ik.LocalHashing(k, eps, g),
    )


def subsets(k: int, eps: float) -> Session:
    size = int(max(1, np.rint(k / (np.exp(eps) + 1))))

    def convert(reports: Any) -> Any:
        bits = np.zeros((len(reports), k), dtype=np.uint8)
        np.put_along_axis(bits, np.array(reports), 1, axis=1)
        return ik.SubsetSelection(k, eps, size), bits

    return Session(
        each(lambda x: SS_Client(x, k, eps)),
        {
            "MI": lambda r: SS_Aggregator_MI(r, k, eps),
            "IBU": lambda r: SS_Aggregator_IBU(r, k, eps),
        },
        convert,
    )


def summed(k: int, eps: float) -> Session:
    return Session(
        each(lambda x: HE_Client(x, k, eps)),
        {"MI": lambda r: HE_Aggregator_MI(r, k, eps, use_thresh=False)},
        lambda r: (ik.HistogramEncoding(k, eps), np.stack(r)),
    )


def longitudinal_unary(k: int, eps: float) -> Session:
    ours = ik.LongitudinalUnaryEncoding.osue(k, eps, LATER * eps)
    return Session(
        each(lambda x: L_OSUE_Client(x, k, LATER * eps, eps)),
        {"MI": lambda r: L_OSUE_Aggregator_MI(r, LATER * eps, eps)},
        lambda r: (ours, as_bits(r)),
    )


def longitudinal_response(k: int, eps: float) -> Session:
    """L-GRR, whose second round is too noisy: its reports are k-RR below the level asked for."""
    grr = k_rr_twice(k, eps, LATER * eps)
    level = float(np.log(grr[0] / grr[1]))
    return Session(
        each(lambda x: L_GRR_Client(x, k, LATER * eps, eps)),
        {"MI": lambda r: L_GRR_Aggregator_MI(r, k, LATER * eps, eps)},
        lambda r: (ik.RandomizedResponse(k, level), np.array(r)),
        ours=ik.LongitudinalResponse(k, eps, LATER * eps),
    )


def k_rr_twice(k: int, eps: float, eps_inf: float) -> tuple[float, float]:
    """Chances of one's own value and of another in a report of L-GRR, by all paths of p1 and p2."""
    e, first = np.exp(eps), np.exp(eps_inf)
    p1 = first / (first + k - 1)
    q1 = (1 - p1) / (k - 1)
    p2 = (q1 - e * p1) / (-p1 * e + k * q1 * e - q1 * e - p1 * (k - 1) + q1)
    q2 = (1 - p2) / (k - 1)
    return p1 * p2 + (1 - p1) * q2, p1 * q2 + q1 * p2 + (k - 2) * q1 * q2


def peers() -> list[Peer]:
    starts = {
        "GRR": response,
        "SUE": unary(False),
        "OUE": unary(True),
        "OLH": hashing,
        "SS": subsets,
        "SHE": summed,
        "L-OSUE": longitudinal_unary,
        "L-GRR": longitudinal_response,
    }
    told = {"L-GRR": "its reports are noisier than asked for; ours is told their true level"}
    return peers_of("multi-freq-ldpy", starts, told)
