"""Measurements beside the peer and beside a bare loop, in one run.

    python -m bench --quick
    python -m bench --only loop,fan --json results.json
    python -m bench.step

`workloads` describes what is done, `adapters` do it with one library each,
`measure` takes turns between them, `report` shows the result.
"""
