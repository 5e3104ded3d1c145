"""What a graph is, as one short text that is stored with its threads.

A thread that goes on may meet another graph than the one it was made by. The
text says by which: its version, the kind and type of each key, the names of
its nodes, and a hash of how they are wired. Equal graphs have equal texts in
every process, so that in the ordinary case one comparison is enough; only a
text that differs is read.

Functions are not part of it: a graph whose code was mended is the same graph.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final

from towpath.channels.base import BaseChannel
from towpath.plan.specs import NodeSpec, Plan

# Channels that keep the bare value: what one has stored, another can take up.
BARE: Final = frozenset(
    {"LastValue", "AnyValue", "EphemeralValue", "BinaryOperatorAggregate"}
    | {"DeltaChannel", "UntrackedValue"}
)
WRAPPED: Final = ("Annotated", "Required", "NotRequired", "ReadOnly", "Final")
NUMBERS: Final[Mapping[type, Any]] = {float: (float, int), complex: (complex, float)}


@dataclass(frozen=True, slots=True)
class Description:
    """A fingerprint that was read: the graph's version, keys and nodes."""

    version: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    nodes: Sequence[str] = ()


def fingerprint(plan: Plan) -> str:
    """The text that describes a graph; worked out when it is first asked for."""
    if not plan.described:
        plan.described.append(describe(plan))
    return plan.described[0]


def describe(plan: Plan) -> str:
    keys = {key: key_text(plan.channels[key]) for key in plan.keys}
    nodes = [name for name, spec in plan.nodes.items() if not spec.hidden]
    parts: dict[str, Any] = {"keys": keys, "nodes": nodes, "wires": wires(plan)}
    if plan.version is not None:
        parts["version"] = plan.version
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":"))


def read(text: str | None) -> Description | None:
    """Read a fingerprint; None for none, and for one of a form yet to come."""
    try:
        parts = json.loads(text or "")
        return Description(parts.get("version"), parts["keys"], parts["nodes"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def key_text(channel: BaseChannel[Any, Any, Any]) -> str:
    """What a key is: the kind of its channel, its type, and its reducer."""
    kind = type(channel).__name__
    reducer = getattr(channel, "operator", None) or getattr(channel, "reducer", None)
    text = f"{kind} {type_text(channel.typ)}"
    if reducer is None:
        return text
    name = getattr(reducer, "__qualname__", type(reducer).__qualname__)
    return f"{text} {name.rpartition('<locals>.')[2]}"


def type_text(typ: Any) -> str:
    """A type by name, the same in every process, wherever its module lies."""
    origin, args = typing.get_origin(typ), typing.get_args(typ)
    if origin in (typing.Union, types.UnionType):
        return "|".join(sorted(type_text(arg) for arg in args))
    if origin is typing.Literal:
        return f"Literal[{','.join(map(repr, args))}]"
    if origin is not None:
        name = getattr(origin, "__name__", None) or str(origin).rpartition(".")[2]
        if name in WRAPPED:
            return type_text(args[0])
        return f"{name}[{','.join(map(type_text, args))}]"
    if isinstance(typ, list | tuple):  # the parameters of a Callable
        return ",".join(map(type_text, typ))
    if isinstance(typ, typing.ForwardRef | str):
        written = typ if isinstance(typ, str) else typ.__forward_arg__
        return written.rpartition(".")[2]
    name = getattr(typ, "__qualname__", None) or getattr(typ, "__name__", None)
    return str(name or repr(typ)).rpartition("<locals>.")[2].replace("NoneType", "None")


def wires(plan: Plan) -> str:
    """A short hash of what wakes and what follows each node."""
    digest = blake2b(digest_size=4)
    for name, spec in sorted(plan.nodes.items()):
        told = repr((name, spec.triggers, *ways(spec)))
        digest.update(told.encode("utf-8", "replace"))
    return digest.hexdigest()


def ways(spec: NodeSpec) -> list[Any]:
    """Where a node leads: its edges, and its branches with their ends."""
    edges = sorted(channel for channel, _ in spec.edges)
    ends = [sorted(map(str, (branch.ends or {}).values())) for branch in spec.branches]
    return [edges, ends]


def takes(channel: BaseChannel[Any, Any, Any], was: str | None, stored: Any) -> bool:
    """Whether a key can go on with what was stored under it, as `was` described it."""
    kind, _, _ = key_text(channel).partition(" ")
    before = kind if was is None else was.partition(" ")[0]
    if kind != before and not BARE.issuperset((kind, before)):
        return False
    return kind not in BARE or fits(stored, channel.typ)


def fits(value: Any, typ: Any) -> bool:
    """Whether a value is of a type, as far as its outermost shape tells."""
    origin, args = typing.get_origin(typ), typing.get_args(typ)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is typing.Literal:
        return value in args
    if getattr(origin, "__name__", None) in WRAPPED or origin is typing.Annotated:
        return fits(value, args[0])
    if typ is None:
        return value is None
    if hasattr(typ, "__supertype__"):  # a NewType
        return fits(value, typ.__supertype__)
    if typing.is_typeddict(typ):
        return isinstance(value, dict)
    cls = typ if origin is None else origin
    try:
        return not isinstance(cls, type) or isinstance(value, NUMBERS.get(cls, cls))
    except TypeError:  # a protocol that cannot be asked
        return True
