"""The PRIVIC authors' functions on a small city;
their module reads its data when imported, so they are taken singly.

The first argument is the path of privic_functions.py in a checkout of github.com/blitzwas/PRIVIC,
commit 21a460cf.
"""

import ast
import contextlib
import io
import math
import sys
import time
from pathlib import Path

import numpy as np
from pyemd import emd

from foreign.inputs import BETA, CELLS, CITY_FREQUENCIES, HEIGHT, PRIOR, WIDTH
from foreign.record import sha256, write

COMMIT = "21a460cfbf102e9a3361daf16eae5502775b847f"
WANTED = ("PosToValParis", "BlahutArimotoParis", "IBU", "LaplaceBetter", "KWdist")


def functions(path):
    """The wanted functions of their file, for our city in the place of Paris."""
    tree = ast.parse(path.read_text("utf8"))
    tree.body = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in WANTED
    ]
    city = {
        "X_paris_lat": np.arange(HEIGHT),
        "X_paris_long": np.arange(WIDTH),
        "N_X_paris": len(CELLS),
    }
    theirs = {"np": np, "math": math, "time": time, "emd": emd} | city
    exec(compile(tree, path.name, "exec"), theirs)
    return [theirs[name] for name in WANTED[1:]]


if len(sys.argv) < 2:
    sys.exit(
        "name privic_functions.py: git clone https://github.com/blitzwas/PRIVIC, then make foreign"
        " PRIVIC=..."
    )
file = Path(sys.argv[1])
blahut_arimoto, ibu, laplace, distance = functions(file)
k = len(CELLS)
flat = np.full(k, 1 / k)
wide = np.array([(i, j) for i in range(-2, HEIGHT + 2) for j in range(-2, WIDTH + 2)])
with contextlib.redirect_stdout(io.StringIO()):  # they print each step
    channel = blahut_arimoto(np.full((k, k), 1 / k), PRIOR, BETA, 8)
    noise = laplace(BETA, CELLS, CELLS)
    answers = {
        "sha256 of privic_functions.py": sha256(file),
        "Blahut-Arimoto, 8 steps": channel,
        "Laplace": noise,
        "Laplace, wide": laplace(BETA, CELLS, wide),
        "IBU, 10 steps": ibu(flat, CITY_FREQUENCIES, channel, 10, CELLS, CELLS)[1],
        "IBU of Laplace, 10 steps": ibu(flat, CITY_FREQUENCIES, noise, 10, CELLS, CELLS)[1],
        "distance": distance(CELLS, CELLS, PRIOR, CITY_FREQUENCIES),
    }
write("privic", "PRIVIC, the authors' program", COMMIT[:8], answers)
