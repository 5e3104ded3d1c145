"""Three agents that hand a customer over to each other.

    python examples/handoff.py ["MESSAGE"]

Reception reads the first message and sends it to a desk, with `Command(goto=...)`. A
desk is an agent with tools of its own, and a subgraph. It hands over with a tool that
returns a `Command` for the graph around it (`graph=Command.PARENT`), together with
the conversation so far:

    reception -> flights <-> hotels

Which desk the customer is at is part of the state: the next message on the thread goes
there, in whatever process it is. Without a key for a model, a script speaks: see
models.py.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any, Literal, TypeAlias

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool

import models
from program import Lines, Program, parser, run, show_messages
from towpath import END, START, Command, StateGraph
from towpath.graph import MessagesState
from towpath.prebuilt import InjectedState, create_react_agent
from towpath.testing.models import calling
from towpath.types import Checkpointer

SUMMARY = "Plan a trip with agents that hand you over to each other."
EXAMPLE = (
    "Please book a flight from Lisbon to Bristol on 2027-03-05, and a hotel there."
)
Desk: TypeAlias = Literal["flights", "hotels"]
DESKS: tuple[Desk, Desk] = ("flights", "hotels")
RECEPTION = f"""\
Which desk can help the customer first? Answer with one word: {" or ".join(DESKS)}."""
PROMPTS = {
    "flights": "You book flights, and nothing else.",
    "hotels": "You book hotels, and nothing else.",
}
MANNERS = """ Call one tool at a time. When your part is done and the customer wants
something of another desk, hand over to it, without a word about it to the customer.
Otherwise sum up in one sentence what was booked. Never invent bookings."""


class State(MessagesState, total=False):
    """The conversation, and the desk that the customer is at."""

    desk: Desk


# ------------------------------------------------------------------------ the tools


@tool
def book_flight(origin: str, destination: str, day: str) -> str:
    """Book a flight. The day is like 2027-03-05."""
    return f"flight TP{len(origin)}{len(destination)} {origin}-{destination} on {day}"


@tool
def book_hotel(city: str, day: str, nights: int) -> str:
    """Book a hotel from a day on. The day is like 2027-03-05."""
    if nights < 1:
        raise ValueError("nights must be 1 or more")
    return f"Hotel {city}, {nights} nights from {day}"


def hand_over_to(desk: str) -> BaseTool:
    """Make the tool that sends the customer to another desk."""

    @tool(f"hand_over_to_{desk}", description=f"Hand the customer over to {desk}.")
    def hand_over(
        state: Annotated[dict[str, Any], InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command[Any]:
        messages = state["messages"]
        if len(messages[-1].tool_calls) > 1:
            # The others would stay without an answer, which no model accepts.
            raise ValueError("hand over in a turn of its own, after the other calls")
        done = ToolMessage(f"now at {desk}", tool_call_id=tool_call_id, name=desk)
        # The graph around the agent knows only what it is told.
        update = {"messages": [*messages, done], "desk": desk}
        return Command(graph=Command.PARENT, goto=desk, update=update)

    return hand_over


TOOLS = {
    "flights": [book_flight, hand_over_to("hotels")],
    "hotels": [book_hotel, hand_over_to("flights")],
}

# --------------------------------------------------------------------------- nodes


def reception(state: State) -> Command[Desk]:
    """Send the customer to a desk: where they were, or where a model thinks."""
    desk = state.get("desk") or desk_for(state["messages"][-1])
    return Command(goto=desk, update={"desk": desk})


def desk_for(message: BaseMessage) -> Desk:
    """Let a model choose the desk."""
    said = models.ask(script, RECEPTION, str(message.content)).lower()
    return next((one for one in DESKS if one in said), DESKS[0])


def agent(desk: str) -> Any:
    """Make the agent of a desk."""

    def model(_state: Any, _runtime: Any) -> Any:
        return models.chat(script).bind_tools(TOOLS[desk])

    return create_react_agent(
        model, TOOLS[desk], prompt=PROMPTS[desk] + MANNERS, name=desk
    )


# ------------------------------------------------------------ what the script says


def script(messages: list[BaseMessage]) -> Any:
    """Do what a model would do, for who writes places and days as in the example."""
    system, said = str(messages[0].content), [one.type for one in messages]
    since = len(said) - 1 - said[::-1].index("human")
    wish = str(messages[since].content)
    if system == RECEPTION:
        return "flights" if "flight" in wish.lower() else "hotels"
    here, there = DESKS if system.startswith(PROMPTS[DESKS[0]]) else reversed(DESKS)
    done = [str(one.content) for one in messages[since:] if one.type == "tool"]
    booked = [one for one in done if not one.startswith("now at")]
    turn = f"turn-{len(messages)}"
    if is_open(here, wish, booked):
        return calling(booking(here, wish), id=turn)
    if is_open(there, wish, booked):
        return calling((f"hand_over_to_{there}", {}), id=turn)
    return f"Booked: {'; '.join(booked)}." if booked else "Where to, and on which day?"


def is_open(desk: str, wish: str, booked: list[str]) -> bool:
    """Tell whether a desk has something to book yet."""
    what = desk.removesuffix("s")
    return what in wish.lower() and not any(what in one.lower() for one in booked)


def booking(desk: str, wish: str) -> tuple[str, dict[str, Any]]:
    """Read what is to be booked out of a message."""
    origin = re.search(r"from ([A-Z]\w+)", wish)
    place = re.search(r"(?:to|in) ([A-Z]\w+)", wish)
    day = re.search(r"\d{4}-\d\d-\d\d", wish)
    nights = re.search(r"(\d+) nights?", wish)
    city, when = place[1] if place else "Bristol", day[0] if day else "2027-03-05"
    if desk == "flights":
        start = origin[1] if origin else "Lisbon"
        return "book_flight", {"origin": start, "destination": city, "day": when}
    count = int(nights[1]) if nights else 2
    return "book_hotel", {"city": city, "day": when, "nights": count}


# ----------------------------------------------------------------------- the graph


def build(checkpointer: Checkpointer = None) -> Any:
    """Wire the desks."""
    builder = StateGraph(State)
    builder.add_node("reception", reception, retry_policy=models.RETRY)
    for desk in DESKS:
        others = tuple(one for one in DESKS if one != desk)
        builder.add_node(desk, agent(desk), destinations=others)
        builder.add_edge(desk, END)
    builder.add_edge(START, "reception")
    return builder.compile(checkpointer=checkpointer)


graph = build()


# --------------------------------------------------------------------- the program


def show(node: str, update: Any) -> Lines:
    """Tell who is asked, and what is said."""
    if node == "reception":
        yield f"reception: {update['desk']}"
    elif node not in DESKS:  # what a desk did is shown while it does it
        yield from show_messages(node, update)


def main(words: list[str] | None = None) -> int:
    """Run the program; 0 is done."""
    options = parser(SUMMARY, thread="trip")
    models.add_option(options)
    options.add_argument("message", nargs="?", default=EXAMPLE, help=EXAMPLE)
    args = options.parse_args(words)
    if not args.message.strip():
        options.error("the message is empty")
    models.choose(args, options)
    values = {"messages": [args.message]}
    return run(Program(__file__, build, show, key="messages"), values, args)


if __name__ == "__main__":
    sys.exit(main())
