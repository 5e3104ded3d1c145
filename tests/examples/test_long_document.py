"""The long document: killed and resumed, no chunk that was summarised is again."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from tests.examples.running import (
    EXAMPLES,
    counted,
    finished,
    run,
    stop_after,
    towpath,
)

pytest.importorskip("langchain_core")

PROGRAM = EXAMPLES / "long_document.py"
CHUNKS = 60


def document(folder: Path) -> Path:
    """Write a text whose paragraphs fill a chunk of 1000 letters each."""
    path = folder / "long.txt"
    sentence = "The boat number {} went through the lock number {} in the morning. "
    path.write_text(
        "\n\n".join(
            "".join(sentence.format(n, m) for m in range(14)) for n in range(CHUNKS)
        )
    )
    return path


@pytest.mark.slow
def test_killed_and_resumed_no_finished_chunk_is_summarised_twice(
    tmp_path: Path,
) -> None:
    log, db = tmp_path / "log", tmp_path / "towpath.db"
    start = [PROGRAM, document(tmp_path), "--chunk", 1000, "--thread", "t"]
    start += ["--slow", 0.05, "--log", log]
    resumed = ["-m", "towpath.cli", "resume", f"{PROGRAM}:graph", "--thread", "t"]
    seed = random.randrange(1 << 32)
    done: set[str] = set()
    for words in (start, resumed, start):
        more = random.Random(seed).randint(10, 16)
        stop_after(tmp_path, log, counted(log).total() + more, *words)
        recorded = finished(db, "summaries", "{level}.{index}")
        # More were begun than there are workers, so some had ended.
        assert done < recorded, f"seed {seed}: nothing was recorded"
        done, before = recorded, counted(log)

    end = run(tmp_path, *resumed)
    assert 0 == end.returncode, f"seed {seed}: {end.stderr}"
    after = counted(log)
    repeated = {name for name in after if after[name] > before[name] > 0}
    assert set() == repeated & done, f"seed {seed}"
    # 60 chunks, then 10 groups of 6, then 2, then 1.
    assert CHUNKS + 10 + 2 + 1 == len(after)
    summary = (tmp_path / "summary.md").read_text()
    assert "## Level 0: 60 parts" in summary
    assert "\n60. The boat number 59" in summary


@pytest.mark.slow
def test_stopped_with_ctrl_c_it_says_how_to_go_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    words = (PROGRAM, document(tmp_path), "--slow", 0.2, "--log", log, "--thread", "t")
    code, printed = stop_after(tmp_path, log, 1, *words, by=signal.SIGINT)
    assert 130 == code
    assert "stopped; run the same again, or go on with:" in printed
    assert "--thread t" in printed
    assert "Traceback" not in printed
    assert 0 == towpath(tmp_path, "resume", "long_document", "--thread", "t").returncode


@pytest.mark.slow
def test_a_document_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    log, path = tmp_path / "log", document(tmp_path)
    words = (PROGRAM, path, "--slow", 0.1, "--log", log)
    stop_after(tmp_path, log, 2, *words)
    path.write_text(path.read_text() + "\n\nOne more.")
    changed = run(tmp_path, *words)
    assert 1 == changed.returncode
    assert "changed since it was split" in changed.stderr
    assert "use another --thread" in changed.stderr


def test_it_summarises_the_docs_of_the_project_by_default(example) -> None:
    assert 0 == example("long_document").main([])
    assert Path("summary.md").read_text().startswith("# Summary of docs\n")


@pytest.mark.parametrize(
    "words", [["empty.txt"], ["missing.txt"], ["--chunk", "9"], ["--chunk", "x"]]
)
def test_wrong_words_are_refused_before_anything_runs(
    example, words: list[str]
) -> None:
    Path("empty.txt").write_text(" \n")
    with pytest.raises(SystemExit, match="2"):
        example("long_document").main(words)
    assert not Path("towpath.db").exists()


@pytest.mark.parametrize("seed", range(20))
def test_chunks_are_the_whole_text_and_none_is_too_long(example, seed: int) -> None:
    module = example("long_document")
    chance = random.Random(seed)
    text = "".join(chance.choice("ab \n\n") for _ in range(chance.randrange(2000)))
    size = chance.randrange(1, 300)
    cut = [text[begin:end] for begin, end in module.spans(text, size)]
    assert text == "".join(cut)
    assert all(0 < len(one) <= size for one in cut)


def test_a_document_of_one_chunk_is_summarised_once(example, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("A short text about a lock and its keeper.")
    done = example("long_document").build().invoke({"path": "short.txt"})
    assert 1 == len(done["summaries"])
    assert "A short text" in (tmp_path / "summary.md").read_text()
