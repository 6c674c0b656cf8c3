# Fencepost. `make run` runs the main job, `make test` passes the tests; both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# without bytecode every process of a test compiles this project again: a third of its start
unexport PYTHONDONTWRITEBYTECODE
STAMP := $(VENV)/.installed

.PHONY: help install run test test-all check compiled coverage bench matrix clean

help:
	@echo "make install   create $(VENV) with the fencepost command and everything that the suite needs"
	@echo "make run       the main job: check the model, run the conformance suite, check the recorded traces"
	@echo "make test      the tests, within a quarter of an hour"
	@echo "make test-all  every test, then random traces with a new seed; it lists what that adds"
	@echo "make check     types, lint, format, imports and plain prose"
	@echo "make compiled  coordinator, codec and server compiled by mypyc, in out/compiled"
	@echo "make coverage  the lines of the core that no unit test runs"
	@echo "make bench     measure the cost table again"
	@echo "make matrix    play the named cases on each broker and client that is installed; writes docs/matrix.md"

install: $(STAMP)

comma := ,
# runs a command without output, and prints every few seconds that it still runs
define saying
@{ while sleep 5 >/dev/null 2>&1; do echo "  $(1)"; done & } 2>/dev/null </dev/null; printer=$$!; \
	trap 'kill $$printer 2>/dev/null' EXIT INT TERM; $(2)
endef

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Fencepost needs Python 3.11 or later; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "creating $(VENV) with the command and everything that the suite needs: a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(call saying,still installing,$(BIN)/python -m pip install --quiet --upgrade pip)
	$(call saying,still installing,$(BIN)/python -m pip install --quiet --editable '.[dev$(comma)clients]')
	@touch $@
	@echo "the command is $(BIN)/fencepost (or: source $(BIN)/activate, then fencepost)"

run: install
	$(BIN)/python -m fencepost_conformance.run.mainjob

test: install
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder --durations 15 -m 'not all'

test-all: install
	$(BIN)/python -m tools.testall

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/quality/plain_english.py

# put the folder first on PYTHONPATH to use it; without that the sources are used
compiled: install
	@echo "compiling the coordinator: about a minute"
	$(call saying,still compiling,$(BIN)/python -m fencepost_conformance.run.compiled out/compiled)

coverage: install
	$(BIN)/coverage run -m pytest tests/unit
	$(BIN)/coverage report

bench: install
	$(BIN)/fencepost bench

matrix: install
	$(BIN)/python -m fencepost_conformance.run.matrix

clean:
	rm -rf $(VENV) out build *.egg-info .coverage
