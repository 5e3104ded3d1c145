"""SVG text -> PNG, with resvg: a renderer in Rust whose wheels need nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from towpath.errors import TowpathError

PIXELS_MAX: Final = 64_000_000
PROBE: Final = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'
SIGN: Final = '<text x="2" y="16" font-family="{}">W</text>'
Fonts = Sequence[str | PathLike[str]]


class DrawingError(TowpathError, ValueError):
    """A graph cannot be drawn in this form here."""

    code = "TP-612"


def png(
    svg: str, size: tuple[float, float], scale: float, fonts: Fonts, family: str
) -> bytes:
    """Draw SVG of this size in PNG; `fonts` are font files, before the system's.

    Raises:
        DrawingError: the renderer is not installed, there is no font, or a font
            file cannot be read (TP-612).
    """
    files = tuple(fspath(one) for one in fonts)
    for one in files:
        if not Path(one).is_file():
            raise DrawingError(f"there is no font file `{one}`")
    render = renderer()
    if not has_font(files, family):
        raise DrawingError(
            "this machine has no font to write the names of nodes with",
            hint="install one (Debian: fonts-dejavu-core), or name a file: "
            "png(fonts=['some.ttf']); SVG needs none",
        )
    area = max(size[0] * size[1], 1)
    zoom = min(scale, (PIXELS_MAX / area) ** 0.5)
    return bytes(render(svg_string=svg, zoom=zoom, font_files=list(files) or None))


def renderer() -> Any:
    """The function that draws.

    Raises:
        DrawingError: it is not installed (TP-612).
    """
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise DrawingError(
            "PNG takes a renderer of SVG, which is not installed",
            hint="pip install 'towpath[draw]'; SVG, Mermaid and text need nothing",
        ) from error
    return svg_to_bytes


@lru_cache(maxsize=8)
def has_font(files: tuple[str, ...], family: str) -> bool:
    """Whether text can be seen: without a font the renderer leaves it out."""
    render = renderer()
    empty, sign = (
        bytes(render(svg_string=PROBE.format(text), font_files=list(files) or None))
        for text in ("", SIGN.format(family))
    )
    return empty != sign
