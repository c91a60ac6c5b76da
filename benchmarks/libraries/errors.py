"""Errors of the libraries, each in two lines that are run here, beside what should come out.

Draws are seeded, and the standard error of a printed number is far below the difference. `setup` is
imports and no more than the objects that the library needs. If an example cannot run, its error
stands in the place of the number.
"""

from __future__ import annotations

import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numba import njit

from benchmarks.libraries.peer import seed_all

SEED = 7
PURE = "from pure_ldp.frequency_oracles import *"
LONG = "from multi_freq_ldpy.long_freq_est"


@dataclass(frozen=True)
class Example:
    library: str
    what: str
    setup: str
    example: str  # two lines; the value of the second is shown
    right: str


EXAMPLES = [
    Example(
        "pure-ldp",
        "RAPPORClient never clears a bit that the secret sets: a 0 excludes each secret that sets"
        " it, epsilon is inf",
        PURE,
        "client = RAPPORClient(0.5, 32, [[lambda word: 3]], 1)\n"
        "np.mean([client.privatise(1)[0][3] for _ in range(10_000)])",
        "0.75",
    ),
    Example(
        "pure-ldp",
        "convert_eps_to_f ignores the number of hash functions: more is spent than was asked for",
        PURE,
        "f = RAPPORClient(0.5, 32, []).convert_eps_to_f(3.0)\nRAPPORServer(f, 32, 2, 10).epsilon",
        "at most 3",
    ),
    Example(
        "pure-ldp",
        "convert_eps_to_f rounds to two digits: no noise at all from epsilon 12 on",
        PURE,
        "client = RAPPORClient(0.5, 32, [])\nclient.convert_eps_to_f(12.0)",
        "0.00495",
    ),
    Example(
        "pure-ldp",
        "PCSServer does not debias: its estimates are (e^eps - 1) / (e^eps + 1) times what they"
        " should be",
        f"{PURE}\nfrom benchmarks.libraries.pure_ldp import old_numpy\nwith old_numpy():\n"
        "    server = PCSServer(1.0, 16, 256, use_median=False)\n"
        "    client = PCSClient(1.0, 16, 256, server.get_hash_funcs())",
        "server.aggregate_all([client.privatise(7) for _ in range(20_000)])\nserver.estimate(7) /"
        " 20_000",
        "1",
    ),
    Example(
        "pure-ldp",
        "FastLHServer.reset keeps the counts of the reports before it",
        f"{PURE}\nserver, client = FastLHServer(2.0, 10, 100), FastLHClient(2.0, 10, 100,"
        " use_olh=True)",
        "for _ in range(2): server.reset(); server.aggregate_all([client.privatise(1) for _ in"
        " range(20_000)])\nserver.estimate(1) / 20_000",
        "1",
    ),
    Example(
        "pure-ldp",
        "Hadamard response, k = 252 and epsilon = 1.5: IndexError wherever k is a multiple of the"
        " block less one",
        f"{PURE}\nserver = HadamardResponseServer(1.5, 252)\n"
        "client = HadamardResponseClient(1.5, 252, server.get_hash_funcs())",
        "server.aggregate_all([client.privatise(7) for _ in range(20_000)])\nserver.estimate(7) /"
        " 20_000",
        "1",
    ),
    Example(
        "pure-ldp",
        "Hadamard mechanism: IndexError unless the number of secrets is a power of two",
        f"{PURE}\nserver, client = HadamardMechServer(1.0, 100, 1), HadamardMechClient(1.0,"
        " 100, 1)",
        "server.aggregate_all([client.privatise(7) for _ in range(20_000)])\nserver.estimate(7) /"
        " 20_000",
        "1",
    ),
    Example(
        "pure-ldp",
        "the Hadamard response that it calls modified and does not use itself: biased where some"
        " blocks stay empty",
        "from pure_ldp.frequency_oracles.hadamard_response.internal.k2k_hadamard import"
        " Hadamard_Rand_general",
        "hr = Hadamard_Rand_general(1000, 5.0)\nhr.decode_string(hr.encode_string([7] * 50_000),"
        " normalization=-1)[7]",
        "1",
    ),
    Example(
        "pure-ldp",
        "with numpy 2.4, which refuses arrays of shape None: CMS, HCMS, PCS and sketch response"
        " cannot be made",
        PURE,
        "server = CMSServer(1.0, 4, 16)\nserver.n",
        "0",
    ),
    Example(
        "multi-freq-ldpy",
        "L_GRR leaves out k - 2 paths of its second round: the level of one report is half of the 1"
        " asked for",
        f"{LONG}.L_GRR import L_GRR_Client",
        "reports = np.array([L_GRR_Client(0, 20, 2.0, 1.0) for _ in range(200_000)])\n"
        "np.log(19 * np.mean(reports == 0) / np.mean(reports != 0))",
        "1",
    ),
    Example(
        "multi-freq-ldpy",
        "the matrix of its IBU for L_GRR leaves out the same paths: reports exactly as expected,"
        " (4, 1), k = 4",
        f"{LONG}.L_GRR import L_GRR_Aggregator_IBU\nfrom benchmarks.libraries.multi_freq import"
        " k_rr_twice\nown, other = k_rr_twice(4, 1.0, 4.0)",
        "reports = np.repeat(range(4), (1e5 * (other + (own - other) * np.array([0.7, 0.3, 0,"
        " 0]))).astype(int))\nL_GRR_Aggregator_IBU(reports, 4, 4.0, 1.0)[0]",
        "0.7",
    ),
    Example(
        "multi-freq-ldpy",
        "VAR_Long_Pure is right at frequency 0 and otherwise only if p + q = 1: L-OSUE (2, 1) at"
        " frequency 1",
        f"{LONG}.Variance_LONG_PURE import VAR_Long_Pure\n"
        "p2 = (np.e**3 - 1) / ((np.e + 1) * (np.e**2 - 1))\nq1 = 1 / (np.e**2 + 1)",
        "right = 1 / 4 / ((1 / 2 - q1) * (2 * p2 - 1)) ** 2  # of a bit that is 1 with probability"
        " 1 / 2\nVAR_Long_Pure(1 / 2, q1, p2, 1 - p2, f=1)",
        "4.68",
    ),
    Example(
        "multi-freq-ldpy",
        "IBU multiplies by the matrix where its transpose belongs: a matrix that is not symmetric,"
        " theta = (0.5, 0.5)",
        "from multi_freq_ldpy.estimators.Histogram_estimator import IBU",
        "matrix = np.array([[0.9, 0.1], [0.4, 0.6]])\n"
        "IBU(2, matrix, np.array([0.5, 0.5]) @ matrix, 10_000, 1e-12, 'max_abs')[0]",
        "0.5",
    ),
    Example(
        "ldp-toolbox",
        "estimates called unbiased are clipped and divided by their sum: 900 of 1,000 people have"
        " secret 0",
        "from ldp_toolbox.protocols.frequency.ue import UnaryEncoding\n"
        "theirs = UnaryEncoding(100, 1.0)\npeople = [0] * 900 + [1] * 100",
        "found = [theirs.estimate([theirs.obfuscate(x) for x in people])[0] for _ in"
        " range(50)]\nnp.mean(found)",
        "0.9",
    ),
    Example(
        "ldp-toolbox",
        "THE spends less than the level asked for, as the paper's does: the tight level of its"
        " reports at epsilon 1",
        "from ldp_toolbox.protocols.frequency.he import HistogramEncoding",
        "the = HistogramEncoding(10, 1.0)\nnp.log(the.p * (1 - the.q) / ((1 - the.p) * the.q))",
        "1",
    ),
]


@njit
def _seed_compiled(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002


def printed(example: Example) -> str:
    """The value of the last line, to three digits, or the error."""
    names: dict[str, Any] = {"np": np}
    seed_all(SEED)
    _seed_compiled(SEED)
    first, last = example.example.split("\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(f"{example.setup}\n{first}", names)
            value = eval(last, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return f"{float(value):.3g}"


def shown() -> pd.DataFrame:
    rows = [
        {
            "library": e.library,
            "what": e.what,
            "setup": e.setup,
            "example": e.example,
            "printed": printed(e),
        }
        | {"right": e.right}
        for e in EXAMPLES
    ]
    return pd.DataFrame(rows)


def transcript(table: pd.DataFrame) -> str:
    """The table as a text for readers.

    Each entry has what it is about, the set-up, two lines, what they printed, and what is right.
    """
    entries = []
    for row in table.itertuples():
        first, last = row.example.split("\n")
        about = textwrap.fill(
            f"{row.library}: {row.what}", 76, initial_indent="# ", subsequent_indent="# "
        )
        shown = [about, row.setup, f">>> {first}", f">>> {last}"]
        entries.append("\n".join([*shown, f"{row.printed}    # right: {row.right}"]))
    return "\n\n".join(entries) + "\n"
