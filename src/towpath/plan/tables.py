"""Tables of a plan that follow from its channels and nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from towpath.channels.base import BaseChannel
from towpath.channels.ephemeral_value import EphemeralValue
from towpath.channels.last_value import LastValue
from towpath.channels.untracked_value import UntrackedValue
from towpath.plan.specs import NodeSpec


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
        "wakes": {
            key: nodes[name]
            for key, names in listeners.items()
            if key in signals
            for name in names
        },
        "openers": frozenset(listeners) - signals,
        "cells": {k: channel for k, channel in channels.items() if k not in signals},
        "adding": frozenset(key for key, channel in channels.items() if channel.adds),
        "unsure": frozenset(
            key for key, channel in channels.items() if not channel.folds_purely
        ),
        "plain": frozenset(k for k in keys if kinds.get(k) is LastValue),
    }
