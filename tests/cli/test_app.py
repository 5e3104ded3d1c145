"""The commands: what they print, what they keep, and their exit codes."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_run_prints_the_result_and_exits_with_0(towpath):
    done = towpath.run("straight", {"count": 1}, "t")
    assert 0 == done.exit_code, done.output
    assert {"count": 2, "seen": ["add", "later"]} == json.loads(done.stdout)


def test_progress_goes_to_standard_error_as_plain_lines(towpath):
    done = towpath.run("straight", {"count": 1}, "t")
    assert "step 1: add done\nstep 2: later done\n" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("graph", ["compiled", "factory", "straight"])
def test_every_kind_of_target_is_kept_in_the_database(towpath, graph):
    assert 0 == towpath.run(graph, {"count": 1}, "t", "--db", "x.db").exit_code
    shown = towpath("state", "--thread", "t", "--db", "x.db", "--json")
    assert 2 == json.loads(shown.stdout)["values"]["count"]


def test_a_checkpointer_of_the_graph_is_replaced_only_on_request(towpath):
    towpath.run("remembering", {"count": 1}, "t")
    assert 2 == towpath("state", "--thread", "t").exit_code
    towpath.run("remembering", {"count": 1}, "t", "--db", "towpath.db")
    assert 0 == towpath("state", "--thread", "t").exit_code


def test_a_run_without_a_thread_gets_one_and_tells_it(towpath, last):
    done = towpath("run", "graphs.py:straight", "--input", '{"count": 1}', "--json")
    thread = last(done)["thread"]
    assert 0 == towpath("state", "--thread", thread).exit_code


def test_input_comes_from_a_file_or_standard_input(towpath):
    (towpath.folder / "in.json").write_text('{"count": 4}')
    given = towpath("run", "graphs.py:straight", "--input", "@in.json")
    assert 5 == json.loads(given.stdout)["count"]
    given = towpath("run", "graphs.py:straight", "--input", "-", stdin='{"count": 6}')
    assert 7 == json.loads(given.stdout)["count"]


def test_json_prints_chunks_and_ends_with_the_outcome(towpath, last):
    done = towpath.run("straight", {"count": 1}, "t", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"tasks", "updates", "end"} == {line["type"] for line in lines}
    assert {"add": {"count": 2, "seen": ["add"]}} in [
        line["data"] for line in lines if line["type"] == "updates"
    ]
    assert ("done", 2) == (last(done)["status"], last(done)["values"]["count"])
    assert "" == done.stderr


def test_streams_are_printed_when_asked_for(towpath):
    done = towpath.run("straight", {"count": 1}, "t", "--stream", "updates,values")
    assert '[updates] {"later": {"seen": ["later"]}}' in done.stdout
    assert '[values] {"count": 1' in done.stdout


def test_failure_exits_with_1_and_says_what_and_how_to_go_on(towpath, last):
    failed = towpath.run("straight", {"count": 13}, "t")
    assert 1 == failed.exit_code
    assert "ValueError: thirteen is refused" in failed.stderr
    assert "resume graphs.py:straight --thread t" in failed.stderr
    assert "Traceback" not in failed.output

    failed = towpath.run("straight", {"count": 13}, "u", "--json")
    assert ("failed", "ValueError") == (
        last(failed)["status"],
        last(failed)["error"]["type"],
    )


@pytest.mark.parametrize("words", [["--debug", "run"], ["run", "--debug"]])
def test_debug_shows_the_traceback_of_user_code(towpath, words):
    failed = towpath(*words, "graphs.py:straight", "--input", '{"count": 13}')
    assert 1 == failed.exit_code
    assert "in add\n" in failed.stderr


def test_a_question_exits_with_3_and_an_answer_finishes(towpath, last):
    asked = towpath.run("asking", {"count": 1}, "t")
    assert 3 == asked.exit_code
    assert "? go?" in asked.stdout
    assert "1. a" in asked.stdout
    assert "--answer JSON" in asked.stderr

    still = towpath.resume("asking", "t")
    assert 3 == still.exit_code
    assert "? go?" in still.stdout

    done = towpath.resume("asking", "t", "--answer", '"yes"', "--json")
    assert 0 == done.exit_code
    assert ["add", "yes"] == last(done)["values"]["seen"]


def test_null_is_an_answer(towpath, last):
    towpath.run("asking", {"count": 1}, "t")
    done = towpath.resume("asking", "t", "--answer", "null", "--json")
    assert ["add", None] == last(done)["values"]["seen"]


def test_an_answer_that_is_no_choice_is_refused_before_the_node_runs(towpath, last):
    """A node that fails on an answer it took is not asked again."""
    towpath.run("choosing", {}, "t")
    refused = towpath.resume("choosing", "t", "--answer", '"later"')
    assert 2 == refused.exit_code
    assert '"later" is not what the question wants: one of send, drop' in refused.stderr
    done = towpath.resume("choosing", "t", "--answer", '"drop"', "--json")
    assert ("done", ["drop"]) == (last(done)["status"], last(done)["values"]["seen"])


def test_several_questions_are_answered_by_id(towpath, last):
    asked = last(towpath.run("both", {}, "t", "--json"))
    ids = {one["value"]: one["id"] for one in asked["interrupts"]}
    assert {"east?", "west?"} == set(ids)

    bare = towpath.resume("both", "t", "--answer", "1")
    assert 2 == bare.exit_code
    assert "ambiguous" in bare.stderr

    partly = towpath.resume("both", "t", "--answer", f'{ids["west?"]}="w"', "--json")
    assert 3 == partly.exit_code
    assert ["east?"] == [one["value"] for one in last(partly)["interrupts"]]

    done = towpath.resume("both", "t", "--answer", f'{ids["east?"][:8]}="e"', "--json")
    assert 0 == done.exit_code
    assert ["e", "w"] == last(done)["values"]["seen"]


def test_a_breakpoint_waits_and_resume_passes_it(towpath, last):
    stopped = towpath.run("pausing", {"count": 1}, "t")
    assert 3 == stopped.exit_code
    assert "stopped before later" in stopped.stderr
    assert 0 == towpath.resume("pausing", "t").exit_code


def test_a_failed_run_is_resumed_where_it_failed(towpath, last):
    towpath.run("straight", {"count": 13}, "t")
    mended = towpath.file.read_text().replace("== 13", "== 14")
    (towpath.folder / "mended.py").write_text(mended)
    done = towpath("resume", "mended.py:straight", "--thread", "t", "--json")
    assert 0 == done.exit_code
    assert 14 == last(done)["values"]["count"]


def test_resume_of_a_finished_thread_shows_its_result(towpath):
    towpath.run("straight", {"count": 1}, "t")
    again = towpath.resume("straight", "t")
    assert 0 == again.exit_code
    assert 2 == json.loads(again.stdout)["count"]


def test_an_answer_to_a_thread_that_asks_nothing_is_refused(towpath):
    towpath.run("straight", {"count": 1}, "t")
    assert 2 == towpath.resume("straight", "t", "--answer", "1").exit_code


def test_new_input_does_not_trample_on_an_open_question(towpath):
    towpath.run("asking", {"count": 1}, "t")
    refused = towpath.run("asking", {"count": 1}, "t")
    assert 2 == refused.exit_code
    assert "waits for an answer" in refused.stderr
    assert 3 == towpath.run("asking", {"count": 1}, "t", "--abandon").exit_code


def test_threads_are_listed_newest_first_with_open_questions(towpath):
    towpath.run("straight", {"count": 1}, "old")
    towpath.run("asking", {"count": 1}, "new")
    shown = towpath("threads", "--json").stdout.splitlines()
    listed = [json.loads(line) for line in shown]
    assert ["new", "old"] == [one["id"] for one in listed]
    assert [1, 0] == [len(one["questions"]) for one in listed]
    lines = towpath("threads").stdout.splitlines()
    assert [
        ["thread", "status"],
        ["new", "waiting"],
        ["old", "done"],
    ] == [line.split("\t")[:2] for line in lines]


def test_history_lists_every_checkpoint_newest_first(towpath):
    towpath.run("straight", {"count": 1}, "t")
    for words in ((), ("graphs.py:straight",)):
        shown = towpath("history", *words, "--thread", "t", "--json")
        lines = [json.loads(line) for line in shown.stdout.splitlines()]
        assert [2, 1, 0, -1] == [line["step"] for line in lines]
        following = [[], ["later"], ["add"], ["__start__"]]
        assert following == [line["next"] for line in lines]
        assert "input" == lines[-1]["source"]
    limited = towpath("history", "--thread", "t", "--limit", "1", "--json")
    assert 1 == len(limited.stdout.splitlines())


def test_state_shows_an_older_checkpoint(towpath):
    towpath.run("straight", {"count": 1}, "t")
    shown = towpath("history", "--thread", "t", "--json").stdout.splitlines()
    older = json.loads(shown[2])["checkpoint"]
    words = ("--thread", "t", "--checkpoint", older, "--json")
    state = json.loads(towpath("state", "graphs.py:straight", *words).stdout)
    assert (1, ["add"]) == (state["values"]["count"], state["next"])


def test_an_unknown_checkpoint_of_a_known_thread_is_named(towpath):
    towpath.run("straight", {"count": 1}, "t")
    for target in ((), ("graphs.py:straight",)):
        wrong = towpath("state", *target, "--thread", "t", "--checkpoint", "zzz")
        assert 2 == wrong.exit_code
        assert "thread 't' has no checkpoint 'zzz'" in wrong.stderr


def test_the_next_nodes_are_known_without_the_graph(towpath):
    towpath.run("joining", {}, "t")
    shown = towpath("history", "--thread", "t", "--json").stdout.splitlines()
    following = [sorted(json.loads(line)["next"]) for line in shown]
    assert [[], ["end"], ["left", "right"], ["part"] * 3, ["__start__"]] == following
    table = towpath("history", "--thread", "t").stdout
    assert "\tpart x3\t" in table


def test_the_threads_tell_how_they_stand(towpath):
    towpath.run("straight", {"count": 13}, "failed")
    towpath.run("pausing", {"count": 1}, "unfinished")
    towpath.run("straight", {"count": 1}, "done")
    listed = map(json.loads, towpath("threads", "--json").stdout.splitlines())
    assert all(one["id"] == one["status"] for one in listed)


@pytest.mark.parametrize("wrong", [[1], {"zz": 1}, {"seen": 3}, None])
def test_a_refused_input_leaves_no_thread_behind(towpath, last, wrong):
    refused = towpath.run("straight", wrong, "t")
    assert 2 == refused.exit_code, refused.output
    assert "the input was refused" in refused.stderr
    assert "resume" not in refused.stderr
    assert "__start__" not in refused.stderr.replace("written by `__start__`", "")
    assert "" == towpath("threads", "--json").stdout
    assert "refused" == last(towpath.run("straight", wrong, "t", "--json"))["status"]


def test_a_refused_input_does_not_spoil_a_thread_that_was_there(towpath):
    towpath.run("straight", {"count": 1}, "t")
    assert 2 == towpath.run("straight", {"zz": 1}, "t").exit_code
    assert "\tdone\t" in towpath("threads").stdout
    done = towpath.run("straight", {"count": 5}, "t")
    assert 0 == done.exit_code, done.stderr
    assert 6 == json.loads(done.stdout)["count"]


def test_a_step_that_cannot_be_folded_is_neither_done_nor_refused(towpath):
    assert 1 == towpath.run("misfit", {}, "t").exit_code
    again = towpath.resume("misfit", "t")
    assert 1 == again.exit_code
    assert "can only concatenate list" in again.stderr
    assert "is not finished" in towpath.run("misfit", {}, "t").stderr


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_node_that_fails_first_is_no_refused_input(towpath, durability):
    words = ("--durability", durability)
    failed = towpath.run("straight", {"count": 13}, "t", *words)
    assert 1 == failed.exit_code
    assert "failed after" in failed.stderr


def test_what_nodes_print_stays_out_of_json(towpath):
    done = towpath.run("printing", {"count": 1}, "t", "--json")
    assert "end" == [json.loads(line) for line in done.stdout.splitlines()][-1]["type"]
    assert "a word from the node" in done.stderr
    done = towpath.run("printing", {"count": 1}, "u")
    assert "a word from the node" in done.stdout


def test_a_state_is_one_line_of_json(towpath):
    towpath.run("straight", {"count": 1}, "t")
    assert 1 == towpath("state", "--thread", "t", "--json").stdout.count("\n")


def test_a_failure_is_told_once_and_without_ids(towpath):
    failed = towpath.run("straight", {"count": 13}, "t")
    assert 1 == failed.stderr.count("thirteen is refused")
    assert "step 1: add failed\n" in failed.stderr
    assert "\nin node `add`, step 1\n" in failed.stderr


def test_state_shows_tasks_and_questions(towpath):
    towpath.run("asking", {"count": 1}, "t")
    shown = towpath("state", "graphs.py:asking", "--thread", "t").stdout
    assert "task ask: asks" in shown
    assert "? go?" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["graphs.py:strait"], "did you mean 'straight'"),
        (["graphs.py:number"], "is int, not a graph"),
        (["graphs.py:State"], "is a class, not a graph"),
        (["towpath.graph:StateGraph"], "is a class, not a graph"),
        (["graphs.py:straight", "--config", "recursion_limt=1"], "misspelt"),
        (["graphs.py:needy"], "takes parameters"),
        (["graphs.py"], "does not say which graph"),
        (["graph.py:straight"], "did you mean 'graphs.py'"),
        (["graphz:straight"], "did you mean 'graphs'"),
        (["graphs.py:straight", "--stream", "valeus"], "did you mean 'values'"),
        (["graphs.py:straight", "--config", "3"], "neither name=value"),
        (["graphs.py:straight", "--context", "{"], "--context is not JSON"),
        (["graphs.py:straight", "--db", "no/where.db"], "there is no folder"),
        (["graphs.py:straight", "--db", "graphs.py"], "not a SQLite database"),
    ],
)
def test_a_wrong_word_exits_with_2_and_names_the_nearest(towpath, words, message):
    wrong = towpath("run", *words, "--input", "{}")
    assert 2 == wrong.exit_code
    assert message in wrong.stderr
    assert "Traceback" not in wrong.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "a text is written '\"hello\"'"),
        ("{count: 1}", "quote it for the shell"),
        ("@missing.json", "cannot read 'missing.json'"),
    ],
)
def test_input_that_is_no_json_exits_with_2(towpath, text, message):
    wrong = towpath("run", "graphs.py:straight", "--input", text)
    assert 2 == wrong.exit_code
    assert message in wrong.stderr


def test_target_code_that_fails_exits_with_1(towpath):
    assert 1 == towpath("run", "graphs.py:failing", "--input", "{}").exit_code
    (towpath.folder / "broken.py").write_text("import not_there_at_all\n")
    broken = towpath("run", "broken.py:graph", "--input", "{}")
    assert 1 == broken.exit_code
    assert "No module named 'not_there_at_all'" in broken.stderr


def test_a_graph_that_cannot_be_built_exits_with_1(towpath):
    text = f"{towpath.file.read_text()}\nasking.add_edge('ask', 'nowhere')\n"
    (towpath.folder / "unwired.py").write_text(text)
    wrong = towpath("run", "unwired.py:asking", "--input", "{}")
    assert 1 == wrong.exit_code
    assert "nowhere" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_file_is_loaded_once_and_not_mistaken_for_another(towpath):
    other = towpath.folder / "other"
    other.mkdir()
    (other / "json.py").write_text(towpath.file.read_text())
    done = towpath("run", "other/json.py:straight", "--input", '{"count": 1}')
    assert 0 == done.exit_code, done.output


@pytest.mark.parametrize("command", ["state", "history"])
def test_an_unknown_thread_names_the_nearest(towpath, command):
    towpath.run("straight", {"count": 1}, "customer-17")
    wrong = towpath(command, "--thread", "customer-71")
    assert 2 == wrong.exit_code
    assert "did you mean 'customer-17'" in wrong.stderr


def test_a_missing_database_is_not_created_by_looking(towpath):
    assert 2 == towpath("threads").exit_code
    assert not (towpath.folder / "towpath.db").exists()


@pytest.mark.parametrize("limit", ['{"recursion_limit": 1}', "recursion_limit=1"])
def test_config_reaches_the_run(towpath, last, limit):
    words = ("--config", limit, "--config", "who=me")
    failed = towpath.run("straight", {"count": 1}, "t", "--json", *words)
    assert (1, "GraphRecursionError") == (
        failed.exit_code,
        last(failed)["error"]["type"],
    )


def test_the_database_is_sqlite(towpath):
    towpath.run("straight", {"count": 1}, "t", "--db", "x.db")
    with closing(sqlite3.connect("x.db")) as connection:
        assert ("ok",) == connection.execute("pragma integrity_check").fetchone()


def as_address(dsn):
    """Write a connection string as an address, with a password to hide."""
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(dsn)
    place = {name: known[name] for name in ("host", "port", "options") if name in known}
    user = f"{known['user']}:secret"
    return f"postgresql://{user}@/{known['dbname']}?{urlencode(place, quote_via=quote)}"


def test_a_server_may_keep_the_threads(towpath, postgres):
    address = as_address(postgres)
    ran = towpath.run("asking", {"count": 1}, "t", "--db", address)
    assert 3 == ran.exit_code
    assert "secret" not in ran.output
    shown = towpath("threads", "--db", address, "--json")
    assert [("t", "waiting")] == [
        (one["id"], one["status"]) for one in map(json.loads, shown.output.splitlines())
    ]


def test_a_server_that_is_not_there_is_a_problem(towpath):
    pytest.importorskip("psycopg")
    ran = towpath("threads", "--db", "postgresql://x:secret@127.0.0.1:1/x")
    assert 2 == ran.exit_code
    assert "hint: is the server running" in ran.output
    assert "secret" not in ran.output


@pytest.mark.slow
def test_a_reader_that_leaves_ends_the_program_quietly(towpath):
    towpath.run("straight", {"count": 1}, "t")
    program = subprocess.Popen(
        [sys.executable, "-m", "towpath.cli", "state", "--thread", "t"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    program.stdout.close()
    assert b"" == program.stderr.read()
    program.stderr.close()
    assert 141 == program.wait(60)


# Upkeep


def test_prune_keeps_the_newest_checkpoints_and_tells_what_went(towpath):
    towpath.run("straight", {"count": 1}, "t")
    towpath.run("straight", {"count": 1}, "other")
    tried = towpath("prune", "--keep", "2", "--thread", "t", "--dry-run", "--json")
    assert 0 == tried.exit_code, tried.output
    told = json.loads(tried.stdout)
    assert (1, 2, True) == (told["threads"], told["checkpoints"], told["dry_run"])
    done = towpath("prune", "--keep", "2", "--thread", "t")
    assert done.stdout.startswith("deleted 2 checkpoints of 1 threads, ")
    history = towpath("history", "--thread", "t", "--json").stdout.splitlines()
    assert 2 == len(history)
    assert (
        4
        == len(towpath("history", "--thread", "other", "--json").stdout.split("\n")) - 1
    )
    young = towpath("prune", "--older-than", "30d")
    assert "deleted nothing\n" == young.stdout


def test_sweep_deletes_threads_but_those_that_wait(towpath):
    towpath.run("straight", {"count": 1}, "t")
    towpath.run("asking", {"count": 1}, "waits")
    assert "deleted nothing\n" == towpath("sweep", "--ttl", "1h").stdout
    swept = towpath("sweep", "--ttl", "0s", "--vacuum", "--json")
    assert 1 == json.loads(swept.stdout)["threads"]
    assert 2 == towpath("state", "--thread", "t").exit_code
    assert 0 == towpath("state", "--thread", "waits").exit_code
    assert 0 == towpath("sweep", "--ttl", "0s", "--waiting").exit_code
    assert 2 == towpath("state", "--thread", "waits").exit_code


@pytest.mark.parametrize("age", ["", "30", "d", "-1d", "99999999999999d", "\u0663d"])
def test_what_is_no_age_is_a_problem(towpath, age):
    towpath.run("straight", {"count": 1}, "t")
    assert 2 == towpath("prune", "--older-than", age).exit_code


def test_nothing_is_pruned_unless_something_says_what(towpath):
    towpath.run("straight", {"count": 1}, "t")
    assert 2 == towpath("prune").exit_code
    assert 0 == towpath("prune", "--keep", "1").exit_code


def test_an_unknown_thread_is_not_pruned(towpath):
    towpath.run("straight", {"count": 1}, "t")
    assert 2 == towpath("prune", "--thread", "tt").exit_code


def test_an_encrypted_database_needs_its_key(towpath, monkeypatch):
    monkeypatch.setenv("TOWPATH_AES_KEY", "ab" * 32)
    assert 3 == towpath.run("asking", {"count": 1}, "t").exit_code
    assert "waiting" in towpath("threads").stdout
    monkeypatch.delenv("TOWPATH_AES_KEY")
    refused = towpath("threads")
    assert 1 == refused.exit_code
    assert "TOWPATH_AES_KEY" in refused.stderr


def test_who_gave_an_answer_with_which_a_node_failed_is_told_both_ways_on(towpath):
    towpath.run("failing_after", {}, "t")
    for words in (("--answer", '"bad"'), (), ("--answer", '"good"')):
        failed = towpath.resume("failing_after", "t", *words)
        assert 1 == failed.exit_code
        assert "try again with it: " in failed.stderr
    command = failed.stderr.partition("be asked anew: ")[2].split()
    asked = towpath(*command[command.index("replay") :])
    assert 3 == asked.exit_code, asked.stderr
    done = towpath.resume("failing_after", "t", "--answer", '"good"')
    assert ["good"] == json.loads(done.stdout)["seen"]
