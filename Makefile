# Each command sets up what it needs in .venv, once, and runs. A stamp per set of
# extras records what is installed; it is renewed only when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-report
WORKERS ?= auto

.PHONY: demo test test-kernel lint bench docs clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	@touch $@

demo: $(VENV)/.installed-demo
	$(BIN)/sparsegsvp demo --out $(OUT)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

# Once more with the arithmetic of another CPU, e.g. make test-kernel KERNEL=SkylakeX.
KERNEL ?= Nehalem
test-kernel: export OPENBLAS_CORETYPE = $(KERNEL)
test-kernel: export OMP_NUM_THREADS = 1
test-kernel: export SPARSEGSVP_DATA =
test-kernel: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile \
	  -k "not (benchmark or dask or processes or test_checks)" $(addprefix tests/,linalg solvers estimators cli/test_predict.py)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-bench
	$(BIN)/python benchmarks/solver.py

docs: $(VENV)/.installed-docs
	mkdir -p docs/_build
	for example in $(abspath examples)/plot_*.py; do \
	  (cd docs/_build && MPLBACKEND=agg $(abspath $(BIN))/python $$example) || exit 1; \
	done
	$(BIN)/python -m pdoc --docformat numpy --output-directory docs/_build sparsegsvp

clean:
	rm -rf $(VENV) $(OUT) build dist .pytest_cache .mypy_cache .ruff_cache
