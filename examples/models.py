"""The model of an example: a real one, or a script that stands for it.

    export OPENAI_API_KEY=...            a key alone chooses its provider's model
    export TOWPATH_MODEL=ollama:qwen3    PROVIDER:NAME says which one; so does --model
    export TOWPATH_MODEL=scripted        no model, even if there is a key

Without a key the script answers, which needs neither a network nor an account, only
`pip install 'towpath[langchain]'`. A real model needs `pip install langchain` and the
package of its provider, such as `langchain-openai` or `langchain-anthropic`:
langchain's `init_chat_model` knows some twenty of them. Servers that speak OpenAI's
protocol are reached with `OPENAI_API_BASE`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from towpath import RetryPolicy
from towpath.testing.models import ScriptedChatModel

VARIABLE = "TOWPATH_MODEL"
SCRIPTED = "scripted"
DEFAULTS = {
    "OPENAI_API_KEY": "openai:gpt-5-mini",
    "ANTHROPIC_API_KEY": "anthropic:claude-haiku-4-5",
}

Script: TypeAlias = Callable[[list[BaseMessage]], Any]
"""What to say next, made of the conversation alone: a process that resumes a thread
goes on where the other one stopped."""


class ModelError(Exception):
    """There is no such model, or what it needs is not installed."""


def chosen() -> str:
    """Name the model: the one that is asked for, one there is a key for, or none."""
    if asked := os.environ.get(VARIABLE):
        return asked
    with_key = (name for key, name in DEFAULTS.items() if os.environ.get(key))
    return next(with_key, SCRIPTED)


@cache
def chat(script: Script) -> BaseChatModel:
    """Return the chosen model, or the script in its place.

    Raises:
        ModelError: says what to install, or which name is wrong.
    """
    name = chosen()
    if name == SCRIPTED:
        return ScriptedChatModel(again=script)
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise ModelError(
            f"{name} needs packages: pip install langchain langchain-openai (or the "
            f"package of another provider); without a model: --model {SCRIPTED}"
        ) from None
    try:
        model: Any = init_chat_model(name)
    except Exception as error:
        # Each provider has errors of its own for a missing package, name or key.
        raise ModelError(f"{name} cannot be used: {error}") from error
    assert isinstance(model, BaseChatModel)
    return model


def add_option(options: argparse.ArgumentParser) -> None:
    """Add `--model` to the options of a program."""
    known = f"PROVIDER:NAME, or {SCRIPTED} (default: as there is a key)"
    options.add_argument("--model", metavar="MODEL", help=known)


def choose(args: argparse.Namespace, options: argparse.ArgumentParser) -> None:
    """Take the model that the options name, and say which one it is."""
    if args.model:
        os.environ[VARIABLE] = args.model
    try:
        chat(silent)
    except ModelError as error:
        options.error(str(error))
    print(f"model: {chosen()}", flush=True)


def silent(_messages: list[BaseMessage]) -> str:
    """Stand for a model when only its being there matters."""
    return ""


def ask(script: Script, system: str, text: str) -> str:
    """Return what the model says to a text, as its instructions tell it to."""
    said = chat(script).invoke([("system", system), ("user", text)])
    return str(said.text).strip()


def may_pass(error: Exception) -> bool:
    """Tell an error of a model that may be gone in a moment.

    A server that is busy (429) or broken (5xx), a line that dropped. What it refuses
    otherwise (4xx: a wrong key, a wrong request), it will refuse again.
    """
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status in {408, 409, 429} or status >= 500
    lost = ("APIConnectionError", "APITimeoutError", "TransportError")
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, (ConnectionError, TimeoutError)) or not names.isdisjoint(
        lost
    )


RETRY = RetryPolicy(initial_interval=0.5, max_attempts=4, retry_on=may_pass)
