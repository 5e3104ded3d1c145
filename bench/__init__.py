"""Measure Towpath beside other libraries and beside plain Python.

    make bench            every workload, half an hour
    make bench-quick      some of them with few repetitions, under two minutes

    PYTHONPATH=src:. python -m bench [--quick] [--json FILE] [--svg FILE]
                                     [--only NAME] [--list]

`--only` takes a name or a pattern (`chain-*`, `chat-1000-*`) and may be repeated.
Other libraries take part if they are installed (the extra `bench`).

How to read the table
---------------------

One row is one workload, one figure the median time of one *unit* of it: a
superstep (`step`), a parallel task (`task`), a turn of a conversation (`turn`), a
node that is built and compiled (`node`) and so on, by the clock of the row. *cpu*
is the time the process spent on processors, all threads together; *wall* is what a
clock on the wall shows. `peer/ours` is how many times longer langgraph takes,
`best/ours` the fastest of the other engines; if that is less than 1, the row says
who wins, and `goals.py` why. A row is marked with `*` if its goals (`goals.py`) are
reached and with `-` if not. `raw` is a hand-written loop that does the same work
without any engine; `floor` isolates nodes and has a limit, which no engine avoids.

Where the time goes
-------------------

`workloads.py` says once what is done; `adapters/` says it in the words of each
library. `graphs.py` is the one program Towpath and langgraph run: only the import
differs; `deeds.py` is what is done with it while the clock runs. `clock.py` takes
the samples, `report.py` prints them, `plot.py` draws, `page.py` writes the page of
the docs. Other questions: `bench.step` (into which parts a superstep falls),
`bench.growth` (what it costs when there is much of everything), `bench.memory` (what
waits there and what is left), `bench.budget` (instructions), `bench.durability`.

Traps
-----

* The machine is not quiet, and its clock rate changes. All contestants run in one
  process and take turns (A B C A B C ...), so that a bad moment hits all of them.
  Only ratios of one run mean something; figures of two runs do not compare.
* CPU time leaves out waiting for the disk, and wall time counts the other programs
  of the machine. Without a saver trust CPU time; with SQLite the truth is the wall,
  because every step waits until the disk has it (`synchronous=FULL`). On a disk that
  only pretends to sync, those rows say little.
* Short work is repeated within one sample until the sample is long enough for the
  clock. Long work gets few rounds: the JSON tells how many, and the fastest and the
  slowest of them. With one round (`--quick`, long conversations) there is no median.
* The collector of garbage runs before a sample and is left on within: the peer's
  garbage is part of its price, ours of ours.
* The first run of each contestant is not counted, and its result is compared with
  what the workload expects: a contestant cannot win by doing less.
* Graphs are compiled before the clock starts. Each run with a saver has a thread of
  its own, and with SQLite a new file.
* Steps are stored before the next one starts (`durability="sync"`), also the peer's.
  A saver's raw loop stores what changed and nothing else; it could not resume.
* Synchronous tasks of one step run in threads, so most of the price of a small task
  is the hand-over. Asynchronous ones show the engine better.
* Imports are measured in new processes, less what a Python that imports nothing
  costs, with byte code in place and files in the page cache.
"""
