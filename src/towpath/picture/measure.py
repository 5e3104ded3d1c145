"""How wide text is, and where it is folded.

The widths are Helvetica's, which Arial and Liberation Sans share. A viewer with
another font squeezes each line to the width we reckon with (`textLength`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

Measure = Callable[[str], float]
LONGEST: Final = 2000
"""Of a longer text, the rest could not be seen anyway."""
WIDE: Final = {"W", "F"}
# Per mille of the size, for the characters from the space to the tilde.
WIDTHS: Final = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip
PIECES: Final = re.compile(
    r"\s+|[A-Z]+[^\sA-Z_\-./:]*[_\-./:]*|[^\sA-Z_\-./:]+[_\-./:]*|[_\-./:]+"
)
"""Where lines may break: after words, parts of names, and before humps."""
DOTS: Final = "…"


def cells(char: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in WIDE else 1


def columns(text: str) -> int:
    return sum(map(cells, text))


def width(text: str, size: float) -> float:
    """The width of a line in a font of this size."""
    total = 0
    for char in text:
        index = ord(char) - 32
        if 0 <= index < len(WIDTHS):
            total += WIDTHS[index]
        else:
            total += (0, 640, 1000)[cells(char)]
    return total * size / 1000


def plain(text: object) -> str:
    """One line without what no document may hold or what turns text around."""
    return fit(" ".join(str(text).split()))


def fit(line: str) -> str:
    """A line with a sign in the place of what no document may hold."""
    if line.isprintable():
        return line
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unfit(char) else char for char in line
    )


def unfit(char: str) -> bool:
    """Whether XML forbids a character, or it reorders its neighbours."""
    return (
        unicodedata.category(char) in {"Cc", "Cs", "Cn"}
        or char in "\ufffe\uffff"
        or "\u202a" <= char <= "\u202e"
        or "\u2066" <= char <= "\u2069"
    )


def sized(size: float) -> Measure:
    """The measure of lines in a font of this size."""
    return lambda text: width(text, size)


def cut(text: str, measure: Measure, room: float) -> str:
    """A line that fits, with dots in place of what does not."""
    if measure(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle] + DOTS) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low] + DOTS


def folded(text: str, measure: Measure, room: float, most: int) -> tuple[str, ...]:
    """Text in at most so many lines, broken where words end if that is possible."""
    lines = [""]
    for piece in PIECES.findall(plain(text)[:LONGEST]):
        for part in pieces(piece, measure, room):
            if measure(lines[-1] + part.rstrip()) > room and lines[-1]:
                lines.append(part.lstrip())
            else:
                lines[-1] += part
    lines = [line.strip() for line in lines]
    if len(lines) > most:
        rest = cut(" ".join(lines[most - 1 :]), measure, room)
        lines = [*lines[: most - 1], rest]
    return tuple(lines)


def pieces(text: str, measure: Measure, room: float) -> list[str]:
    """A word, in parts if it is wider than a line."""
    parts = [""]
    for char in text:
        if parts[-1] and measure(parts[-1] + char) > room:
            parts.append("")
        parts[-1] += char
    return parts
