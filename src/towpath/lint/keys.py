"""Rules about the keys of the state: who writes them, and who reads them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from towpath.channels.empties import kind_of
from towpath.errors import names, nearest
from towpath.lint.finding import Finding
from towpath.lint.routes import Routes, is_sent_to
from towpath.lint.source import Reading
from towpath.plan import NodeSpec, Plan, View


def parallel_writers(routes: Routes) -> Iterator[Finding]:
    """L201: nodes that run side by side write a key that keeps one value."""
    told: set[tuple[str, str, str]] = set()
    for together in supersteps(routes.plan):
        for one, other in combinations(sorted(together), 2):
            first, second = routes.nodes[one], routes.nodes[other]
            for key in sorted(first.keys & second.keys & routes.plan.plain):
                if (one, other, key) in told:
                    continue
                told.add((one, other, key))
                is_sure = key in first.sure_keys and key in second.sure_keys
                yield Finding(
                    "L201",
                    "error" if is_sure else "warning",
                    f"`{one}` and `{other}` run side by side and "
                    f"{'both' if is_sure else 'may both'} write `{key}`, which keeps "
                    "one value",
                    f"give `{key}` a reducer, or let one of them write it",
                    node=one,
                    key=key,
                )


def supersteps(plan: Plan) -> Iterator[frozenset[str]]:
    """Sets of nodes that certainly run in one superstep, by edges alone."""
    seen: set[frozenset[str]] = set()
    for spec in plan.nodes.values():
        if sum(1 for _ in following(plan, {spec.name}, {})) < 2:
            continue
        for together in waves(plan, spec.name):
            if together not in seen:
                seen.add(together)
                yield together


def waves(plan: Plan, start: str) -> Iterator[frozenset[str]]:
    """The supersteps that follow a run of one node."""
    arrived: dict[str, set[str]] = {}
    now = frozenset({start})
    past = set()
    while now and now not in past:
        past.add(now)
        now = frozenset(following(plan, now, arrived))
        if len(now) > 1:
            yield now


def following(
    plan: Plan, now: frozenset[str] | set[str], arrived: dict[str, set[str]]
) -> Iterator[str]:
    """The nodes that edges and joins start after a superstep."""
    joins = {join.channel: join for join in plan.joins if join.policy == "all"}
    for name in now:
        for channel, _ in plan.nodes[name].edges:
            if channel in joins:
                arrived.setdefault(channel, set()).add(name)
            elif channel in plan.signals:
                yield from plan.listeners.get(channel, ())
    for channel, sources in arrived.items():
        if sources >= set(joins[channel].sources):
            sources.clear()
            target = joins[channel].target
            if not plan.nodes[target].defer:
                yield target


def fan_out_writers(routes: Routes) -> Iterator[Finding]:
    """L202: tasks of one node, sent to it together, write a key of one value."""
    plan = routes.plan
    readings = [*routes.nodes.values(), *routes.branches.values()]
    for name in sorted({name for reading in readings for name in reading.fans}):
        keys = routes.nodes[name].sure_keys & plan.plain if name in plan.nodes else ()
        for key in sorted(keys):
            yield Finding(
                "L202",
                "warning",
                f"several tasks of `{name}` may run side by side, and each writes "
                f"`{key}`, which keeps one value",
                f"give `{key}` a reducer: Annotated[list, operator.add]",
                node=name,
                key=key,
            )


def undeclared_keys(routes: Routes) -> Iterator[Finding]:
    """L203: a node writes a key that no schema has."""
    plan = routes.plan
    if plan.root:
        return
    is_error = plan.semantics.undeclared_keys == "error"
    known = plan.key_set | plan.managed.keys()
    for spec in routes.visible:
        for key in sorted(routes.nodes[spec.name].keys - known):
            yield Finding(
                "L203",
                "error" if is_error else "warning",
                f"node `{spec.name}` writes `{key}`, which no schema declares",
                (nearest(key, plan.keys) or f"declare `{key}` in the state").strip(),
                node=spec.name,
                key=key,
            )


def lost_assignments(routes: Routes) -> Iterator[Finding]:
    """L204: a key of the state is assigned, or changed in place, and not returned.

    Where a function returns something, it may assign a key for its own use.
    """
    if routes.plan.root:
        return
    for spec in routes.visible:
        reading = routes.nodes[spec.name]
        if not reading.open_updates:
            own = reading.touched.used if reading.keys else ()
            lost = changed_by(routes.plan, reading) - reading.keys.union(own)
            yield from lost_in(f"node `{spec.name}`", spec.name, lost, "return it")
    for (name, branch), reading in routes.branches.items():
        lost = changed_by(routes.plan, reading).difference(reading.touched.used)
        what = f"branch `{branch}` of `{name}`"
        yield from lost_in(what, name, lost, "let a node return it")


def changed_by(plan: Plan, reading: Reading) -> frozenset[str]:
    """The keys of the state that a function changes in its own copy."""
    touched = reading.touched
    # Objects that are no containers of the state's are shared, and may be changed.
    kept = {key for key in touched.changed if holds_container(plan, key)}
    return plan.key_set & (touched.assigned | kept)


def holds_container(plan: Plan, key: str) -> bool:
    """Whether a key holds a list, dict or set of which each node has its own."""
    return kind_of(getattr(plan.channels.get(key), "typ", None)) in plan.copied


def lost_in(what: str, node: str, keys: frozenset[str], hint: str) -> Iterator[Finding]:
    for key in sorted(keys):
        yield Finding(
            "L204",
            "warning",
            f"{what} changes `{key}` in its own copy of the state, where nobody else "
            "sees it",
            hint,
            node=node,
            key=key,
        )


def dead_keys(routes: Routes) -> Iterator[Finding]:
    """L301, L302, L303: keys that nobody reads, or writes, or either."""
    plan = routes.plan
    readings = [routes.nodes[spec.name] for spec in plan.nodes.values()]
    if plan.root or any(one.open_updates for one in readings):
        return
    written = frozenset().union(*(one.keys for one in readings))
    reads_of = all_reads(routes)
    read = frozenset().union(*(keys for _, keys in reads_of))
    # What is sent to a node comes with its `Send`.
    asked = frozenset().union(
        *(keys for name, keys in reads_of if not is_sent_to(routes, name))
    )
    output = plan.output_keys
    shown = {output} if isinstance(output, str) else set(output)
    for key in plan.keys:
        if key not in written and key not in read:
            yield dead("L301", key, "no node reads or writes", "remove it")
        elif key in written and key not in read | shown:
            hint = "let a node read it, or add it to the output"
            yield dead("L302", key, "nobody reads", hint)
        elif key in asked and key not in written | plan.input_keys | plan.starts.keys():
            hint = "let a node write it, or add it to the input"
            yield dead("L303", key, "nobody writes", hint)


def dead(code: str, key: str, what: str, hint: str) -> Finding:
    severity = "note" if code == "L301" else "warning"
    return Finding(code, severity, f"{what} `{key}`", hint, key=key)  # type: ignore[arg-type] # one of the two


def strange_subgraphs(routes: Routes) -> Iterator[Finding]:
    """L304: a graph as a node that has no key in common with the one around it."""
    plan = routes.plan
    for spec in routes.visible:
        graph = None if spec.action is None else spec.action.graph
        inner = getattr(graph, "plan_of_graph", None)
        if inner is None or inner.inlets is not None or inner.root or plan.root:
            continue
        shown = inner.output_keys
        own = inner.input_keys | set([shown] if isinstance(shown, str) else shown)
        leaves = routes.nodes[spec.name].leaves  # by a command for the one around it
        if own & plan.key_set or leaves or is_sent_to(routes, spec.name):
            continue
        yield Finding(
            "L304",
            "warning",
            f"the graph in node `{spec.name}` shares no key with the one around it: it "
            f"has {names(sorted(own))}, and that has {names(plan.keys)}",
            "call it in a function that translates, or give a key one name in both",
            node=spec.name,
        )


def all_reads(routes: Routes) -> list[tuple[str, frozenset[str]]]:
    """What is read in each node and its branches."""
    found = []
    for spec in routes.plan.nodes.values():
        if spec.action is not None:
            found.append((spec.name, reads(spec, routes.nodes[spec.name], spec.view)))
        for branch in spec.branches:
            reading = routes.branches[spec.name, branch.name]
            found.append((spec.name, reads(spec, reading, branch.view)))
    return found


def reads(spec: NodeSpec, reading: Reading, view: View) -> frozenset[str]:
    """The keys that are read of a view; all of them where that is not known."""
    keys = frozenset(view.keys)
    if reading.read is None or spec.handles is not None:
        return keys
    return reading.read & keys
