"""`Picture`: what `graph.draw()` returns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

from towpath.picture.png import DrawingError, Fonts, png
from towpath.picture.sketch import Sketch
from towpath.picture.svg import FONT, Drawing
from towpath.picture.text import text

SUFFIXES: Final = {".svg", ".png", ".mmd", ".mermaid", ".txt", ".html"}


class Picture:
    """A picture of a graph, made when it is asked for, in the form asked for.

    The same graph gives the same picture, byte for byte. A notebook shows the
    SVG. A page of HTML can hold several SVGs as they are.
    """

    def __init__(self, sketch: Sketch, mermaid: Callable[[], str]) -> None:
        self.sketch = sketch
        self._mermaid = mermaid

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(self.sketch)

    @cached_property
    def svg(self) -> str:
        """One `<svg>` element: for light and dark viewers, without any reference."""
        return self._drawing.text()

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the SVG, in pixels."""
        return self._drawing.extent

    @property
    def html(self) -> str:
        """A page with the SVG in it."""
        return f"<!doctype html><meta charset=utf-8>{self.svg}"

    @cached_property
    def mermaid(self) -> str:
        """Mermaid text."""
        return self._mermaid()

    @cached_property
    def ascii(self) -> str:
        """Lines of characters, ASCII but for what names have of others."""
        return text(self.sketch)

    @cached_property
    def text(self) -> str:
        """The same with the characters for drawing lines that Unicode has."""
        return text(self.sketch, ascii=False)

    def png(self, *, scale: float = 2, fonts: Fonts = ()) -> bytes:
        """PNG with `scale` pixels to one of the SVG.

        `fonts` are font files to use before those of the system.

        Raises:
            DrawingError: `towpath[draw]` is not installed, or there is no font
                (TP-612).
        """
        return png(self.svg, self.size, scale, fonts, FONT)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a file in the form that its suffix says; return its path.

        .svg, .png, .mmd or .mermaid, .txt, or .html, a page with the SVG in it.

        Raises:
            DrawingError: another suffix, or PNG cannot be drawn (TP-612).
        """
        file = Path(path)
        suffix = file.suffix.lower()
        if suffix == ".png":
            file.write_bytes(self.png())
        elif suffix == ".svg":
            file.write_text(self.svg, "utf-8")
        elif suffix in {".mmd", ".mermaid"}:
            file.write_text(self.mermaid, "utf-8")
        elif suffix == ".txt":
            file.write_text(self.text + "\n", "utf-8")
        elif suffix == ".html":
            file.write_text(self.html, "utf-8")
        else:
            raise DrawingError(
                f"no picture is written to a file that ends in `{suffix}`",
                hint=f"it may end in {', '.join(sorted(SUFFIXES))}",
            )
        return file

    def __repr__(self) -> str:
        return f"<Picture of {self.sketch.title!r}>"

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> dict[str, str]:
        del include, exclude  # both forms are cheap
        return {"image/svg+xml": self.svg, "text/plain": self.text}
