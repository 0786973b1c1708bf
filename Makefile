# Every target sets up what it needs. `make help` lists them.

PYTHON ?= python3
# Test processes. Many tests start processes of their own, so more than the cores you have makes them slower.
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test check fix bench morning soak docs lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-7s %s\n", $$1, $$2 }'

demo: $(STAMP) ## show the product at work, on the embedded store
	@$(BIN)/python -m examples.shop

test: check ## check, then every test but the soak tests
	@echo "» tests"
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests docs README.md CONTRIBUTING.md

check: $(STAMP) ## lint, format, types, layers
	@echo "» ruff check"
	@$(BIN)/ruff check --quiet
	@echo "» ruff format --check"
	@$(BIN)/ruff format --check --quiet
	@echo "» mypy --strict"
	@$(BIN)/mypy
	@echo "» lint-imports"
	@$(BIN)/lint-imports --no-logo --no-cache

fix: $(STAMP) ## apply what lint and format can repair themselves
	@echo "» ruff check --fix"
	@$(BIN)/ruff check --fix --quiet || true
	@echo "» ruff format"
	@$(BIN)/ruff format

bench: $(STAMP) ## run the benchmarks, minutes; ARGS="redis --quick", ARGS=--help
	@$(BIN)/python -m benchmarks $(ARGS)

morning: $(STAMP) ## live the company's morning, with fixed and with elastic pools
	@$(BIN)/python -m benchmarks.morning

soak: $(STAMP) ## run the long tests
	@echo "» soak tests"
	@$(BIN)/python -m pytest -m soak --timeout 3600 tests

docs: $(STAMP) ## run the code in the documentation
	@echo "» documentation"
	@$(BIN)/python -m pytest docs README.md CONTRIBUTING.md

lock: ## compile requirements/dev.in into dev.txt, with hashes
	@echo "» compiling requirements/dev.txt"
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install -qq uv; }
	@build/lock/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --output-file requirements/dev.txt requirements/dev.in

clean: ## remove everything that make or the tools have made
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "windlass needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "» setting up $(VENV) (once, about a minute)"
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV)
	@echo "» installing requirements/dev.txt"
	@$(BIN)/python -m pip install -qq --require-hashes -r requirements/dev.txt
	@echo "» installing windlass, editable"
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@
