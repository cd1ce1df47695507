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

.PHONY: demo test test-kernel coverage lint bench docs shots clean

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
	  -k "not (dask or test_checks)" $(addprefix tests/,linalg solvers estimators)

# Lines and branches of the mathematics, the evaluation and the files that the tests take.
coverage: $(VENV)/.installed-coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -p no:xdist tests/linalg tests/solvers tests/estimators tests/evaluation tests/io
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --fail-under=95 --skip-covered \
	  --include='*/solvers/*,*/estimators/*,*/evaluation/*,*/io/*'

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/search.py

# The site: pages, gallery (its stories are run) and reference. A warning is an error.
docs: $(VENV)/.installed-docs
	rm -rf docs/generated docs/_build/html
	OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The site: $(abspath docs/_build/html/index.html)"

# The pictures of page and app, by chromium.
shots: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python docs/shots.py

clean:
	rm -rf $(VENV) $(OUT) build dist docs/_build docs/gallery docs/generated .pytest_cache .mypy_cache .ruff_cache
