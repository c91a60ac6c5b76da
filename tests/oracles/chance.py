"""What chance makes of the deviance, summed term by term. This file may not import ibukit."""

import math


def expected_deviance_term(mean):
    """E[2 C log(C / mean) given C >= 1] for a Poisson C, by adding up its probabilities."""
    most = int(mean + 40 * math.sqrt(mean) + 60)
    total, seen = 0.0, -math.expm1(-mean)
    for count in range(1, most):
        log_probability = count * math.log(mean) - mean - math.lgamma(count + 1)
        total += math.exp(log_probability) * 2 * count * math.log(count / mean)
    return total / seen


def expected_deviance(matrix, counts, theta):
    """The sum over the reports seen of what each adds on average,
    less one for the sum of the counts.
    """
    n = sum(counts)
    return (
        sum(
            expected_deviance_term(n * p)
            for p, count in zip(theta @ matrix, counts, strict=True)
            if count
        )
        - 1
    )
