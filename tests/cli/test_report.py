"""`towpath report` writes one page, or says why not."""

import pytest


@pytest.fixture
def thread(towpath):
    towpath.run("straight", {"count": 1}, "t")
    return towpath


def test_a_report_is_written_to_a_file(thread):
    done = thread("report", "graphs.py:straight", "--thread", "t", "-o", "r.html")
    assert (0, "r.html\n") == (done.exit_code, done.stdout)
    assert "thread <b>t</b>" in (thread.folder / "r.html").read_text("utf-8")


def test_json_names_the_file(thread, last):
    words = ("--thread", "t", "-o", "r.html", "--json")
    assert {"file": "r.html"} == last(thread("report", "graphs.py:straight", *words))


def test_a_report_goes_to_standard_output(thread):
    done = thread("report", "graphs.py:straight", "--thread", "t", "-o", "-")
    assert done.stdout.startswith("<!doctype html>")


def test_a_thread_that_is_not_there_has_no_report(thread):
    done = thread("report", "graphs.py:straight", "--thread", "u")
    assert 2 == done.exit_code
    assert "'u'" in done.output


def test_a_file_that_cannot_be_written_is_named(thread):
    done = thread("report", "graphs.py:straight", "--thread", "t", "-o", "no/r.html")
    assert 2 == done.exit_code
    assert "no/r.html" in done.output
