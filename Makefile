# From a bare clone: Python 3.11 or newer and a package index, nothing else.
#   make demo    watch a table and a year of dates being backfilled   (ARGS="--exit" ends by itself)
#   make quick   the tests that need no JVM and no server: about a minute, the loop to work in
#   make test    all tests; those of servers that are not here are skipped and named
#   make check   ruff, mypy, import-linter, vulture
#   make bench   the benchmarks, beside what people use today         (ARGS="--only parquet")

SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# The pinned one, always: whatever else is called uv on this machine decides nothing here.
UV := $(BIN)/uv
INSTALL = VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(UV) pip install --quiet
# Compiled at once: where PYTHONDONTWRITEBYTECODE is set, every start would compile all of it anew.
COMPILED = --compile-bytecode
ARGS ?=

.PHONY: demo quick test check bench format picture requirements clean

demo: $(VENV)/.run
	$(BIN)/refill demo $(ARGS)

# In memory, where there is a place for it: a disk takes longer than what is tested.
quick: $(VENV)/.dev
	PYTEST_DEBUG_TEMPROOT="$$(test -w /dev/shm && echo /dev/shm || echo "$${TMPDIR:-/tmp}")" \
		$(BIN)/pytest tests/unit tests/contract -m "not (spark or postgres or server)" \
		-o tmp_path_retention_policy=failed $(ARGS)

test: $(VENV)/.dev
	$(BIN)/pytest $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/dead_code.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(ARGS)

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The picture in the README, from a real run.
picture: $(VENV)/.run
	$(BIN)/refill demo --exit --picture docs/images/demo.svg

# Stamps: each remembers that its requirements are installed, so that a second run is quick.
$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "refill needs Python 3.11 or newer; set PYTHON=/path/to/python3" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x "$(UV)" || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.project: $(VENV)/.python requirements/build.txt pyproject.toml
	$(INSTALL) --require-hashes -r requirements/build.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	@touch $@

$(VENV)/.run: requirements/run.txt $(VENV)/.project
	$(INSTALL) $(COMPILED) --require-hashes -r requirements/run.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.project
	$(INSTALL) $(COMPILED) --require-hashes -r requirements/dev.txt
	@touch $@ $(VENV)/.run

$(VENV)/.bench: requirements/bench.txt $(VENV)/.project
	$(INSTALL) $(COMPILED) --require-hashes -r requirements/bench.txt
	@touch $@

# Pins everything again, with hashes; no host is written down.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate
requirements: $(VENV)/.python
	$(COMPILE) --all-extras --group dev pyproject.toml -o requirements/dev.txt
	$(COMPILE) --all-extras -c requirements/dev.txt pyproject.toml -o requirements/run.txt
	$(COMPILE) --all-extras --group bench -c requirements/dev.txt pyproject.toml -o requirements/bench.txt

clean:
	rm -rf $(VENV) .demo .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
