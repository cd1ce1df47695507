# Each command sets up what it needs in .venv, once, and runs. A stamp per set of
# extras records what is installed; it is renewed only when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-report
WORKERS ?= auto
# A file's tests stay in one process. In the order of folders the small files come last, which
# leaves no process waiting for another.
SHARED := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo test test-kernel coverage campaign lint bench docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/sparsegsvp demo --out $(OUT)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(SHARED)

# Once more with the arithmetic of another CPU, e.g. make test-kernel KERNEL=SkylakeX.
KERNEL ?= Nehalem
test-kernel: export OPENBLAS_CORETYPE = $(KERNEL)
test-kernel: export OMP_NUM_THREADS = 1
test-kernel: export SPARSEGSVP_DATA =
test-kernel: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(SHARED) \
	  -k "not (benchmark or dask or processes or test_checks)" $(addprefix tests/,linalg solvers estimators cli/test_predict.py)

# Branches that the tests take; the long form of all trials, with a report in artifacts/campaign.
coverage: $(VENV)/.installed-campaign
	$(BIN)/python campaign/branches.py

SEED ?= 1
campaign: $(VENV)/.installed-campaign
	$(BIN)/python campaign/run.py --seed $(SEED)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/solver.py

# The site: pages, gallery (its stories are run) and reference. A warning is an error.
docs: $(VENV)/.installed-docs
	rm -rf docs/generated docs/_build/html
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The site: $(abspath docs/_build/html/index.html)"

clean:
	rm -rf $(VENV) $(OUT) build dist docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache
