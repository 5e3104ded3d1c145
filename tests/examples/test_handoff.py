"""Hand-off: who speaks changes, the conversation stays whole, and so does the desk."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.examples.running import EXAMPLES, run, towpath

from towpath import InMemorySaver

pytest.importorskip("langchain_core")

PROGRAM = EXAMPLES / "handoff.py"
THREAD = {"configurable": {"thread_id": "1"}}


@pytest.mark.slow
def test_a_customer_is_handed_over_and_stays_there_for_the_next_process(
    tmp_path: Path,
) -> None:
    first = run(tmp_path, PROGRAM)
    assert 0 == first.returncode, first.stderr
    assert [
        "reception: flights",
        "book_flight: flight TP67 Lisbon-Bristol on 2027-03-05",
        "hand_over_to_hotels()",
        "book_hotel: Hotel Bristol, 2 nights from 2027-03-05",
    ] == [
        line.strip()
        for line in first.stdout.splitlines()
        if line.startswith(("reception", "  book_flight:", "  hand", "  book_hotel:"))
    ]
    second = run(tmp_path, PROGRAM, "And a hotel in Bath for 3 nights, please.")
    assert 0 == second.returncode, second.stderr
    assert "reception: hotels" in second.stdout
    assert "hotels: Booked: Hotel Bath, 3 nights" in second.stdout


@pytest.mark.slow
def test_the_command_line_runs_it(tmp_path: Path) -> None:
    given = ("--input", '{"messages": ["A flight from Porto to Bath, please."]}')
    done = towpath(tmp_path, "run", "handoff", *given)
    assert 0 == done.returncode, done.stderr
    assert "Booked: flight TP54 Porto-Bath" in done.stdout


def test_each_call_of_a_tool_is_answered_once_and_nothing_is_said_twice(
    example,
) -> None:
    module = example("handoff")
    graph = module.build(InMemorySaver())
    messages = graph.invoke({"messages": [module.EXAMPLE]}, THREAD)["messages"]
    calls = [call["id"] for one in messages for call in getattr(one, "tool_calls", ())]
    answers = [one.tool_call_id for one in messages if one.type == "tool"]
    assert calls == answers
    assert 3 == len(calls)
    assert len(messages) == len({one.id for one in messages})


def test_a_hand_over_beside_other_calls_is_refused_and_said_to_the_model(
    example,
) -> None:
    from towpath.testing.models import calling

    module = example("handoff")
    told = []

    def script(messages):
        if messages[0].content == module.RECEPTION:
            return "flights"
        results = [one for one in messages if one.type == "tool"]
        told.extend(str(one.content) for one in results)
        if results:
            return "Done."
        day = {"origin": "A", "destination": "B", "day": "2027-01-01"}
        return calling(("book_flight", day), ("hand_over_to_hotels", {}))

    module.script = script
    done = module.build().invoke({"messages": ["Both!"]})
    assert "flights" == done["desk"]
    assert any("hand over in a turn of its own" in one for one in told)
