"""What may come of a call: a right answer, or an error that names the argument;
within its time, and without a NaN.
"""

import faulthandler
import math
import re
import signal
import threading
import warnings
from contextlib import contextmanager
from dataclasses import fields, is_dataclass

import numpy as np
import pandas as pd

import ibukit as ik

SECONDS = 60
# in units of these seconds; what waits takes no processor time
LIMITS = {signal.SIGPROF: 1, signal.SIGALRM: 10}
# sums of rounding errors of a few hundred terms
ROUNDING = 1e-9
# what a NaN means there is written in its docstring
NAN_IS_SAID = {"log_evidence", "r_hat", "effective_sample_size"}


class Unclear(AssertionError):
    """Neither a right answer nor a clear error."""


class TooSlow(BaseException):
    """No answer in time: not an Exception,
    so that nothing in between takes it for one of its own.
    """


@contextmanager
def watched(seconds=SECONDS):
    """Interrupt after so many seconds of processor time, on a busy machine too,
    or ten times as many by the clock.

    Where compiled code does not listen, print where it is and end the process.
    """

    def ring(number, _):
        of = "of processor time" if number == signal.SIGPROF else "by the clock"
        raise TooSlow(f"no answer after {LIMITS[number] * seconds} s {of}")

    before = {number: signal.signal(number, ring) for number in LIMITS}
    signal.setitimer(signal.ITIMER_PROF, LIMITS[signal.SIGPROF] * seconds)
    signal.setitimer(signal.ITIMER_REAL, LIMITS[signal.SIGALRM] * seconds)
    faulthandler.dump_traceback_later(2 * LIMITS[signal.SIGALRM] * seconds, exit=True)
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        faulthandler.cancel_dump_traceback_later()
        for number, handler in before.items():
            signal.signal(number, handler)


def outcome(call):
    """The answer, or the exception."""
    try:
        return call()
    except Exception as error:
        return error


def outcomes(calls, seconds=SECONDS):
    """What comes of each call, all of them in threads at the same time where there are several."""
    found = [TooSlow("not finished")] * len(calls)

    def run(index):
        found[index] = outcome(calls[index])

    # a warning of numpy is what nobody wanted; other warnings are for the caller, and are no
    # failure
    with warnings.catch_warnings(), watched(seconds):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        if len(calls) == 1:
            run(0)
        else:
            threads = [
                threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(calls))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    return found


def check_error(error, arguments):
    """A named error, or one of wrong values,
    wrong types or a file that is not there, which names an argument.
    """
    if isinstance(error, ik.IbukitError):
        if isinstance(error, ik.ConvergenceError) and isinstance(error.estimate, ik.Estimate):
            check_answer(error.estimate)
        return
    if not isinstance(error, (ValueError, TypeError, FileNotFoundError)):
        raise Unclear(f"{type(error).__name__}: {error}") from error
    words = set(re.findall(r"\w+", str(error)))
    if not words & set(arguments):
        raise Unclear(
            f"{type(error).__name__} names none of {sorted(arguments)}: {error}"
        ) from error


def check_answer(answer, where="answer", depth=0):
    """No NaN in it; an estimate is a distribution, and nothing beats it by more than its gap."""
    if isinstance(answer, ik.Estimate):
        check_estimate(answer)
    if isinstance(answer, (float, np.floating)) and math.isnan(answer):
        raise Unclear(f"{where} is NaN")
    if isinstance(answer, (pd.DataFrame, pd.Series)):
        answer = (
            answer.select_dtypes("number").to_numpy()
            if isinstance(answer, pd.DataFrame)
            else answer.to_numpy()
        )
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and np.isnan(answer).any():
        raise Unclear(f"{where} has NaN: {answer}")
    if isinstance(answer, (tuple, list)) and depth < 3:
        for index, each in enumerate(answer[:20]):
            check_answer(each, f"{where}[{index}]", depth + 1)
    if is_dataclass(answer) and not isinstance(answer, type) and depth < 2:
        for each in fields(answer):
            if not each.name.startswith("_") and each.name not in NAN_IS_SAID:
                found = outcome(lambda name=each.name: getattr(answer, name, None))
                if isinstance(
                    found, Exception
                ):  # as the values of a line without an end, which no one can list
                    check_error(found, ())
                check_answer(found, f"{where}.{each.name}", depth + 1)


def check_estimate(estimate):
    """On the simplex, unless it says that it is not; certified."""
    theta = np.asarray(estimate.distribution)
    if not np.isfinite(theta).all():
        raise Unclear(f"the estimate is not finite: {theta}")
    if estimate.status is ik.Status.OFF_SIMPLEX:
        return
    # where reports get lost, probabilities of a secret are those of all secrets, and still sum to 1
    if (theta < 0).any() or abs(theta.sum() - 1) > ROUNDING:
        raise Unclear(f"the estimate is no distribution: {theta}, sum {theta.sum()!r}")
    if not estimate.gap >= 0:
        raise Unclear(f"the gap is {estimate.gap}")
    tally = getattr(estimate, "tally", None)
    if tally is not None and math.isfinite(estimate.gap) and len(theta) == tally.k:
        check_gap(estimate, tally)


def check_gap(estimate, tally):
    """No other distribution has a mean log-likelihood above that
    of the estimate by more than the gap.
    """
    theta = np.asarray(estimate.distribution)
    seen = tally.counts > 0
    q = tally.frequencies[seen]

    def level(p):
        with np.errstate(divide="ignore"):
            return float(q @ np.log(tally.forward(p)[seen]))

    k = len(theta)
    rivals = [np.full(k, 1 / k), np.eye(k)[int(theta.argmax())], np.eye(k)[int(theta.argmin())]]
    rivals += [(theta + rival) / 2 for rival in rivals]
    rivals += list(np.random.default_rng(k).dirichlet(np.full(k, 0.5), 3))
    own = level(theta)
    for rival in rivals:
        other = level(rival)
        if other > own + estimate.gap + ROUNDING * max(1.0, abs(own)):
            raise Unclear(
                f"{rival} has a mean log-likelihood of {other}, the estimate {own} and a gap"
                f" {estimate.gap}"
            )


def close(one, other):
    """Whether two answers are the same but for rounding, which depends on the order of sums."""
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    if isinstance(one, ik.Estimate):
        return np.allclose(one.distribution, other.distribution, rtol=1e-6, atol=1e-6)
    if isinstance(one, (np.ndarray, float)) and np.asarray(one).dtype.kind in "iuf":
        return np.allclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True)
    return type(one) is type(other)


def same(one, other):
    """Whether two threads were told the same: the same numbers, or errors of the same type."""
    if isinstance(one, Exception) or isinstance(other, Exception):
        return type(one) is type(other)
    if isinstance(one, ik.Estimate):
        return np.array_equal(one.distribution, other.distribution) and one.gap == other.gap
    if isinstance(one, np.ndarray) and one.dtype.kind in "iuf":
        return np.array_equal(one, other)
    if isinstance(one, (int, float, str)):
        return one == other
    return type(one) is type(other)
