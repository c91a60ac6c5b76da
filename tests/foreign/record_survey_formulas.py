"""Survey designs by the formulas of R's packages and of papers, in exact fractions.

R is not run. The formulas were read in the packages' sources and in the papers, and are written
here anew; every estimate and variance is a fraction until its last square root. So this is another
computation than the likelihood of `ibukit`, but not what a program printed.
"""

from fractions import Fraction
from math import sqrt

from scipy.stats import norm, t

from foreign.record import write

Z95 = float(norm.ppf(0.975))


def answer(source, design, data, estimate, variance, quantile=Z95):
    """One record: the estimate, its standard error, and its interval of level 95 %."""
    value, error = float(estimate), sqrt(variance)
    ends = [max(0.0, value - quantile * error), min(1.0, value + quantile * error)]
    return {
        "source": source,
        "design": design,
        "data": data,
        "estimate": value,
        "standard_error": error,
        "interval": ends,
    }


def rate(counts):
    """The share of the second report, and its variance."""
    n = sum(counts)
    share = Fraction(counts[1], n)
    return share, share * (1 - share) / n


def line(source, design, counts, slope, intercept):
    """A design with one sample, of which the estimate is slope * share + intercept."""
    share, variance = rate(counts)
    return answer(source, design, counts, slope * share + intercept, slope**2 * variance)


def two_lines(source, design, samples, weights, intercept):
    """A design with two samples, of which the estimate is a weighted sum of the shares."""
    (one, v1), (two, v2) = map(rate, samples)
    value = weights[0] * one + weights[1] * two + intercept
    return answer(source, design, samples, value, weights[0] ** 2 * v1 + weights[1] ** 2 * v2)


def moments(counts, values):
    """The mean of numbers that were seen so often, and the variance of the mean."""
    n = sum(counts)
    mean = Fraction(sum(c * v for c, v in zip(counts, values, strict=True)), n)
    square = Fraction(sum(c * v * v for c, v in zip(counts, values, strict=True)), n)
    return mean, (square - mean**2) / n


def weighted(source, p, strata):
    """Warner's design in strata: svymean of the transformed reports, with replacement.

    Its interval has the degrees of freedom `degf`, people less strata.
    """
    rows = [
        (h, Fraction(weight), (yes - (1 - p)) / (2 * p - 1))
        for h, (weight, counts) in enumerate(strata)
        for yes, count in enumerate(counts)
        for _ in range(count)
    ]
    total = sum(weight for _, weight, _ in rows)
    mean = sum(weight * value for _, weight, value in rows) / total
    variance = Fraction(0)
    for h, (_, counts) in enumerate(strata):
        n = sum(counts)
        of = [weight * (value - mean) / total for stratum, weight, value in rows if stratum == h]
        variance += Fraction(n, n - 1) * sum((each - sum(of) / n) ** 2 for each in of)
    return answer(
        source,
        ["Warner", {"p": float(p)}],
        strata,
        mean,
        variance,
        float(t.ppf(0.975, len(rows) - len(strata))),
    )


def records():
    """All of them, by name."""
    rrreg = "RRreg 0.7.4, R/RRuni.models.R"
    third, quarter, half = Fraction(1, 3), Fraction(1, 4), Fraction(1, 2)
    p1, p2 = Fraction(1, 6), Fraction(2, 3)
    width = p2 - p1
    (control, v0), (treatment, v1) = (
        moments([60, 140, 120, 80], range(4)),
        moments([40, 110, 120, 90, 40], range(5)),
    )
    often, spread = moments([375, 275, 225, 125], range(4))
    cards, _ = moments([520, 360, 120], [Fraction(0), half, Fraction(1)])
    kuk = (cards - Fraction(1, 5)) / Fraction(2, 5)
    phi = kuk * Fraction(3, 5) + (1 - kuk) * Fraction(1, 5)
    pair = {"p": [float(p1), float(p2)]}
    return {
        "Warner": line(
            rrreg, ["Warner", {"p": 0.7}], [65, 60], 1 / Fraction(2, 5), -Fraction(3, 4)
        ),
        "crosswise": line(
            rrreg, ["Crosswise", {"p": 0.25}], [430, 570], -Fraction(2), Fraction(3, 2)
        ),
        "forced response": line(
            rrreg,
            ["ForcedResponse", {"p_no": 0.1, "p_yes": 0.2}],
            [600, 400],
            1 / Fraction(7, 10),
            -Fraction(2, 7),
        ),
        "unrelated question": line(
            rrreg,
            ["UnrelatedQuestion", {"p": 2 / 3, "share": 0.25}],
            [700, 300],
            Fraction(3, 2),
            -third * quarter * Fraction(3, 2),
        ),
        "Mangat": line(
            "Mangat 1994 (RRreg 0.7.4 has n - 1)",
            ["Mangat", {"p": 0.7}],
            [500, 500],
            Fraction(10, 7),
            -Fraction(3, 7),
        ),
        "Kuk, one card": line(
            rrreg, ["Kuk", {"p_no": 0.2, "p_yes": 0.6}], [650, 350], Fraction(5, 2), -half
        ),
        "Kuk, two cards": answer(
            rrreg,
            ["Kuk", {"p_no": 0.2, "p_yes": 0.6, "cards": 2}],
            [520, 360, 120],
            kuk,
            phi * (1 - phi) / (2 * 1000 * Fraction(2, 5) ** 2) + half * kuk * (1 - kuk) / 1000,
        ),
        "triangular": line(
            "Yu, Tian and Tang 2008",
            ["Triangular", {"p": 0.25}],
            [600, 400],
            Fraction(4, 3),
            -third,
        ),
        "unrelated question, unknown share": two_lines(
            rrreg,
            ["UnrelatedQuestion", {"p": [0.75, 0.25]}],
            [[620, 380], [450, 350]],
            [Fraction(3, 2), -half],
            Fraction(0),
        ),
        "cheating detection": two_lines(
            rrreg,
            ["CheatingDetection", pair],
            [[650, 350], [350, 450]],
            [p2 / width, -p1 / width],
            Fraction(0),
        ),
        "lie detector": two_lines(
            rrreg,
            ["StochasticLieDetector", pair],
            [[400, 600], [500, 300]],
            [-1 / width, 1 / width],
            Fraction(1),
        ),
        "item count": answer(
            "Blair and Imai 2012, the difference of means",
            ["ItemCount", {"items": 3}],
            [[60, 140, 120, 80], [40, 110, 120, 90, 40]],
            treatment - control,
            v0 + v1,
        ),
        "scrambled numbers": answer(
            "Eriksson 1973, the mean of the secrets",
            ["ScrambledResponse", {"alphabet": 4, "numbers": [0, 1, 2, 3], "p": 0.5}],
            [375, 275, 225, 125],
            (often - half * Fraction(3, 2)) / half,
            spread / half**2,
        ),
        "Warner, weighted in strata": weighted(
            "Lumley 2010, svymean of (report - (1 - p)) / (2 p - 1)",
            Fraction(7, 10),
            [[6, [60, 40]], [3, [50, 70]], [1, [30, 50]]],
        ),
    }


if __name__ == "__main__":
    write("survey_formulas", "RRreg, its formulas and others", "0.7.4", records())
