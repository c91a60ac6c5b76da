"""What workers need by name: blocks of reports, and a mechanism that takes its worker with it."""

import os
import signal
from dataclasses import dataclass

import numpy as np

import ibukit as ik


@dataclass(frozen=True)
class Doomed(ik.Rappor):
    """RAPPOR; whoever asks for its channel while the file is there removes the file and dies."""

    alphabet: ik.Alphabet
    epsilon: float
    file: str

    def channel(self, reports):
        try:
            os.remove(self.file)
        except FileNotFoundError:
            return super().channel(reports)
        return os.kill(os.getpid(), signal.SIGKILL)


def draw(seed, n, k=40, epsilon=2.0):
    """Bit rows of n users, most of whom have one of ten secrets."""
    rng = np.random.default_rng(seed)
    secrets = np.minimum(rng.geometric(0.3, n) - 1, 9)
    return ik.Rappor(k, epsilon).randomize(secrets, rng)


def draw_anew(n):
    """A block that is another each time."""
    return draw(None, n)


def die_once(file, found):
    """An estimator's answer; the first time its worker dies of it."""
    try:
        os.remove(file)
    except FileNotFoundError:
        return found
    return os.kill(os.getpid(), signal.SIGKILL)
