"""Which thread, and which checkpoint of it, the words of a command mean."""

from __future__ import annotations

from typing import Any

from towpath.cli.problem import Problem, nearest
from towpath.cli.storage import require_thread


def place(thread: str, checkpoint: str | None) -> dict[str, Any]:
    """Return the config that names a thread, or one of its checkpoints."""
    settings = {"thread_id": thread}
    return {
        "configurable": settings | ({"checkpoint_id": checkpoint} if checkpoint else {})
    }


def find_checkpoint(saver: Any, thread: str, word: str) -> str:
    """Return the id of the checkpoint that a word names.

    It is an id, the beginning or the end of one, or the number of a step: of the
    checkpoints with that number, the newest.

    Raises:
        Problem: there is no such checkpoint, or there are several.
    """
    config = place(thread, None)
    require_thread(saver, config)
    config["configurable"]["checkpoint_ns"] = ""
    steps: dict[str, int | None] = {
        saved.config["configurable"]["checkpoint_id"]: (saved.metadata or {}).get(
            "step"
        )
        for saved in saver.list(config)
    }
    if word in steps:
        return word
    if is_number(word):
        found = [one for one, step in steps.items() if step == int(word)][:1]
    else:
        found = [one for one in steps if one.startswith(word) or one.endswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Problem(
            f"{word!r} is part of the ids of {len(found)} checkpoints",
            hint=nearest(word, found),
        )
    raise Problem(
        f"thread {thread!r} has no checkpoint {word!r}",
        hint=f"`towpath history --thread {thread}` lists them; the number of a step "
        "will do",
    )


def is_number(word: str) -> bool:
    """Tell the number of a step, which may be negative, from an id."""
    digits = word.removeprefix("-")
    # An id's end may be digits, too, but no thread has that many steps.
    return digits.isascii() and digits.isdigit() and len(digits) < 8
