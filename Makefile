# Every target sets up what it needs. `make help` lists them.

PYTHON ?= python3
# Test processes: more than there are cores, because the tests also wait. With two cores, six need a fifth more time of them.
JOBS ?= $(shell expr $$(nproc 2> /dev/null || echo 2) + 2)

# Each named Python has a virtual environment of its own, so that `make test PYTHON=python3.13` leaves the usual one alone.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2> /dev/null)
VENV := .venv$(if $(filter-out python3,$(PYTHON)),-$(VERSION))
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp-$(VERSION)
# What `make bench` and `make originals` compare with, in a virtual environment of its own: nothing of it is a dependency of ours.
PEERS := build/peers-$(VERSION)
PEERS_STAMP := $(PEERS)/.stamp
# What `make site` builds the documentation site with, likewise.
SITE := build/site-env-$(VERSION)
SITE_STAMP := $(SITE)/.stamp
# What judges in `make outside`, likewise: with a newer Python if there is one, because Django 6 needs 3.12.
JUDGES := build/outside/judges
JUDGES_STAMP := $(JUDGES)/.stamp
# What `make wheel` examines the packages with, likewise.
RELEASE := build/release/tools
RELEASE_STAMP := $(RELEASE)/.stamp

# On a fresh checkout these take a minute of one core.
SLOW_CHECKS = echo "» mypy --strict" && $(BIN)/mypy \
	&& echo "» the dashboard: types, lint, format" && $(BIN)/python hatch_build.py check

# The tests' files are in memory where there is plenty: their databases wait for the disk otherwise. The servers run as
# the user nobody, who has to get into the folder.
IN_MEMORY = if [ "$$(df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 { print $$4 }')" -gt 4000000 ] 2> /dev/null; \
	then memory=$$(mktemp -d /dev/shm/sw-XXXX) && chmod 755 "$$memory" && export TMPDIR="$$memory"; fi

# Hundreds of tests start processes of ours; without bytecode each one would compile the whole package again.
unexport PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help demo test check lint fix ui client provide bench peers originals outside morning recovery promises worst storms night soak mutants docs pictures site wheel house estimates lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'

demo: ui ## run a company's day in two minutes; ARGS=--help
	@$(BIN)/python -m examples.company $(ARGS)

test: lint provide ## check, and every test but the soak tests
	@echo "» tests; mypy and the dashboard's checks run beside them, and are shown at the end"
	@memory=; mkdir -p build; ($(SLOW_CHECKS)) > build/checks.txt 2>&1 & checks=$$!; trap 'kill $$checks 2> /dev/null; rm -rf "$$memory"' EXIT; \
	$(IN_MEMORY); $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder tests docs README.md CONTRIBUTING.md; \
	tested=$$?; wait $$checks; checked=$$?; trap - EXIT; rm -rf "$$memory"; cat build/checks.txt; exit $$((tested + checked))

check: lint ## lint, format, layers, types
	@$(SLOW_CHECKS)

lint: ui
	@echo "» ruff check"
	@$(BIN)/ruff check --quiet
	@echo "» ruff format --check"
	@$(BIN)/ruff format --check --quiet
	@echo "» lint-imports"
	@$(BIN)/lint-imports --no-logo --no-cache

fix: $(STAMP) ## apply what lint and format can repair themselves
	@echo "» ruff check --fix"
	@$(BIN)/ruff check --fix --quiet || true
	@echo "» ruff format"
	@$(BIN)/ruff format

ui: $(STAMP) ## build the dashboard, if it is out of date
	@$(BIN)/python hatch_build.py

client: ui ## write the types of the TypeScript client, and pack it for npm, in dist
	@$(BIN)/python ui/client/generate.py
	@mkdir -p dist
	@$(BIN)/python hatch_build.py pack

provide: $(STAMP)
	@.ci/provide $(BIN)

bench: $(STAMP) ## run the benchmarks, minutes; ARGS="redis --quick", ARGS=--help
	@$(MAKE) --no-print-directory peers || echo "» the peers could not be installed: measuring without them" >&2
	@$(BIN)/python -m benchmarks --peers $(PEERS)/bin/python $(ARGS)

peers: $(PEERS_STAMP) ## install the libraries that shiftwork is compared with

originals: $(STAMP) peers ## run the programs of docs/coming-from with the libraries they are for
	@$(BIN)/python -m pytest -m soak tests/docs/test_originals.py

outside: ui provide $(JUDGES_STAMP) ## run suites that nobody here wrote, and print a table; minutes; ARGS="cron django"
	@$(MAKE) --no-print-directory peers || echo "» the peers could not be installed: docs/coming-from is left out" >&2
	@$(BIN)/python -m tests.outside $(ARGS)

morning: $(STAMP) ## live the company's morning, with fixed and with elastic pools
	@$(BIN)/python -m benchmarks.morning

recovery: $(STAMP) ## kill nodes under load on each store: how soon their jobs run again
	@$(BIN)/python -m benchmarks.recovery $(ARGS)

promises: $(STAMP) ## leave out one promise after the other on PostgreSQL: what each costs, minutes
	@$(BIN)/python -m benchmarks.promises $(ARGS)

