# simbridge from a fresh clone: `make run` and `make test` make .venv, install what they need and go. `make help` lists
# the rest. All take PYTHON=/path/to/python3.x (to make the environment with) and VENV=directory (where to make it).
# Without a usable Python, uv makes the environment (tools/make_environment.sh).

VENV ?= .venv
PYTHON ?=
PIP = $(VENV)/bin/python -m pip --quiet --disable-pip-version-check --no-input
# Bytecode is stored when a module is first imported: most modules of the dependencies never are.
INSTALL = $(PIP) install --no-compile
# Which of the allowed versions of a dependency is installed: highest, or lowest-direct (which pip cannot, but uv can).
RESOLUTION ?= highest

# A sourced ROS workspace puts its packages and pytest plugins on PYTHONPATH, ahead of the environment's own.
unexport PYTHONPATH PYTHONHOME
# Tests start hundreds of Python processes. Without stored bytecode, as in many containers, each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test quick docs bench soak urcl coverage test-lowest schemas lock lint clean reinstall

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

run: $(VENV)/.installed ## run the first scenario, square_tracking, in simulation
	$(VENV)/bin/simbridge run square_tracking

test: $(VENV)/.installed-test ## run the tests: 9 minutes on two quiet cores, 15 on slow ones, up to 30 on busy ones
	@echo "The tests take 9 minutes on two quiet cores, 15 on slow ones, up to 30 on busy ones. Ctrl-C ends them and all that they started."
	$(VENV)/bin/python -m pytest -n auto

quick: $(VENV)/.installed-test ## run the tests that neither wait nor compute for long: under a minute on two cores
	$(VENV)/bin/python -m pytest -n logical -m "not (soak or real_time or shares_setup or slow or property)"

docs: $(VENV)/.installed-docs ## build the documentation as a site, into build/docs
	$(VENV)/bin/python -m sphinx -c docs -b html --fail-on-warning --keep-going --quiet . build/docs
	@echo "Open build/docs/index.html"

bench: $(VENV)/.installed-test ## measure speed: what takes a minute, or PARTS="recording pages ..." (benchmarks/)
	$(VENV)/bin/python -m benchmarks $(PARTS)

soak: $(VENV)/.installed-test ## run what needs long real time, random faults above all, for SOAK_MINUTES (60)
	$(VENV)/bin/python -m tests.soak --minutes $(or $(SOAK_MINUTES),60)

urcl: $(VENV)/.installed ## build and run UR's own client library (URCL=its checkout) with the emulator; needs root
	$(VENV)/bin/python tools/urcl.py $(or $(URCL),$(error URCL=directory names a checkout; docs/emulator_fidelity.md)) $(URCL_OPTIONS)

coverage: export COVERAGE_FILE := $(CURDIR)/.coverage
coverage: $(VENV)/.installed-dev ## measure which lines the tests run, those of the processes that they start included
	$(VENV)/bin/python -m coverage erase
	-$(VENV)/bin/python -m coverage run -m pytest -n auto
	$(VENV)/bin/python -m coverage combine --quiet
	$(VENV)/bin/python -m coverage report --sort=cover

test-lowest: ## run the tests on Python 3.10 with the oldest versions that pyproject.toml allows
	$(MAKE) test VENV=$(VENV)-lowest PYTHON=$(or $(PYTHON),python3.10) RESOLUTION=lowest-direct

schemas: $(VENV)/.installed ## write docs/schemas, the JSON schemas of what programs read
	$(VENV)/bin/python -m simbridge.cli.json_schemas docs/schemas

lock: $(VENV)/.installed-dev ## resolve the dependencies again: uv.lock, and a set for each Python and machine
	$(VENV)/bin/python tools/lock.py

lint: $(VENV)/.installed-dev ## check style, formatting, complexity, types and imports
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/complexipy --failed --plain
	$(VENV)/bin/python -m mypy
	$(VENV)/bin/lint-imports

clean: ## remove .venv and what tools left behind (never runs/)
	rm -rf .venv .venv-lowest dist build .pytest_cache .mypy_cache .ruff_cache .complexipy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp an extra. pip before 21.3, which some Python 3.10 bring, cannot install a pyproject.toml editable.
STAMPS := $(VENV)/.installed $(VENV)/.installed-test $(VENV)/.installed-docs $(VENV)/.installed-dev
$(VENV)/.installed-test: EXTRA := [test]
$(VENV)/.installed-docs: EXTRA := [docs]
$(VENV)/.installed-dev: EXTRA := [dev]

$(STAMPS): pyproject.toml $(VENV)/bin/python
	@sh tools/check_compiler.sh
	@echo "Installing simbridge$(EXTRA) and what it needs into $(VENV) (a minute or two the first time)"
	@$(VENV)/bin/python -c 'import pip' 2>/dev/null || $(VENV)/bin/python -m ensurepip >/dev/null
	@$(INSTALL) 'pip>=22'
ifeq ($(RESOLUTION),highest)
	@$(INSTALL) --editable '.$(EXTRA)'
else
	@$(INSTALL) uv
	@$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --resolution $(RESOLUTION) --editable '.$(EXTRA)'
endif
	@printf '%s\n' "$(CURDIR)" >$(VENV)/.installed-from
	@rm -f $(VENV)/.unfinished
	@touch $@

# The install is editable: besides a change of pyproject.toml, only two things call for another. The environment's
# Python has gone, or the checkout was moved or copied with its environment, which still points at the old place.
ifneq ($(shell test -x $(VENV)/bin/python && cat $(VENV)/.installed-from 2>/dev/null),$(CURDIR))
$(STAMPS): reinstall
endif

# An environment that was begun here and not finished is made afresh; one that someone else made is used as it is.
ifneq ($(wildcard $(VENV)/.unfinished),)
.PHONY: $(VENV)/bin/python
endif

$(VENV)/bin/python:
	@sh tools/make_environment.sh "$(VENV)" "$(MAKECMDGOALS)" "$(PYTHON)"
