"""How near two vectors are, and which of many are the nearest.

The search is exact: every vector is compared. numpy does it where it is
installed; without it, pure Python is some fifty times slower and as exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

Vector = Sequence[float]
Distance = Literal["cosine", "l2", "inner_product"]
Ranked = list[tuple[int, float | None]]
"""Places, the nearest first, with their scores."""


class Nearness(NamedTuple):
    """A measure: the larger, the nearer."""

    name: Distance
    of_two: Callable[[Vector, Vector], float]
    of_many: Callable[[Any, Any], Any]
    """The same for a matrix of numpy and a vector."""


def _dot(one: Vector, other: Vector) -> float:
    return float(sum(map(operator.mul, one, other)))


def _cosine(one: Vector, other: Vector) -> float:
    norms = math.hypot(*one) * math.hypot(*other)
    # A vector of nothing but zeros is near to none.
    return _dot(one, other) / norms if norms else 0.0


def _cosines(rows: Any, query: Any) -> Any:
    norms = (rows * rows).sum(axis=1) ** 0.5 * float((query * query).sum() ** 0.5)
    norms[norms == 0] = math.inf
    return rows @ query / norms


COSINE: Final = Nearness("cosine", _cosine, _cosines)
MEASURES: Final[dict[str, Nearness]] = {
    "cosine": COSINE,
    "l2": Nearness(
        "l2",
        lambda one, other: -math.dist(one, other),
        lambda rows, query: -(((rows - query) ** 2).sum(axis=1) ** 0.5),
    ),
    "inner_product": Nearness("inner_product", _dot, lambda rows, query: rows @ query),
}


def nearest(
    measure: Nearness, query: Vector, candidates: Sequence[Sequence[Vector]]
) -> Ranked:
    """Rank candidates by the nearest of their vectors.

    Those that have none, or only such of another length, as another model made
    them, come last and have no score. Equals stay in their order.
    """
    flat = [
        (place, vector)
        for place, vectors in enumerate(candidates)
        for vector in vectors
        if len(vector) == len(query)
    ]
    best: list[float | None] = [None] * len(candidates)
    scores = _scores(measure, query, [vector for _, vector in flat])
    for (place, _), score in zip(flat, scores, strict=True):
        former = best[place]
        best[place] = score if former is None else max(former, score)
    return sorted(
        enumerate(best),
        key=lambda each: -math.inf if each[1] is None else each[1],
        reverse=True,
    )


def _scores(
    measure: Nearness, query: Vector, vectors: Sequence[Vector]
) -> Sequence[float]:
    np = _numpy() if len(vectors) > 1 else None
    if np is None:
        return [measure.of_two(query, vector) for vector in vectors]
    if all(type(vector) is memoryview for vector in vectors):
        flat = np.frombuffer(b"".join(vectors), dtype="float32")  # type: ignore[arg-type]  # as just asked
        rows = flat.reshape(len(vectors), -1).astype("float64")
    else:
        rows = np.asarray(vectors, dtype="float64")
    scores: list[float] = measure.of_many(rows, np.asarray(query, "float64")).tolist()
    return scores


@cache
def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError:
        return None
    return np
