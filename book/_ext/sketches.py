"""One small drawing for each chapter: its idea in a few strokes, coloured by the style sheet in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

WIDTH, HEIGHT, FLOOR = 120, 54, 48
HEIGHTS = (4, 8, 17, 29, 38, 35, 30, 27, 20, 13, 8, 5)  # a distribution that all of them share


def _line(points: Iterable[tuple[float, float]], kind: str = "a") -> str:
    path = " ".join(f"{'L' if i else 'M'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path class="{kind}" d="{path}"/>'


def _bars(
    heights: Iterable[float], kind: str = "grey", left: float = 8, step: float = 9, width: float = 6
) -> str:
    rects = (
        f'<rect class="{kind}" x="{left + i * step:.1f}" y="{FLOOR - h:.1f}" width="{width}" height="{h:.1f}"/>'
        for i, h in enumerate(heights)
    )
    return "".join(rects)


def _dots(points: Iterable[tuple[float, float]], kind: str = "b-fill", radius: float = 2.5) -> str:
    return "".join(
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in points
    )


def _curve(
    height: Callable[[float], float], kind: str = "a", left: float = 8, right: float = 112
) -> str:
    xs = [left + (right - left) * i / 32 for i in range(33)]
    return _line([(x, FLOOR - height(x)) for x in xs], kind)


def _bell(centre: float, width: float, top: float) -> Callable[[float], float]:
    return lambda x: top * math.exp(-(((x - centre) / width) ** 2))


def _cells(
    shades: Iterable[float], columns: int, left: float, side: float = 9, top: float = 4
) -> str:
    return "".join(
        f'<rect class="a-fill" opacity="{0.12 + 0.85 * s:.2f}" x="{left + (i % columns) * (side + 1):.1f}" '
        f'y="{top + (i // columns) * (side + 1):.1f}" width="{side}" height="{side}"/>'
        for i, s in enumerate(shades)
    )


def _triangle() -> str:
    return _line([(32, FLOOR), (88, FLOOR), (60, 5), (32, FLOOR)], "thin")


def _smooth(scale: float = 1) -> Callable[[float], float]:
    return lambda x: scale * (_bell(46, 20, 36)(x) + _bell(76, 20, 20)(x))


def _interval(x: float, low: float, high: float, kind: str = "b") -> str:
    return _line([(x, low), (x, high)], kind) + _line([(x - 3, low), (x + 3, low)], kind)


def _axis() -> str:
    return _line([(6, FLOOR), (114, FLOOR)], "thin")


_MAP = (0.1, 0.2, 0.1, 0, 0, 0.3, 0.8, 0.5, 0.2, 0, 0.2, 0.6, 1, 0.7, 0.2, 0, 0.3, 0.6, 0.9, 0.4)
_BLUR = (
    0.3,
    0.4,
    0.3,
    0.2,
    0.2,
    0.4,
    0.5,
    0.5,
    0.4,
    0.2,
    0.3,
    0.5,
    0.6,
    0.5,
    0.3,
    0.2,
    0.4,
    0.5,
    0.5,
    0.3,
)
_KERNEL = [math.exp(-abs(i % 4 - i // 4)) for i in range(16)]

SKETCHES = {
    "start-here": '<path class="a" d="M17 28a17 17 0 1 0 34 0a17 17 0 1 0-34 0"/>'
    + _line([(34, 18), (34, 38)], "thin")
    + _line([(58, 28), (68, 28)], "thin")
    + _bars((36, 18), "a-fill", 78, 18, 13),
    "ages": _axis() + _bars(HEIGHTS) + _curve(_smooth()),
    "mechanisms": _cells(_KERNEL, 4, 40, 10),
    "consistency": _axis()
    + _curve(lambda x: 40 * math.sqrt(8 / x), "a")
    + _dots([(20, 22), (45, 31), (80, 36), (108, 37)]),
    "concavity": _triangle()
    + _line([(46, 44), (74, 44)], "a wide")
    + _line([(60, 12), (60, 34)], "b"),
    "rappor-reports": _axis()
    + _curve(lambda x: 40 / (1 + math.exp((46 - x) / 6)), "a")
    + _curve(lambda x: 40 / (1 + math.exp((74 - x) / 6)), "b"),
    "counterexamples": _triangle()
    + _line([(44, 30), (74, 40)], "a wide")
    + _dots([(44, 30), (74, 40)]),
    "fixed-points": _triangle()
    + _dots([(60, 28)], "b-fill", 4)
    + _dots([(60, 6), (32, FLOOR), (88, FLOOR)]),
    "inv-bounds": _axis()
    + _line([(8 + 9.5 * i, 28 + (-1) ** i * (4 + 1.4 * i)) for i in range(12)], "b")
    + _line([(8, 28), (112, 28)], "thin"),
    "inv-repaired": _axis()
    + _line([(8, 12), (112, 48)], "b")
    + _line([(8, 34), (60, 38), (112, 48)], "a"),
    "comparison": _axis()
    + _bars((8, 10, 9, 12, 8, 11), "a-fill", 10, 17)
    + _bars((30, 36, 22, 40, 26, 34), "b-fill", 17, 17),
    "stopping": _axis()
    + _curve(lambda x: 8 + 34 * ((x - 50) / 60) ** 2)
    + _dots([(50, FLOOR - 8)], "b-fill", 3.5),
    "how-sure": _line([(8, 28), (112, 28)], "dash")
    + "".join(
        _interval(14 + 13 * i, low, low + 26, "a" if i != 5 else "b")
        for i, low in enumerate((16, 12, 20, 14, 9, 30, 17, 13))
    ),
    "how-many-people": "".join(
        _dots([(x, 18)], kind, 5) + f'<path class="{kind}" d="M{x - 8} 44a8 15 0 0 1 16 0z"/>'
        for x, kind in ((30, "a-fill"), (50, "a-fill"), (70, "a-fill"), (90, "grey"))
    ),
    "free-will": _axis()
    + _curve(_bell(40, 12, 38), "a")
    + _curve(_bell(60, 22, 24), "b")
    + _curve(_bell(80, 30, 15), "c"),
    "free-will-measured": _axis()
    + _line([(10, 14), (40, 24), (75, 34), (110, 42)], "a")
    + _line([(10, 10), (40, 16), (75, 22), (110, 25)], "b"),
    "protocols": _curve(_bell(32, 14, 16), "thin")
    + _bars((30, 12, 12, 12), "a-fill", 10, 9)
    + _cells((1, 0, 0, 1, 0, 1, 1, 0), 4, 74, 8, 14),
    "optimal-estimators": _axis()
    + _curve(lambda x: 42 * 14 / (x + 6), "a")
    + _line([(8, 38), (112, 38)], "dash"),
    "optimal-estimators-measured": _axis()
    + _bars((38, 30, 24, 15, 11), "b-fill", 14, 19, 12)
    + _line([(8, 26), (112, 26)], "dash"),
    "shokri": _line([(10, FLOOR), (60, 12), (112, 12)])
    + _line([(60, FLOOR), (60, 12)], "thin")
    + _axis(),
    "silent-designs": _line([(30, 10), (60, 44)], "thin")
    + _line([(90, 10), (60, 44)], "thin")
    + _line([(60, 10), (60, 40)], "thin")
    + _dots([(30, 8), (60, 8), (90, 8)])
    + _dots([(60, 44)], "b-fill", 5),
    "privic": _cells(_MAP, 5, 8) + _line([(61, 24), (68, 24)], "thin") + _cells(_BLUR, 5, 71),
    "privic-measured": _axis()
    + _line([(10 + 14 * i, FLOOR - 38 * 0.6**i) for i in range(8)])
    + _dots([(10 + 14 * i, FLOOR - 38 * 0.6**i) for i in range(8)]),
    "attack": _cells(_MAP, 5, 36) + _dots([(100, 16)], "b-fill", 6),
    "geometric-noise": _axis() + _bars([40 * 0.62 ** abs(i - 5) for i in range(11)], "a-fill", 10),
    "better-noise": _axis()
    + _line([(8, 8), (30, 30), (60, 44), (112, 46)])
    + _line([(8, 34), (60, 44), (112, 46)], "b"),
    "infinite-alphabets": _line([(0, FLOOR), (120, FLOOR)], "dash")
    + _bars((9, 20, 33, 26, 14, 7), "a-fill", 34),
    "your-own-data": '<rect class="grey" x="14" y="8" width="34" height="40" rx="3"/>'
    + "".join(_line([(19, y), (43, y)], "thin") for y in (16, 24, 32, 40))
    + _line([(54, 28), (64, 28)], "b")
    + _bars((14, 32, 22, 10), "a-fill", 72, 10, 7),
    "what-to-run": _line([(60, 8), (60, 18), (32, 18), (32, 28)], "thin")
    + _line([(60, 18), (88, 18), (88, 28)], "thin")
    + _dots([(60, 8)], "b-fill", 5)
    + '<rect class="a-fill" x="18" y="29" width="28" height="15" rx="3"/>'
    + '<rect class="a-fill" x="74" y="29" width="28" height="15" rx="3"/>',
    "fast-ibu": _axis()
    + _curve(lambda x: 42 * 20 / (x + 12), "b")
    + _line([(8, 12), (20, 30), (30, 44), (34, 47)]),
}


def sketch(name: str) -> str:
    """The drawing of a chapter, as a picture that screen readers pass over."""
    return f'<svg class="sketch" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{SKETCHES[name]}</svg>'
