"""Research: parts side by side, a text that is revised, and a report of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.examples.running import EXAMPLES, run

from towpath.testing import crash_everywhere

pytest.importorskip("langchain_core")

PROGRAM = EXAMPLES / "research.py"
QUESTION = "Why do lock gates leak?"
PAGES = {
    "gates.md": "# Gates\n\nLock gates leak when their mitre posts are worn. "
    "They are made of oak, and are renewed every 25 years.\n",
    "boats.md": "# Boats\n\nA narrow boat is steered with a tiller, which is made of "
    "steel and is painted in bright colours by its owner.\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    return pages


@pytest.mark.slow
def test_a_question_is_studied_in_parts_and_the_text_revised(
    tmp_path: Path, folder: Path
) -> None:
    words = (PROGRAM, QUESTION, "--folder", folder, "--report", "out/report.md")
    done = run(tmp_path, *words)
    assert 0 == done.returncode, done.stderr
    assert 3 == done.stdout.count("study: ")
    assert 2 == done.stdout.count("write: ")
    assert "review: Each claim needs its source." in done.stdout
    report = (tmp_path / "out" / "report.md").read_text()
    assert report.startswith(f"# {QUESTION}\n")
    assert 3 == report.count("mitre posts are worn. [gates.md]")
    assert "- gates.md\n" in report


def test_a_thread_that_researches_again_begins_anew(example, folder: Path) -> None:
    for _ in range(2):
        assert 0 == example("research").main([QUESTION, "--folder", str(folder)])
        report = Path("research.md").read_text()
        assert 3 == report.count("mitre posts are worn. [gates.md]")


@pytest.mark.slow
def test_the_command_line_takes_a_question_alone(tmp_path: Path) -> None:
    target = f"{PROGRAM}:graph"
    done = run(
        tmp_path, "-m", "towpath.cli", "run", target, "--input", '{"question": "send?"}'
    )
    assert 0 == done.returncode, done.stderr
    assert (tmp_path / "research.md").exists()


@pytest.mark.slow
def test_it_survives_a_crash_at_every_commit(example, folder: Path) -> None:
    graph = example("research").build()
    values = {"question": QUESTION, "folder": str(folder)}
    report = crash_everywhere(graph, values)
    assert 1 == report.values["revisions"]


def test_a_review_that_is_never_content_does_not_go_on_for_ever(
    example, folder: Path
) -> None:
    module = example("research")
    module.script = lambda messages: "Worse."
    done = module.build().invoke({"question": QUESTION, "folder": str(folder)})
    assert module.REVISIONS_MAX == done["revisions"]
    assert Path(done["report"]).exists()


@pytest.mark.parametrize(
    "words", [["  "], ["x", "--folder", "nowhere"], ["x", "--model", "nonsense"]]
)
def test_wrong_words_are_refused_before_anything_runs(
    example, tmp_path: Path, words: list[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        example("research").main(words)
    assert [] == list(tmp_path.iterdir())
