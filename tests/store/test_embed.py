"""Paths to texts, and what makes vectors of them."""

from __future__ import annotations

import sys
import types

import pytest

from towpath.store.base import ensure_embeddings, get_text_at_path, tokenize_path
from towpath.store.sqlite import SqliteStore

VALUE = {
    "a": [{"c": "x"}, {"c": ["y", 1]}],
    "b": {"d": "q", "e": 5},
    "n": None,
    "t": True,
}
PATHS = [
    "a[*].c",
    "b.d",
    "b.e",
    "b",
    "$",
    "a[0].c",
    "a[-1].c",
    "b.*",
    "{b.d,b.e}",
    "zz",
    "n",
    "t",
    "*",
    "a[*]",
    "a[5].c",
    "b[0]",
    "a.c",
    ["b", "d"],
]


@pytest.mark.differential
@pytest.mark.parametrize("path", PATHS, ids=repr)
def test_texts_are_found_where_the_peer_finds_them(path):
    from langgraph.store.base import get_text_at_path as peer

    assert peer(VALUE, path) == get_text_at_path(VALUE, path)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a.b", ["a", "b"]),
        ("a[*].c", ["a", "[*]", "c"]),
        ("a[-1]", ["a", "[-1]"]),
        ("a.{b,c.d}.e", ["a", "{b,c.d}", "e"]),
        ("a..b", ["a", "b"]),
        ("", []),
        ("a[", ["a", "["]),
    ],
)
def test_a_path_is_split_into_steps(path, steps):
    assert steps == tokenize_path(path)


def test_embeddings_are_taken_as_they_are():
    class Mine:
        def embed_documents(self, texts):
            return [[1.0] for _ in texts]

        def embed_query(self, text):
            return [1.0]

        async def aembed_documents(self, texts):
            return self.embed_documents(texts)

        async def aembed_query(self, text):
            return [1.0]

    mine = Mine()
    assert mine is ensure_embeddings(mine)


async def test_a_function_is_made_into_embeddings():
    made = ensure_embeddings(lambda texts: [[float(len(t))] for t in texts])
    assert [3.0] == made.embed_query("abc")
    assert [[1.0], [2.0]] == await made.aembed_documents(["a", "bb"])
    assert [1.0] == await made.aembed_query("a")


def test_nothing_is_no_embedding():
    with pytest.raises(ValueError, match="must be provided"):
        ensure_embeddings(None)


def test_langchain_s_embeddings_find_items():
    embeddings = pytest.importorskip("langchain_core.embeddings")
    model = embeddings.DeterministicFakeEmbedding(size=8)
    assert model is ensure_embeddings(model)
    with SqliteStore(
        ":memory:", index={"dims": 8, "embed": model, "fields": ["t"]}
    ) as store:
        for text in ("one", "two", "three"):
            store.put(("a",), text, {"t": text})
        found = store.search((), query="two")
        assert "two" == found[0].key
        assert 1.0 == pytest.approx(found[0].score)


def test_a_name_of_a_model_needs_langchain(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    with pytest.raises(ValueError, match="pip install langchain"):
        ensure_embeddings("openai:text-embedding-3-small")


def test_a_name_of_a_model_is_made_by_langchain(monkeypatch):
    made = types.ModuleType("langchain.embeddings")
    made.init_embeddings = lambda name: f"the model {name}"
    monkeypatch.setitem(sys.modules, "langchain", types.ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.embeddings", made)
    assert "the model openai:small" == ensure_embeddings("openai:small")
