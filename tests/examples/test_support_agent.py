"""The support agent: money moves once, and only when a person has agreed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.examples.running import EXAMPLES, run, towpath

from towpath.testing import crash_everywhere

pytest.importorskip("langchain_core")

PROGRAM = EXAMPLES / "support_agent.py"
THREAD = ("--thread", "support")
DIES_AFTER_PAYING = f"""
import os, sys
sys.path.insert(0, {str(EXAMPLES)!r})
import support_agent

pay_back = support_agent.pay_back
support_agent.pay_back = lambda *given: (pay_back(*given), os._exit(9))
support_agent.main(["--answer", "approve"])
"""


def refunds(folder: Path) -> list[tuple[int, int]]:
    with closing(sqlite3.connect(folder / "shop.db")) as database:
        return database.execute("SELECT number, cents FROM refunds").fetchall()


@pytest.mark.slow
def test_a_refund_waits_for_a_person_and_is_paid_when_resumed(tmp_path: Path) -> None:
    asked = run(tmp_path, PROGRAM)
    assert 3 == asked.returncode, asked.stderr
    assert "? Refund 39.95 EUR of order 1002 (kettle)?" in asked.stdout
    assert "resume" in asked.stdout
    assert [] == refunds(tmp_path)

    wrong = towpath(tmp_path, "resume", "support_agent", *THREAD, "--answer", '"yes"')
    assert 2 == wrong.returncode
    assert "one of approve, reject" in wrong.stderr
    done = towpath(
        tmp_path, "resume", "support_agent", *THREAD, "--answer", '"approve"'
    )
    assert 0 == done.returncode, done.stderr
    assert "Done: we paid back 39.95 EUR for order 1002." in done.stdout
    assert [(1002, 3995)] == refunds(tmp_path)

    # The conversation goes on, and there is nothing left to pay back.
    again = run(tmp_path, PROGRAM, "Refund order 1002 once more!")
    assert 0 == again.returncode, again.stderr
    assert "support: Your order is kettle; 0.00 EUR of it can be" in again.stdout
    assert [(1002, 3995)] == refunds(tmp_path)


@pytest.mark.slow
def test_a_process_that_dies_after_paying_does_not_pay_again(tmp_path: Path) -> None:
    died = run(tmp_path, "-c", DIES_AFTER_PAYING)
    assert 9 == died.returncode, died.stderr
    assert [(1002, 3995)] == refunds(tmp_path)

    done = run(tmp_path, PROGRAM)
    assert 0 == done.returncode, done.stderr
    assert "going on with thread support" in done.stdout
    assert "paid back 39.95 EUR" in done.stdout
    assert [(1002, 3995)] == refunds(tmp_path)


def test_a_message_does_not_get_lost_while_a_question_is_open(
    example, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("support_agent")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert 3 == module.main(["Refund order 1001."])
    assert 2 == module.main(["Where is order 1002?"])
    told = capsys.readouterr().err
    assert "is not done with something else" in told
    assert "resume" in told


def test_a_person_is_asked_again_until_the_answer_is_one(
    example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = iter(["perhaps", "", "approve"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: next(said))
    assert 0 == example("support_agent").main(["Refund order 1001."])
    assert [] == list(said)
    assert [(1001, 2400)] == refunds(tmp_path)


@pytest.mark.slow
def test_it_survives_a_crash_at_every_commit(example, tmp_path: Path) -> None:
    module = example("support_agent")
    wish = {"messages": ["Refund order 1001."]}
    paid = []

    def forget() -> None:
        if module.SHOP.exists():
            paid.append(refunds(tmp_path))
            module.SHOP.unlink()

    crash_everywhere(module.build(), wish, answers=["approve"], before_each=forget)
    assert paid
    assert all(one == [(1001, 2400)] for one in paid)


def test_a_person_who_rejects_is_obeyed(example, tmp_path: Path) -> None:
    module = example("support_agent")
    assert 0 == module.main(["Refund 1003", "--answer", "reject"])
    assert [] == refunds(tmp_path)


@pytest.mark.parametrize("cents", [0, -5, 1801])
def test_what_a_model_asks_for_is_checked_before_a_person_is_asked(
    example, cents: int
) -> None:
    module = example("support_agent")
    with pytest.raises(ValueError, match="1800 cents of order 1003"):
        module.refundable(1003, cents)
