"""Tables of a plan that follow from its channels and nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from towpath.channels.base import BaseChannel
from towpath.channels.binop import BinaryOperatorAggregate
from towpath.channels.ephemeral_value import EphemeralValue
from towpath.channels.last_value import LastValue, LastValueAfterFinish
from towpath.channels.named_barrier_value import (
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
)
from towpath.channels.topic import Topic
from towpath.channels.untracked_value import UntrackedValue
from towpath.constants import START
from towpath.plan.specs import NodeSpec

EMPTY_AT_FIRST: Final = frozenset(
    {
        EphemeralValue,
        LastValueAfterFinish,
        NamedBarrierValue,
        NamedBarrierValueAfterFinish,
        Topic,
        UntrackedValue,
    }
)
"""Kinds of channels that hold nothing, and have nothing to do, until written."""


def tables(
    channels: Mapping[str, BaseChannel[Any, Any, Any]],
    nodes: Mapping[str, NodeSpec],
    keys: Collection[str],
) -> dict[str, Any]:
    """Fields of a `Plan`: who listens to what, and what channels want to be told."""
    kinds = {key: type(channel) for key, channel in channels.items()}
    listeners: dict[str, list[str]] = {}
    for spec in nodes.values():
        for trigger in spec.triggers:
            listeners.setdefault(trigger, []).append(spec.name)
    consumes, finishes = BaseChannel.consume, BaseChannel.finish
    signals = frozenset(
        key
        for key, channel in channels.items()
        if type(channel) is EphemeralValue and not channel.guard and key not in keys
    )
    entry = nodes.get(START)
    plain = frozenset(k for k in keys if kinds.get(k) is LastValue)
    cells = {k: c for k, c in channels.items() if k not in signals and k not in plain}
    return {
        "listeners": {key: tuple(names) for key, names in listeners.items()},
        "ticking": frozenset(
            k for k, kind in kinds.items() if kind.ticks and k not in signals
        ),
        "consuming": frozenset(
            k for k, kind in kinds.items() if kind.consume is not consumes
        ),
        "finishing": tuple(
            k for k, kind in kinds.items() if kind.finish is not finishes
        ),
        "untracked": frozenset(
            k for k, kind in kinds.items() if kind is UntrackedValue
        ),
        "signals": signals,
        "alone": {key: frozenset((key,)) for key in signals},
        "wakes": {
            key: nodes[name]
            for key, names in listeners.items()
            if key in signals
            for name in names
        },
        "openers": frozenset(listeners) - signals,
        "entry": entry if entry and not (entry.action or entry.branches) else None,
        "cells": cells,
        "adding": frozenset(key for key, channel in channels.items() if channel.adds),
        "early": tuple(
            k
            for k in cells
            if (k in keys or kinds[k].ticks) and kinds[k] not in EMPTY_AT_FIRST
        ),
        "sums": frozenset(key for key in keys if channels[key].sums),
        "unsure": frozenset(
            key
            for key, channel in channels.items()
            if key not in signals and not channel.folds_purely
        ),
        "plain": plain,
        "bare": plain.union(k for k in keys if kinds.get(k) is BinaryOperatorAggregate),
    }
