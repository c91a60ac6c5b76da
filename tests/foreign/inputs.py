"""The inputs that every program is given:
whole numbers and closed formulas, so that nothing has to be recorded.
"""

import numpy as np

# 4 secrets, 5 reports, not symmetric: a program that takes a matrix for its transpose cannot hide
# it
MATRIX = np.array([[9, 4, 3, 2, 2], [3, 8, 4, 4, 1], [2, 3, 9, 3, 3], [1, 2, 3, 6, 8]]) / 20
COUNTS = np.array([310, 240, 230, 120, 100])
FREQUENCIES = COUNTS / COUNTS.sum()
ANY = np.array([4, 3, 2, 1]) / 10

# two secrets, where the wrong side of the same matrix gives another answer in the first digit
TWO = np.array([[0.9, 0.1], [0.4, 0.6]])
TWO_FREQUENCIES = np.array([0.65, 0.35])

# geometric noise on 0..11, cut at the ends; nobody is at the ends, so the likelihood is greatest
# where some are 0
LINE = 12
LINE_EPSILON = 0.5
DECAY = np.exp(-LINE_EPSILON)
LINE_MATRIX = (
    DECAY ** abs(np.subtract.outer(np.arange(LINE), np.arange(LINE))) * (1 - DECAY) / (1 + DECAY)
)
LINE_MATRIX[:, [0, -1]] /= 1 - DECAY
LINE_COUNTS = np.array([60, 45, 70, 130, 160, 125, 90, 95, 110, 60, 30, 25])

# protocols: 6 secrets, the reports of 600 people by whole numbers, and the levels
SECRETS = 6
EPSILON = 1.5
SIX = np.array([30, 25, 20, 10, 10, 5]) / 100
REPORTS = np.repeat(np.arange(SECRETS), [220, 130, 90, 70, 60, 30])
NOISE = (np.arange(600)[:, None] * 37 + 1) * (np.arange(SECRETS) + 2) % 11
OWN = REPORTS[:, None] == np.arange(SECRETS)
BITS = (np.where(OWN, 8, 3) > NOISE).astype(int)  # own 8 of 11, others 3 of 11
SUBSET = max(1, int(np.rint(SECRETS / (np.exp(EPSILON) + 1))))

# a city of 3 x 4 cells of one kilometre
HEIGHT, WIDTH = 3, 4
CELLS = np.array([(i, j) for i in range(HEIGHT) for j in range(WIDTH)])
PRIOR = np.array([6, 1, 12, 9, 7, 20, 15, 5, 3, 8, 10, 4]) / 100
BETA = 0.8
CITY_FREQUENCIES = np.array([7, 3, 11, 9, 8, 16, 14, 6, 4, 8, 9, 5]) / 100

# one secret each, so many draws
DRAWS = 100_000