worst: $(STAMP) ## stage six faults, and print what `shiftwork status` says of each after 5, 15 and 60 s; seven minutes
	@$(BIN)/python -m tests.system.worst $(ARGS)

storms: provide ## run storms on each store, and draw a page of what was done and that nothing was lost; ARGS=--help
	@$(BIN)/python -m tests.storms --report build/storms $(ARGS)

night: provide ## go on with a night of storms, in pieces that add up; ARGS="--minutes 30", ARGS=--help
	@memory=; trap 'rm -rf "$$memory"' EXIT; $(IN_MEMORY); $(BIN)/python -m tests.storms.night --picture docs/night.svg $(ARGS)

soak: provide ## run the long tests, about an hour; ARGS="-k storm"
	@echo "» soak tests, about an hour; each is named when it begins, and the slowest at the end"
	@$(BIN)/python -m pytest -m soak --timeout 3600 --verbose --durations 20 tests $(ARGS)

mutants: provide ## break the package in a copy, and see that tests notice; ARGS="--random 300 --seed 1", ARGS=--help
	@memory=; trap 'rm -rf "$$memory"' EXIT; $(IN_MEMORY); $(BIN)/python -m tests.mutants $(ARGS)

docs: $(STAMP) ## run the code in the documentation
	@echo "» documentation"
	@$(BIN)/python -m pytest docs README.md CONTRIBUTING.md

pictures: ui provide ## take every picture of the dashboard in README and docs, minutes; ARGS=--help
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

site: $(SITE_STAMP) ## build the documentation as a site, in build/site
	@echo "» the documentation site"
	@$(SITE)/bin/python docs/pages.py
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet --strict --config-file build/mkdocs.yml
	@echo "» open build/site/index.html"

wheel: $(STAMP) $(RELEASE_STAMP) ## build what a release publishes, and examine it; minutes
	@$(BIN)/python -m tests.release

house: $(STAMP) ## draw the import graph into docs/house.svg, and print rooms and journeys
	@$(BIN)/python docs/house.py
	@$(BIN)/python docs/journeys.py

estimates: $(STAMP) ## simulate many queues, and draw how good the estimates of when jobs start are; a minute
	@$(BIN)/python -m benchmarks.estimates

lock: ## compile requirements/*.in into *.txt, with hashes
	@test -x build/lock/bin/uv || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install -qq uv; }
	@for name in dev outside peers site release; do \
		echo "» compiling requirements/$$name.txt"; \
		build/lock/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --no-emit-find-links --no-header \
			--output-file requirements/$$name.txt requirements/$$name.in || exit 1; \
	done

clean: ## remove everything that make or the tools have made
	@rm -rf .venv .venv-* build dist ui/node_modules ui/client/dist ui/client/LICENSE src/shiftwork/web/dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The compiled files name every package, so --no-deps: pip would look for a newer release of a package that another one
# requires with an extra, and reject it because it has no hash here.
$(STAMP): requirements/dev.txt pyproject.toml src/shiftwork/version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "shiftwork needs Python 3.11 or newer, and '$(PYTHON)' is not. Name one: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "» setting up $(VENV) (once, about a minute)"
	@test -e $(VENV)/lib/python$(VERSION)/site-packages/pip || $(PYTHON) -m venv --clear $(VENV)
	@echo "» installing requirements/dev.txt"
	@$(BIN)/python -m pip install -qq --no-deps --require-hashes -r requirements/dev.txt
	@echo "» installing shiftwork, editable"
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation -e .
	@touch $@

$(PEERS_STAMP): requirements/peers.txt
	@echo "» installing requirements/peers.txt into $(PEERS)"
	@test -x $(PEERS)/bin/pip || $(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --no-deps --require-hashes -r requirements/peers.txt
	@touch $@

$(JUDGES_STAMP): requirements/outside.txt
	@for python in python3.14 python3.13 python3.12 "$$HOME"/.pyenv/versions/3.1[2-9].*/bin/python $(PYTHON); do \
		if "$$python" -c '' 2> /dev/null; then break; fi; \
	done; \
	echo "» installing requirements/outside.txt into $(JUDGES), with $$python"; \
	"$$python" -m venv --clear $(JUDGES)
	@$(JUDGES)/bin/python -m pip install -qq --no-deps --require-hashes -r requirements/outside.txt
	@touch $@

$(SITE_STAMP): requirements/site.txt
	@echo "» installing requirements/site.txt into $(SITE)"
	@test -x $(SITE)/bin/pip || $(PYTHON) -m venv --clear $(SITE)
	@$(SITE)/bin/python -m pip install -qq --no-deps --require-hashes -r requirements/site.txt
	@touch $@

$(RELEASE_STAMP): requirements/release.txt
	@echo "» installing requirements/release.txt into $(RELEASE)"
	@test -x $(RELEASE)/bin/pip || $(PYTHON) -m venv --clear $(RELEASE)
	@$(RELEASE)/bin/python -m pip install -qq --no-deps --require-hashes -r requirements/release.txt
	@touch $@
