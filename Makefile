# dpsynth: `make demo` shows it, `make test` proves it. Both make .venv first.

PYTHON ?= python3.11
# another Python has an environment of its own beside that of 3.11
VENV := .venv$(addprefix -,$(filter-out python3.11,$(filter python3.%,$(notdir $(PYTHON)))))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# extra pip options for torch alone, such as the index of its CPU builds
PIP_TORCH ?=
DEMO ?= demo
STEADY ?= 1 2 3

.PHONY: help install install-dev demo test test-all steady smoke lint bench quality facts audit mutants fuzz faults gallery site site-serve clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 14

install: $(VENV)/.installed  ## make .venv and install dpsynth from pinned versions
install-dev: $(VENV)/.installed-dev  ## the same, with what tests and linters need

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	@echo 'installing torch: up to several gigabytes, which takes minutes and shows nothing ...'
	$(PIP) $(PIP_TORCH) torch==2.13.0
	$(PIP) --editable ".[full]"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) --editable ".[dev,bench]"
	@touch $@

demo: install  ## simulate a cohort, fit, sample, check, and write a bundle to demo/
	$(BIN)/dpsynth demo --output $(DEMO)

# a worker for each core, each with one thread: threads of several workers would wait for each other;
# bytecode is kept, so that the processes that tests start need not compile dpsynth again; files stay in
# the order of tests/conftest.py, which begins with those that take long
TESTS := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -rs --numprocesses auto \
	--dist loadfile --no-loadscope-reorder

test: install-dev  ## run the tests of every pitfall, mechanism and command (minutes)
	$(TESTS) -m "not long"

test-all: test  ## the same, then what is long: large games, kill loops, browsers, real tables
	$(TESTS) -m long

steady: install-dev  ## `test` under other noise, once more for each number (STEADY="4 5": those)
	for noise in $(STEADY); do DPSYNTH_TEST_NOISE=$$noise $(TESTS) -m "not long" || exit 1; done

smoke: install-dev  ## a small set of tests, to try another Python (PYTHON=python3.13)
	$(BIN)/python --version
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -rs -m smoke

lint: install-dev  ## ruff, mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python bench/house.py --check

bench: install-dev  ## speed and memory of every part, into docs/performance.md (a quarter of an hour; BENCH=--quick: minutes)
	$(BIN)/python bench/performance.py $(BENCH)
	$(BIN)/python bench/performance_page.py

# a fit that failed ends make with its status, after the report of those that did not
quality: install-dev  ## quality on real tables against epsilon (hours; QUALITY=--quick: minutes)
	$(BIN)/python bench/quality.py $(QUALITY); status=$$?; $(BIN)/python bench/quality_report.py \
		$(if $(findstring --quick,$(QUALITY)),--show) && exit $$status

facts: install-dev  ## what never happens and what is strong, in synthetic tables beside real rows (hours; FACTS="--fits 1 --epsilons 3": less)
	$(BIN)/python bench/facts.py $(FACTS)

audit: install-dev  ## attack every mechanism many times over (half an hour; AUDIT="--runs 0.1": minutes)
	$(BIN)/python bench/audit.py $(AUDIT)

mutants: install-dev  ## break the privacy argument one line at a time; the tests must notice (half an hour)
	$(BIN)/python bench/mutants.py $(MUTANTS)

fuzz: install-dev  ## feed bad files to every reader (a quarter of an hour; FUZZ="--inputs 2000": less)
	$(BIN)/python bench/fuzz.py $(FUZZ)

faults: install-dev  ## kill, race and starve the commands; nothing may be lost or left (minutes; FAULTS="--kills 2")
	$(BIN)/python bench/faults.py $(FAULTS)

gallery: install-dev  ## the pictures of docs/gallery.md, by headless Chromium (minutes)
	$(BIN)/python bench/gallery.py

site: install-dev  ## the documentation site, into site/ (open site/index.html)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

site-serve: install-dev  ## the same on http://127.0.0.1:8000, renewed as docs/ changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

clean:  ## remove .venv, caches, the site and the demo
	rm -rf .venv .venv-python* $(DEMO) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache
