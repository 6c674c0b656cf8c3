# Fencepost. `make run` runs the main job, `make test` passes the tests; both make the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# without bytecode every process of a test compiles this project anew: a third of the start of each
unexport PYTHONDONTWRITEBYTECODE
STAMP := $(VENV)/.installed

.PHONY: help install run test test-all check compiled coverage bench clean

help:
	@echo "make install   make $(VENV) with the fencepost command and everything the suite uses"
	@echo "make run       the main job: check the model, run the conformance suite, check the recorded traces"
	@echo "make test      the tests, within a quarter of an hour"
	@echo "make test-all  every test, then random traces with a seed of their own; it says what that adds"
	@echo "make check     types, lint and format"
	@echo "make compiled  coordinator, codec and server compiled by mypyc, in out/compiled"
	@echo "make coverage  which lines of the core no unit test runs"
	@echo "make bench     measure the cost table again"

install: $(STAMP)

comma := ,
# runs a command that is silent for long, and says every few seconds that it still does
define saying
@{ while sleep 5 >/dev/null 2>&1; do echo "  $(1)"; done & } 2>/dev/null </dev/null; teller=$$!; \
	trap 'kill $$teller 2>/dev/null' EXIT INT TERM; $(2)
endef

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Fencepost needs Python 3.11 or later; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@echo "making $(VENV), with the command and all that the suite uses: a minute or two"
	$(PYTHON) -m venv $(VENV)
	$(call saying,still installing,$(BIN)/python -m pip install --quiet --upgrade pip)
	$(call saying,still installing,$(BIN)/python -m pip install --quiet --editable '.[dev$(comma)clients]')
	@touch $@
	@echo "the command is $(BIN)/fencepost (or: source $(BIN)/activate, then fencepost)"

run: install
	$(BIN)/python -m fencepost_conformance.mainjob

test: install
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder --durations 15 -m 'not all'

test-all: install
	$(BIN)/python -m fencepost_conformance.testall

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# the folder goes first on PYTHONPATH, so that the sources stay what is used otherwise
compiled: install
	@echo "compiling the coordinator: about a minute"
	$(call saying,still compiling,$(BIN)/python -m fencepost_conformance.compiled out/compiled)

coverage: install
	$(BIN)/coverage run -m pytest tests/unit
	$(BIN)/coverage report

bench: install
	$(BIN)/fencepost bench

clean:
	rm -rf $(VENV) out build *.egg-info .coverage
