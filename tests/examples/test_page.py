"""The page about the examples shows what they print, and forgets none."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.examples.running import EXAMPLES, ROOT

from towpath.cli.app import program
from towpath.cli.target import load_graph

PAGE = ROOT / "docs" / "examples.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# A model, and what the examples share, are no examples themselves.
NAMES = sorted({path.stem for path in EXAMPLES.glob("*.py")} - {"models", "program"})


def commands() -> list[tuple[str, str]]:
    """Return the lines after `$` in order, each with what it should print."""
    text = PAGE.read_text("utf-8")
    return [
        (line, output)
        for block in re.findall(r"^```text\n(.*?)^```$", text, re.M | re.S)
        for command in re.split(r"^\$ ", block, flags=re.M)[1:]
        for line, _, output in [command.partition("\n")]
    ]


@pytest.mark.slow
def test_commands_of_the_page_print_what_it_shows(
    example, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_core")
    (tmp_path / "examples").symlink_to(EXAMPLES)
    checker = doctest.OutputChecker()
    for line, expected in commands():
        line, _, echo = line.partition("; ")
        first, *words = shlex.split(line)
        if first == "python":
            code = example(Path(words[0]).stem).main(words[1:])
            shown = capsys.readouterr().out
        else:
            assert "towpath" == first
            result = CliRunner().invoke(program, words)
            code, shown = result.exit_code, result.output
        shown += f"{code}\n" if echo == "echo $?" else ""
        assert checker.check_output(expected, shown, FLAGS), f"$ {line}\n{shown}"


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_on_the_page_and_in_the_readme(name: str) -> None:
    for page in (PAGE, ROOT / "README.md"):
        assert f"examples/{name}.py" in page.read_text("utf-8"), page.name


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_a_graph_that_can_be_drawn_and_has_no_mistake(
    example, name: str
) -> None:
    pytest.importorskip("langchain_core")
    graph = load_graph(str(EXAMPLES / f"{name}.py:graph"))
    assert [] == [one for one in graph.lint() if one.severity != "note"]
    for command in (["draw"], ["draw", "--format", "mermaid", "--xray"]):
        target = f"{EXAMPLES / name}.py:graph"
        drawn = CliRunner().invoke(program, [*command, target])
        assert 0 == drawn.exit_code, drawn.output
        assert "start" in drawn.output
