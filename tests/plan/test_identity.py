"""What a cached node is known by."""

from __future__ import annotations

import functools
import os
import types

import pytest

from towpath.plan.identity import identity_of


def made(source: str, name: str = "node", module: str = "mine.nodes") -> object:
    """Return what a module of this source defines."""
    holder = types.ModuleType(module)
    exec(source, vars(holder))
    return vars(holder)[name]


PLAIN = "def node(state): return {'x': 1}"


def test_the_same_code_is_the_same_node():
    assert identity_of(made(PLAIN)) == identity_of(made(PLAIN))
    assert "mine.nodes.node#" == identity_of(made(PLAIN))[:16]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (PLAIN, "def node(state): return {'x': 2}"),
        (PLAIN, "def node(state): return {'x': True}"),
        (PLAIN, "def node(state): return {'y': 1}"),
        ("def node(state, k=1): return k", "def node(state, k=2): return k"),
        ("def node(state, *, k=1): return k", "def node(state, *, k=2): return k"),
        (
            "PROMPT = 'a'\ndef node(state): return PROMPT",
            "PROMPT = 'b'\ndef node(state): return PROMPT",
        ),
        (
            "RULES = ('a', (1,))\ndef node(state): return RULES",
            "RULES = ('a', (2,))\ndef node(state): return RULES",
        ),
        (
            "def help(): return 1\ndef node(state): return help()",
            "def help(): return 2\ndef node(state): return help()",
        ),
        (
            "class T:\n  def use(me): return 1\ndef node(state): return T().use()",
            "class T:\n  def use(me): return 2\ndef node(state): return T().use()",
        ),
        (
            "def make(k):\n  return lambda state: k\nnode = make(1)",
            "def make(k):\n  return lambda state: k\nnode = make('1')",
        ),
        (
            "def node(state):\n  def inner(): return 1\n  return inner()",
            "def node(state):\n  def inner(): return 2\n  return inner()",
        ),
        (
            "def node(state):\n  try: return 1/0\n  except ValueError: return 1",
            "def node(state):\n  try: return 1/0\n  except KeyError: return 1",
        ),
    ],
)
def test_a_change_that_changes_the_result_makes_another_node(before, after):
    assert identity_of(made(before)) == identity_of(made(before))
    assert identity_of(made(before)) != identity_of(made(after))


def test_another_module_or_name_makes_another_node():
    assert identity_of(made(PLAIN)) != identity_of(made(PLAIN, module="other"))
    assert identity_of(made(PLAIN)) != identity_of(
        made("def edon(state): return {'x': 1}", "edon")
    )


def test_a_function_that_calls_itself_has_an_identity():
    source = (
        "def node(n): return other(n)\ndef other(n): return node(n - 1) if n else 0"
    )
    assert identity_of(made(source)) == identity_of(made(source))


def test_what_carries_state_is_known_by_its_object():
    source = "class Node:\n  def __call__(self, state): return 1\nnode = Node()"
    one, other = made(source), made(source)
    assert identity_of(one) == identity_of(one)
    assert identity_of(one) != identity_of(other)
    assert identity_of(functools.partial(one)) != identity_of(functools.partial(other))
    closing = "def make(k):\n  return lambda state: k\nnode = make(object())"
    assert identity_of(made(closing)) != identity_of(made(closing))


def test_a_list_that_a_node_fills_does_not_change_what_it_is():
    source = "calls = []\ndef node(state): calls.append(state)"
    node = made(source)
    before = identity_of(node)
    node({})
    assert before == identity_of(node)
    closing = "def make(calls):\n  return lambda state: calls\nnode = make([])"
    node = made(closing)
    before = identity_of(node)
    node({}).append(1)
    assert before == identity_of(node)


def test_a_bound_method_is_known_by_its_object():
    kind = made("class Node:\n  def run(self, state): return 1\nnode = Node")
    one, other = kind(), kind()
    assert identity_of(one.run) == identity_of(one.run)
    assert identity_of(one.run) != identity_of(other.run)


def test_a_partial_of_plain_values_is_known_by_them():
    node = made("def node(k, state): return k")
    assert identity_of(functools.partial(node, 1)) == identity_of(
        functools.partial(node, 1)
    )
    assert identity_of(functools.partial(node, 1)) != identity_of(
        functools.partial(node, 2)
    )


def test_what_follows_a_node_is_part_of_it():
    node = made(PLAIN)
    assert identity_of(node, [("to b",)]) == identity_of(node, [("to b",)])
    assert identity_of(node, [("to b",)]) != identity_of(node, [("to c",)])
    one = made("def path(state): return 'b'", "path")
    two = made("def path(state): return 'c'", "path")
    assert identity_of(node, [one]) != identity_of(node, [two])


def test_another_process_knows_plain_nodes_by_the_same_text(printed_apart):
    source = (
        "RULES = frozenset({'a', 'b', 'c'})\n"
        "def node(state): return state in {'x', 'y', 'z'} or RULES"
    )
    program = (
        "import types; from towpath.plan.identity import identity_of\n"
        "holder = types.ModuleType('mine.nodes')\n"
        f"exec({source!r}, vars(holder)); print(identity_of(holder.node))"
    )
    assert {identity_of(made(source))} == {
        printed_apart(program).strip() for _ in range(3)
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_marks_its_objects_differently(printed_apart):
    program = (
        "import os; from towpath.plan.identity import identity_of\n"
        "before = identity_of(object())\n"
        "read, write = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.write(write, identity_of(object()).encode()); os._exit(0)\n"
        "os.wait(); print(os.read(read, 1000).decode() != identity_of(object()))"
    )
    assert "True" == printed_apart(program).strip()
