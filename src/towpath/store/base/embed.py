"""Texts to vectors, and the paths to the texts in a value.

A path is names separated by periods. `[0]` and `[-1]` take one element of a
list, `[*]` all of them, `*` every element or value, `{a,b.c}` several paths, and
`$` the whole value.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Protocol, cast, runtime_checkable

EmbeddingsFunc = Callable[[Sequence[str]], list[list[float]]]
AEmbeddingsFunc = Callable[[Sequence[str]], Awaitable[list[list[float]]]]

_ALL = ("*", "[*]")

__all__ = ("AEmbeddingsFunc", "EmbeddingsFunc", "ensure_embeddings")


@runtime_checkable
class Embeddings(Protocol):
    """Turns texts into vectors; LangChain's class of this name is one."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts that are stored."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text that is searched for."""
        ...

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Async twin of `embed_documents`."""
        ...

    async def aembed_query(self, text: str) -> list[float]:
        """Async twin of `embed_query`."""
        ...


class EmbeddingsLambda:
    """A function as `Embeddings`; an async one serves the async methods only."""

    def __init__(self, func: EmbeddingsFunc | AEmbeddingsFunc) -> None:
        # `inspect` is slow to import, and seldom needed without asyncio.
        from inspect import iscoroutinefunction

        made = getattr(func, "__call__", None)  # noqa: B004 - its kind is asked
        self._awaited = iscoroutinefunction(func) or iscoroutinefunction(made)
        self._func = func

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts that are stored.

        Raises:
            ValueError: the function is async.
        """
        if self._awaited:
            raise ValueError(
                "an async embedding function cannot be called from blocking code; "
                "use the async methods of the store, or give it a blocking one"
            )
        return cast("EmbeddingsFunc", self._func)(texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text that is searched for."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Async twin of `embed_documents`."""
        if self._awaited:
            return await cast("AEmbeddingsFunc", self._func)(texts)
        from asyncio import to_thread

        return await to_thread(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """Async twin of `embed_query`."""
        return (await self.aembed_documents([text]))[0]


def ensure_embeddings(
    embed: Embeddings | EmbeddingsFunc | AEmbeddingsFunc | str | None,
) -> Embeddings:
    """Return `embed` as `Embeddings`.

    A str is `provider:model`, which LangChain makes; it must be installed.

    Raises:
        ValueError: nothing was given, or LangChain is not installed.
    """
    if embed is None:
        raise ValueError("embed must be provided")
    if isinstance(embed, Embeddings):
        return embed
    if not isinstance(embed, str):
        return EmbeddingsLambda(embed)
    try:
        from langchain.embeddings import (  # type: ignore[import-not-found,unused-ignore]  # an extra
            init_embeddings,
        )
    except ImportError as error:
        raise ValueError(
            f"Could not load embeddings from string '{embed}': pip install langchain"
        ) from error
    return cast("Embeddings", init_embeddings(embed))


def tokenize_path(path: str) -> list[str]:
    """Split a path into its steps."""
    tokens: list[str] = []
    name = ""
    closer = ""
    for char in path:
        if closer:
            name += char
            if char == closer:
                tokens.append(name)
                name = closer = ""
        elif char in "[{":
            tokens.append(name)
            name, closer = char, "]" if char == "[" else "}"
        elif char == ".":
            tokens.append(name)
            name = ""
        else:
            name += char
    return [token for token in (*tokens, name) if token]


def get_text_at_path(obj: Any, path: str | list[str]) -> list[str]:
    """Return the texts that a path leads to; other values as their JSON."""
    if not path or path in ("$", ["$"]):
        return [_json(obj)]
    tokens = tokenize_path(path) if isinstance(path, str) else path
    return [*_texts(obj, tokens)]


def _texts(value: Any, tokens: list[str]) -> Iterator[str]:
    if tokens:
        token, *rest = tokens
        if token[0] == "{" and token[-1] == "}":
            for branch in token[1:-1].split(","):
                yield from _texts(value, [*tokenize_path(branch.strip()), *rest])
            return
        for inner in _step(value, token):
            yield from _texts(inner, rest)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        yield _json(value)
    elif value is not None:
        yield str(value)


def _step(value: Any, token: str) -> Sequence[Any]:
    """Return what one step of a path leads to."""
    if token in _ALL:
        if isinstance(value, dict):
            return list(value.values()) if token == _ALL[0] else ()
        return value if isinstance(value, list) else ()
    if token[0] == "[" and token[-1] == "]":
        try:
            return (value[int(token[1:-1])],) if isinstance(value, list) else ()
        except (ValueError, IndexError):
            return ()
    return (value[token],) if isinstance(value, dict) and token in value else ()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
