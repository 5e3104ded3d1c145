"""Channels: what a key of the state is, and how writes fold into it."""

from __future__ import annotations

from towpath.channels.any_value import AnyValue
from towpath.channels.base import BaseChannel
from towpath.channels.binop import BinaryOperatorAggregate
from towpath.channels.delta import DeltaChannel
from towpath.channels.ephemeral_value import EphemeralValue
from towpath.channels.last_value import LastValue, LastValueAfterFinish
from towpath.channels.named_barrier_value import (
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
)
from towpath.channels.topic import Topic
from towpath.channels.untracked_value import UntrackedValue

__all__ = (
    "AnyValue",
    "BaseChannel",
    "BinaryOperatorAggregate",
    "DeltaChannel",
    "EphemeralValue",
    "LastValue",
    "LastValueAfterFinish",
    "NamedBarrierValue",
    "NamedBarrierValueAfterFinish",
    "Topic",
    "UntrackedValue",
)
