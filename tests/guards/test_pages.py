"""Pages are played: what they show that is not so is an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pages  # noqa: E402


@pytest.fixture
def play(tmp_path, monkeypatch):
    """Write a page, play it, and return its pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setitem(sys.modules, "examples_of_a_page", None)

    def play(text: str) -> list[tuple[Path, str]]:
        page = tmp_path / "page.md"
        page.write_text(text, "utf-8")
        return list(pages.Stage().play(page))

    return play


def fence(words: str, code: str) -> str:
    return f"```{words}\n{code}\n```\n"


def test_blocks_share_a_module(play):
    play(fence("python", "a = 1") + "text\n" + fence("python", "assert a == 1"))


def test_an_error_names_the_line_of_the_page(play):
    with pytest.raises(ZeroDivisionError) as caught:
        play("# title\n\n" + fence("python", "a = 1\n1 / 0"))
    assert 5 == caught.traceback[-1].lineno + 1


@pytest.mark.parametrize(
    "page",
    [
        fence("python", "assert False"),
        fence("python raises", "1"),
        fence('text of="[1, 2]"', "[1, 3]"),
        fence("console", "$ towpath explain L101 --json\nnothing"),
        fence("console", "$ towpath explain nothing; echo $?\n...\n0"),
    ],
)
def test_what_is_not_so_is_an_error(play, page):
    with pytest.raises(AssertionError):
        play(page)


def test_commands_see_the_files_of_a_page_as_they_are_by_then(play):
    graph = """\
from towpath import START, StateGraph
builder = StateGraph(dict).add_node("{0}", print).add_edge(START, "{0}")
"""
    look = "$ towpath draw graph.py:builder\n...{0}..."
    play(
        fence('python title="graph.py"', graph.format("one"))
        + fence("console", look.format("one"))
        + fence('python title="graph.py"', graph.format("another"))
        + fence("console", look.format("another"))
    )


def test_what_changes_the_machine_is_left_out(play):
    play(fence("console", "$ pip install nothing-of-that-name"))


def test_what_needs_a_package_that_is_missing_is_left_out(play):
    play(fence('python needs="no_such_package"', "assert False"))


def test_pictures_are_drawn_where_they_stand(play, tmp_path):
    image = '<!-- draw: sketch(title, "a -> b: goes") -->\n![of it](pictures/it.svg)\n'
    ((file, svg),) = play(fence("python", "title = 'A picture'") + image)
    assert tmp_path / "pictures" / "it.svg" == file
    assert svg.startswith("<svg")
    for word in ("A picture", "a", "b", "goes"):
        assert f">{word}<" in svg
