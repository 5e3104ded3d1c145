"""The contract between graphs and whatever keeps their memories."""

from __future__ import annotations

from towpath.store.base.embed import (
    Embeddings,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)
from towpath.store.base.ops import (
    NOT_GIVEN,
    NOT_PROVIDED,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    NamespaceMatchType,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)
from towpath.store.base.ops import ensure_ttl as _ensure_ttl
from towpath.store.base.store import BaseStore

__all__ = (
    "NOT_GIVEN",
    "NOT_PROVIDED",
    "BaseStore",
    "Embeddings",
    "GetOp",
    "IndexConfig",
    "InvalidNamespaceError",
    "Item",
    "ListNamespacesOp",
    "MatchCondition",
    "NamespaceMatchType",
    "NamespacePath",
    "NotProvided",
    "Op",
    "PutOp",
    "Result",
    "SearchItem",
    "SearchOp",
    "TTLConfig",
    "_ensure_ttl",
    "ensure_embeddings",
    "get_text_at_path",
    "tokenize_path",
    "validate_op_namespace",
)
