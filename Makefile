# Everything here sets itself up in .build/ and needs Python 3.10 or newer and a C++ compiler, no ROS.
# PYTHON=python3.12 chooses the interpreter, ROS_DISTRO=kilted the ROS 2 distribution (default: jazzy).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

PYTHON ?= python3
ARGS ?=
ROBOT ?= arm
WORKERS ?= 3
# Sets up what is missing, then enters the environment.
enter = environment="$$("$(PYTHON)" scripts/bootstrap.py --print-environment)"; source "$$environment"

# Types are those of the pinned NumPy, which needs Python 3.11.
types = if python -c "import sys; sys.exit(sys.version_info < (3, 11))"; then mypy; else echo "types: not checked on Python 3.10"; fi

# API from docstrings, so that a package that does not import, or a citation that does not resolve, is an error.
documentation = sphinx-build -q -W --keep-going -j $(WORKERS) -d .build/doctrees docs .build/docs

.PHONY: help setup build demo test lint docs coverage bench clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1  /p' $(firstword $(MAKEFILE_LIST)) | while read -r name text; do printf '%-8s %s\n' "$$name" "$$text"; done

setup build:  ## set up the environment, build the interfaces, take up new files
	@$(enter); echo "ready: source $$environment"

demo:  ## calibrate a simulated arm, or ROBOT=biped on force plates, or ROBOT=space by its momentum; ROBOT=payload has the arm grasp a box; ARGS="--help" shows the options
	@$(enter); demo --robot $(ROBOT) $(ARGS)

lint:  ## check style and types
	@$(enter); ruff check .; $(types)

docs:  ## build the documentation in .build/docs; warnings are errors
	@$(enter); $(documentation); echo "ready: .build/docs/index.html"

# Tests that look at a moving robot from outside run after all others, two files at once, or alone where torques are
# commanded; those of other running nodes run in two rows, beside the rest, see test/conftest.py. Status 5: ARGS
# selects none of these tests.
test:  ## check style and types, build the documentation and run all tests; ARGS is given to pytest
	@$(enter); status=0 others=0 realtime=0 alone=0; ruff check . || status=1; \
	{ nice -n 19 bash -euc '$(types); $(documentation)'; } & checked=$$!; \
	pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not realtime" $(ARGS) || others=$$?; \
	wait $$checked || status=1; \
	pytest -n 2 --dist loadgroup --no-loadscope-reorder -m "realtime and not alone" $(or $(ARGS),test/nodes) || realtime=$$?; \
	pytest -n 0 -m alone $(or $(ARGS),test/nodes) || alone=$$?; \
	for code in $$others $$realtime $$alone; do [ $$code = 0 ] || [ $$code = 5 ] || status=$$code; done; \
	[ "$$others$$realtime$$alone" != 555 ] || status=5; exit $$status

coverage:  ## measure which lines the tests run, in processes of their own, too; pages in .build/coverage/html
	@$(enter); pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder -m "not realtime" --cov --cov-report= $(ARGS); \
	pytest -n 0 -m realtime --cov --cov-append --cov-report=html --cov-report=term:skip-covered test/nodes

bench:  ## run the benchmarks, with one thread for linear algebra as the command line and the nodes have it
	@$(enter); export PYTHONPATH="benchmarks:test:$$PYTHONPATH" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; for file in benchmarks/*.py; do python "$$file" $(ARGS); done

clean:  ## remove the environment, the build and all caches
	rm -rf .build build install log .pytest_cache .ruff_cache .mypy_cache .hypothesis ./*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
