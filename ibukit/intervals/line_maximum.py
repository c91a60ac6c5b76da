"""The least maximum of lines: the best multiplier of a bound by duality."""

from __future__ import annotations

from ibukit._ground.arguments import Floats

# Largest number of values of s that are tried, and the factor by which s grows until a rising line
# is the largest.
MAX_MEETINGS, GROWTH = 40, 4.0


def least_maximum(heights: Floats, slopes: Floats, s: float) -> float:
    """Return the least max_x heights_x + s slopes_x over s >= 0, or a number just above it.

    The search begins at `s`. Take a falling line that is the largest at a small s, and a rising
    line that is the largest at a larger s: the next s is where the two meet. This ends at the
    minimum of the convex function.
    """
    falling, rising = int(heights.argmax()), -1
    least = float(heights[falling])
    if slopes[falling] >= 0:
        return least
    for _ in range(MAX_MEETINGS):
        values = heights + s * slopes
        x = int(values.argmax())
        least = min(least, float(values[x]))
        # Where two lines meet, the minimum is reached if one of them is the largest line there.
        if slopes[x] == 0 or x == rising or (x == falling and rising >= 0):
            break
        if slopes[x] > 0:
            rising = x
        else:
            falling = x
            if rising < 0:
                s *= GROWTH
                continue
        s = float((heights[falling] - heights[rising]) / (slopes[rising] - slopes[falling]))
    return least
