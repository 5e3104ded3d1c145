"""A support agent that pays money back, once a person has agreed to it.

    python examples/support_agent.py ["MESSAGE"]

The agent looks orders up and answers. To refund, it calls a tool that stops and asks
a colleague; the question waits on disk, for a second or for a month, and is answered
here or with `towpath resume examples/support_agent.py:graph --thread support`:

    agent <-> tools (look_up, refund: asks)

The money moves once: what was refunded is recorded under a key that stays the same
if the process dies between paying and storing that it paid. What the model asks for is
checked where it is paid, for a model may be talked into anything.

A further message continues the conversation. In `shop.db` are the orders and what was
refunded. Without a key for a model, a script speaks: see models.py.
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

import models
from program import Program, parser, run, show_messages
from towpath import interrupt
from towpath.prebuilt import ToolRuntime, create_react_agent
from towpath.testing.models import calling
from towpath.types import Checkpointer

SUMMARY = "Talk to a support agent that asks a person before it pays money back."
EXAMPLE = "My kettle arrived broken. Please refund order 1002."
SHOP = Path("shop.db")
PROMPT = """\
You are the support agent of a small shop. Look an order up before you speak about it.
When a customer wants money back for a reason, call `refund` with what is left to
refund, or less if that is what they want. Never promise a refund before the tool says
it is paid. Answer in two sentences at most."""
ORDERS = [(1001, "teapot", 2400), (1002, "kettle", 3995), (1003, "two mugs", 1800)]
SCHEMA = """
CREATE TABLE IF NOT EXISTS orders
    (number INTEGER PRIMARY KEY, what TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS refunds
    (key TEXT PRIMARY KEY, number INTEGER, cents INTEGER);
"""


# ------------------------------------------------------------------------ the shop


@contextmanager
def shop() -> Iterator[sqlite3.Connection]:
    """Open the shop's database, in one transaction."""
    with closing(sqlite3.connect(SHOP, timeout=30)) as database:
        database.executescript(SCHEMA)
        with database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT OR IGNORE INTO orders VALUES (?, ?, ?)", ORDERS
            )
            yield database


def order(database: sqlite3.Connection, number: int) -> dict[str, Any]:
    """Return an order and what of it may still be refunded.

    Raises:
        ValueError: there is no such order.
    """
    query = """
        SELECT what, cents,
            (SELECT COALESCE(SUM(cents), 0) FROM refunds WHERE number = orders.number)
        FROM orders WHERE number = ?
    """
    row = database.execute(query, (number,)).fetchone()
    if row is None:
        raise ValueError(f"there is no order {number}")
    what, cents, refunded = row
    return {
        "order": number,
        "what": what,
        "paid_cents": cents,
        "refundable_cents": cents - refunded,
    }


def refundable(number: int, cents: int) -> dict[str, Any]:
    """Return an order of which so much can be refunded.

    Raises:
        ValueError: less than that can be.
    """
    with shop() as database:
        found = order(database, number)
    require_left(found, cents)
    return found


def require_left(found: dict[str, Any], cents: int) -> None:
    left = found["refundable_cents"]
    if not 0 < cents <= left:
        raise ValueError(f"{left} cents of order {found['order']} can be refunded")


def pay_back(number: int, cents: int, key: str) -> str:
    """Refund, unless this very refund was made before.

    Raises:
        ValueError: less than that can be refunded by now.
    """
    with shop() as database:
        query = "SELECT 1 FROM refunds WHERE key = ?"
        if database.execute(query, (key,)).fetchone() is None:
            require_left(order(database, number), cents)
            row = (key, number, cents)
            database.execute("INSERT INTO refunds VALUES (?, ?, ?)", row)
    return f"paid back {money(cents)} for order {number}"


def money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02} EUR"


# ----------------------------------------------------------------------- the tools


@tool
def look_up(number: int) -> str:
    """Show an order: what it was, what was paid, what can be refunded, in cents."""
    with shop() as database:
        return json.dumps(order(database, number))


@tool
def refund(number: int, cents: int, reason: str, runtime: ToolRuntime) -> str:
    """Pay cents of an order back to the customer, if a colleague approves."""
    # A tool that asked starts from its top when it is answered, or when its process
    # died after it had paid. What it saw before it asked is a step, and stays.
    found = runtime.step("check", refundable, number, cents)
    answer = interrupt(
        {
            "question": f"Refund {money(cents)} of order {number} ({found['what']})?",
            "reason": reason,
        },
        response_schema={"enum": ["approve", "reject"]},
    )
    if answer != "approve":
        return "A colleague has rejected the refund."
    return pay_back(number, cents, runtime.idempotency_key)


# ------------------------------------------------------------ what the script says


def script(messages: list[BaseMessage]) -> Any:
    """Do what a model would do, for customers who name the number of an order."""
    said = [n for n, message in enumerate(messages) if message.type == "human"]
    wish = str(messages[said[-1]].content)
    results = [one for one in messages[said[-1] :] if one.type == "tool"]
    turn = f"turn-{len(messages)}"
    number = re.search(r"\d{3,}", wish)
    if number is None:
        return "Which order is it? Its number has four digits."
    if not results:
        return calling(("look_up", {"number": int(number[0])}), id=turn)
    told = str(results[-1].content)
    if len(results) == 1 and told.startswith("{"):
        found = json.loads(told)
        left = found["refundable_cents"]
        if re.search(r"refund|money back", wish, re.IGNORECASE) and left:
            return calling(
                ("refund", {"number": found["order"], "cents": left, "reason": wish}),
                id=turn,
            )
        return f"Your order is {found['what']}; {money(left)} of it can be refunded."
    if told.startswith("paid"):
        return f"Done: we {told}. Sorry for the trouble!"
    return f"I am sorry, that is not possible. {told}"


# ----------------------------------------------------------------------- the graph


def model(_state: Any, _runtime: Any) -> Any:
    """Choose the model when it is first asked, so that drawing needs none."""
    return models.chat(script).bind_tools([look_up, refund])


def build(checkpointer: Checkpointer = None) -> Any:
    """Make the agent."""
    return create_react_agent(
        model,
        [look_up, refund],
        prompt=PROMPT,
        checkpointer=checkpointer,
        name="support",
    )


graph = build()


# --------------------------------------------------------------------- the program


def main(words: list[str] | None = None) -> int:
    """Run the program; 0 is done, 3 is waiting for an answer."""
    options = parser(SUMMARY, thread="support")
    models.add_option(options)
    option = options.add_argument
    option("message", nargs="?", default=EXAMPLE, help=f"(default: {EXAMPLE})")
    option("--answer", choices=["approve", "reject"], help="answer without asking")
    args = options.parse_args(words)
    if not args.message.strip():
        options.error("the message is empty")
    models.choose(args, options)
    values = {"messages": [args.message]}
    return run(Program(__file__, build, show_messages, key="messages"), values, args)


if __name__ == "__main__":
    sys.exit(main())
