"""A few SVG parts, enough for the page's charts: elements, scales, axes, lines and bands.

Colors and type sizes are the style sheet's: parts carry classes only, so that one drawing serves light, dark and paper.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 340.0, 216.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 16.0, 22.0, 40.0

SEPARATORS = "_./:"
FLOOR = HEIGHT - BOTTOM

Point = tuple[float | None, float | None]
Form = Callable[[float], str]
plain: Form = "{:g}".format


def coordinate(value: float) -> str:
    """
    >>> coordinate(1.04), coordinate(-0.01), coordinate(20.0)
    ('1', '0', '20')
    """
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def percent(value: float) -> str:
    return f"{100 * value:g}%"


def breakable(name: str) -> Markup:
    """A name that may be broken after its separators, or else after 20 letters, as the long names of columns must be.

    >>> breakable("a_b<c")
    Markup('a_<wbr>b&lt;c')
    """
    return Markup("<wbr>").join(re.findall(rf"[^{SEPARATORS}]{{1,20}}[{SEPARATORS}]?|[{SEPARATORS}]", name))


def signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def tag(name: str, *children: str, **attributes: str | float) -> Markup:
    """An element; whatever is not markup yet is escaped. `class_` and `data_x` are class and data-x.

    >>> tag("text", "a < b", x=1.25, class_="tick")
    Markup('<text x="1.2" class="tick">a &lt; b</text>')
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value if isinstance(value, str) else coordinate(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{join(children)}</{name}>")  # every part has been escaped above


def join(parts: Iterable[str]) -> Markup:
    return Markup("").join(parts)


def picture(name: str, title: str, description: str, *parts: str, height: float = HEIGHT) -> Markup:
    """A drawing that a screen reader announces by its title and description."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", description, id=f"{name}-description"),
        *parts,
        role="img",
        aria_labelledby=f"{name}-title {name}-description",
        viewBox=f"0 0 {coordinate(WIDTH)} {coordinate(height)}",
        class_="chart",
    )


@dataclass(frozen=True)
class Scale:
    """Data to coordinates, linearly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, about: int) -> list[float]:
        """Round numbers inside the scale, 1, 2, 2.5 or 5 times a power of ten apart.

        >>> Scale(0, 1, 0, 100).ticks(5)
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        decimals = max(0, 1 - math.floor(math.log10(step)))
        return [round(k * step, decimals) for k in range(first, last + 1)]


def horizontal(low: float, high: float, left: float = LEFT) -> Scale:
    return Scale(low, high, left, WIDTH - RIGHT)


def vertical(low: float, high: float, height: float = HEIGHT) -> Scale:
    return Scale(low, high, height - BOTTOM, TOP)


def padded_range(values: Sequence[float], margin: float = 0.05) -> tuple[float, float]:
    """The smallest and the largest value with some room; never of length zero.

    >>> padded_range([1.0, 3.0], margin=0.5), padded_range([2.0])
    ((0.0, 4.0), (1.5, 2.5))
    """
    low, high = min(values), max(values)
    if low == high:
        return low - 0.5, high + 0.5
    return low - margin * (high - low), high + margin * (high - low)


def x_axis(x: Scale, label: str, form: Form, bottom: float) -> Markup:
    """A base line, its ticks below and a title below these."""
    marks = [
        tag("line", x1=x(tick), x2=x(tick), y1=bottom, y2=bottom + 4, class_="axis")
        + tag("text", form(tick), x=x(tick), y=bottom + 16, class_="tick middle")
        for tick in x.ticks(5)
    ]
    base = tag("line", x1=x.start, x2=x.end, y1=bottom, y2=bottom, class_="axis")
    return join([base, *marks, tag("text", label, x=(x.start + x.end) / 2, y=bottom + 33, class_="label middle")])


def y_axis(y: Scale, label: str, form: Form | None, left: float) -> Markup:
    """Rules across, numbers at the left (none where `form` is None) and a title above, never turned sideways."""
    title = tag("text", label, x=0, y=10, class_="label")
    if form is None:
        return title
    rules = [
        tag("line", x1=left, x2=WIDTH - RIGHT, y1=y(tick), y2=y(tick), class_="rule")
        + tag("text", form(tick), x=left - 6, y=y(tick) + 4, class_="tick end")
        for tick in y.ticks(4)
    ]
    return join([title, *rules])


def plot(
    name: str,
    title: str,
    description: str,
    y: tuple[Scale, str, Form | None],
    x: tuple[Scale, str, Form],
    *parts: str,
    height: float = HEIGHT,
) -> Markup:
    """Parts between two axes, each given as its scale, its title and how its numbers are written."""
    above, below = y_axis(*y, x[0].start), x_axis(*x, height - BOTTOM)
    return picture(name, title, description, above, *parts, below, height=height)


def line(points: Iterable[Point], class_: str) -> Markup:
    """A line through the known points; it breaks where a value is missing."""
    steps, pen = [], "M"
    for x, y in points:
        if x is None or y is None:
            pen = "M"
            continue
        steps.append(pen + _pair(x, y))
        pen = "L"
    return tag("path", d="".join(steps), class_=class_) if steps else Markup("")


def band(points: Iterable[tuple[float | None, float | None, float | None]], class_: str) -> Markup:
    """The area between two lines, x with a lower and an upper end; one piece for every unbroken run."""
    pieces: list[list[tuple[float, float, float]]] = [[]]
    for x, low, high in points:
        if x is None or low is None or high is None:
            pieces.append([])
        else:
            pieces[-1].append((x, low, high))
    outlines = [
        [_pair(x, low) for x, low, _ in piece] + [_pair(x, high) for x, _, high in reversed(piece)]
        for piece in pieces
        if len(piece) > 1
    ]
    return tag("path", d="".join(f"M{'L'.join(each)}Z" for each in outlines), class_=class_) if outlines else Markup("")


def _pair(x: float, y: float) -> str:
    return f"{coordinate(x)} {coordinate(y)}"
