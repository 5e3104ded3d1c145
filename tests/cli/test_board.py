"""How nodes stand while a graph runs, and how that is drawn."""

from __future__ import annotations

from types import SimpleNamespace

from rich.console import Console

from towpath.cli.board import TEXT_MAX, Board
from towpath.cli.view import drawn, spoken


def start(name: str, id: str = "1") -> dict:
    return {"id": id, "name": name, "triggers": ["x"]}


def finish(name: str, id: str = "1", **how) -> dict:
    return {"id": id, "name": name, "error": None, "interrupts": [], **how}


def stands(board: Board) -> dict[str, str]:
    return {name: place.stand for name, place in board.places.items()}


def test_nodes_are_idle_until_they_run_and_then_done():
    board = Board(["a", "b"])
    board.task((), start("a"))
    assert {"a": "running", "b": "idle"} == stands(board)
    board.task((), finish("a"))
    assert {"a": "done", "b": "idle"} == stands(board)


def test_a_fan_out_runs_until_its_last_task_ended():
    board = Board(["a"])
    for n in range(3):
        board.task((), start("a", str(n)))
    for n in range(2):
        board.task((), finish("a", str(n)))
    assert ("running", 2, 3) == (
        board.places["a"].stand,
        board.places["a"].ended,
        board.places["a"].total,
    )
    board.task((), finish("a", "2", error="broken"))
    assert {"a": "failed"} == stands(board)


def test_a_node_that_runs_again_counts_anew():
    board = Board(["a"])
    for _ in range(2):
        board.task((), start("a"))
        board.task((), finish("a", interrupts=[1]))
    assert ("asks", 2, 1) == (
        board.places["a"].stand,
        board.places["a"].runs,
        board.places["a"].total,
    )


def test_nodes_of_subgraphs_appear_when_they_run():
    board = Board(["outer"])
    board.task(("outer:123",), start("inner"))
    assert {"outer": "idle", "outer/inner": "running"} == stands(board)


def message(text: object, node: str = "a") -> tuple:
    return SimpleNamespace(content=text), {"langgraph_node": node}


def test_the_words_of_the_model_that_speaks_are_kept():
    board = Board(["a"])
    board.message((), message("some "))
    board.message((), message([{"type": "text", "text": "words"}, {"type": "image"}]))
    assert ("a", "some words") == (board.speaker, board.words)
    board.message((), message("other", node="b"))
    assert ("b", "other") == (board.speaker, board.words)
    board.message((), message("x" * 9999, node="b"))
    assert TEXT_MAX == len(board.words)
    board.task((), finish("b"))
    assert "" == board.words


def screen(*parts) -> str:
    console = Console(width=60, color_system=None)
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return captured.get()


def test_a_drawing_says_how_each_node_stands():
    board = Board(["a", "b", "c"])
    for n in range(4):
        board.task((), start("a", str(n)))
    board.task((), finish("a", "0"))
    board.task((), start("b"))
    board.task((), finish("b", interrupts=[1]))
    first, second, third = screen(drawn(board, 9)).splitlines()
    assert first.startswith("> a")
    assert "1/4" in first
    assert second.startswith("? b")
    assert "  c" == third.rstrip()


def test_of_many_nodes_those_that_run_are_drawn():
    board = Board([f"n{i}" for i in range(50)])
    board.task((), start("n49"))
    shown = screen(drawn(board, 5))
    assert "> n49" in shown
    assert "and 45 more" in shown


def test_the_last_lines_of_a_model_are_drawn():
    board = Board(["a"])
    board.message((), message("one\ntwo\nthree\nfour " + "x" * 80))
    shown = screen(*spoken(board, 60)).splitlines()
    assert ["a:", "  two", "  three"] == [line.rstrip() for line in shown[:3]]
    assert 4 == len(shown)
