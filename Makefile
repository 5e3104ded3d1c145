# Every target sets up what it needs: a virtual environment in .venv, made with
# the newest supported Python on the machine. `make help` lists the targets.

VENV := .venv
BIN := $(VENV)/bin
FIGURES := docs/performance
PYTHON ?= $(shell tools/find-python 3.13 3.12 3.11 | head -n 1)
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint types docs docs-serve docs-test pictures bench bench-quick bench-docs bench-durable bench-growth bench-memory budget format api golden ci clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Towpath needs CPython 3.11, 3.12 or 3.13" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Stamps: set up once, and again only when the dependencies change.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[cli]'
	@touch $@

$(VENV)/.examples: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[cli,langchain]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev]'
	@touch $@ $(VENV)/.demo $(VENV)/.examples

$(VENV)/.bench: pyproject.toml | $(VENV)/.dev
	$(PIP) install -e '.[bench]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[docs]'
	@touch $@ $(VENV)/.demo

# Without a terminal nobody can be asked, so the demo answers itself.
demo: $(VENV)/.demo ## review this repository's own code, live, with SQLite
	@if [ -t 0 ] && [ -t 1 ]; then $(BIN)/python examples/repo_review.py $(ARGS); \
	else $(BIN)/python examples/repo_review.py --yes $(ARGS); fi

.PHONY: examples
examples: $(VENV)/.examples ## run the other examples, offline; what they make is in build/examples
	@mkdir -p build/examples
	@cd build/examples && for words in etl.py 'support_agent.py --answer approve' \
	  sql_agent.py research.py handoff.py long_document.py; do \
	  echo "== examples/$$words"; \
	  TOWPATH_MODEL=scripted $(abspath $(BIN))/python ../../examples/$$words || exit; \
	done

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest -n 2 --timeout=120 $(ARGS)

lint: $(VENV)/.dev ## style, layers and shape
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/python tools/shape.py src/towpath

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

docs: $(VENV)/.docs ## build the documentation site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict $(ARGS)

docs-serve: $(VENV)/.docs ## show the documentation site while it is written
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve $(ARGS)

docs-test: $(VENV)/.dev ## run every example of the README and the pages
	$(BIN)/python -m pytest -q tests/guards/test_docs.py $(ARGS)

pictures: $(VENV)/.dev ## draw the pictures of the pages anew
	$(BIN)/python tools/pages.py $(ARGS)

bench: $(VENV)/.bench ## measure beside the other libraries
	PYTHONPATH=src:. $(BIN)/python -m bench $(ARGS)

bench-quick: $(VENV)/.bench ## some of it with few repetitions, under two minutes
	PYTHONPATH=src:. $(BIN)/python -m bench --quick $(ARGS)

bench-docs: $(VENV)/.bench ## measure everything, and write the figures of the docs
	PYTHONPATH=src:. $(BIN)/python -m bench --json $(FIGURES)/figures.json --svg $(FIGURES)/ratios.svg
	-PYTHONPATH=src:. $(BIN)/python -m bench.growth --folder $(FIGURES)
	PYTHONPATH=src:. $(BIN)/python -m bench.page $(FIGURES)/figures.json $(FIGURES)/growth.json > $(FIGURES)/figures.md

bench-durable: $(VENV)/.dev ## figures of durable storage, beside bare SQLite
	PYTHONPATH=src:. $(BIN)/python -m bench.durability

bench-growth: $(VENV)/.dev ## the cost of a step, however much there is of the rest
	PYTHONPATH=src:. $(BIN)/python -m bench.growth $(ARGS)

bench-memory: $(VENV)/.dev ## what waiting conversations hold, and finished runs leave
	PYTHONPATH=src:. $(BIN)/python -m bench.memory $(ARGS)

budget: $(VENV)/.dev ## instructions of the hot path, against their budget
	PYTHONPATH=src:. $(BIN)/python -m bench.budget $(ARGS)

api: $(VENV)/.dev ## write down anew what users can import
	$(BIN)/python tools/api.py --write

golden: $(VENV)/.dev ## write databases of this version, for later ones to read
	PYTHONPATH=src:. $(BIN)/python -m tests.golden.make

format: $(VENV)/.dev ## rewrite the code in the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

ci: ## what continuous integration runs
	.ci/run

clean: ## remove what the targets made
	rm -rf $(VENV) .venvs build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
