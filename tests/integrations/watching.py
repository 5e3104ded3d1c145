"""Listeners and models for tests, and how to compare with the peer."""

from __future__ import annotations

import asyncio
import inspect
import warnings

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from towpath import semantics
from towpath.testing.api import load
from towpath.testing.normal import Placeholders


class Watcher(BaseCallbackHandler):
    """Writes down what it is told; runs are named by their names."""

    run_inline = True

    def __init__(self):
        self.told = []
        self.names = {}

    def note(self, what, run_id, parent, **facts):
        names = self.names
        self.told.append((what, names[run_id], names.get(parent, parent), facts))

    def on_chain_start(self, _, inputs, *, run_id, parent_run_id=None, **kw):
        self.names[run_id] = kw["name"]
        facts = {"tags": kw["tags"], "metadata": kw["metadata"], "inputs": inputs}
        self.note("start", run_id, parent_run_id, **facts)

    def on_chain_end(self, outputs, *, run_id, parent_run_id=None, **kw):
        self.note("end", run_id, parent_run_id, outputs=outputs, tags=kw["tags"])

    def on_chain_error(self, error, *, run_id, parent_run_id=None, **kw):
        self.note("error", run_id, parent_run_id, error=type(error).__name__)

    def on_chat_model_start(self, _, messages, *, run_id, parent_run_id=None, **kw):
        self.names[run_id] = "model"
        metadata = kw["metadata"]
        self.note("model", run_id, parent_run_id, tags=kw["tags"], metadata=metadata)

    def on_tool_start(self, _, text, *, run_id, parent_run_id=None, **kw):
        self.names[run_id] = kw["name"] if "name" in kw else "tool"
        self.note("tool", run_id, parent_run_id, tags=kw["tags"])

    def tree(self):
        """Who ran below whom, and how it ended."""
        return [(what, name, parent) for what, name, parent, _ in self.told]


def model(*answers, **options):
    """A chat model that gives these answers."""
    messages = iter([AIMessage(answer) for answer in answers])
    return GenericFakeChatModel(messages=messages, **options)


def on_both(program):
    """Make a test that compares what a program sees on both libraries."""

    @pytest.mark.differential
    @pytest.mark.parametrize("preset", ["NATIVE", "LANGGRAPH"])
    def test(preset):
        expected = observe(program, "langgraph")
        former = semantics.set_default(getattr(semantics, preset))
        try:
            actual = observe(program, "towpath")
        finally:
            semantics.set_default(former)
        assert expected == actual

    test.__name__, test.__doc__ = program.__name__, program.__doc__
    test.__module__ = program.__module__
    return test


def observe(program, library):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = program(load(library))
        if inspect.isawaitable(outcome):
            outcome = asyncio.run(outcome)
    assert outcome
    return Placeholders().value(outcome)
