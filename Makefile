.DEFAULT_GOAL := help
.PHONY: help setup agents run web test slow versions real soak every coverage mutants check format bench docs sheet lock prices clean

# `make test PYTHON=3.12` (or the path of a Python) has an environment of its own, .venv-3.12.
ASKED := $(if $(filter command line,$(origin PYTHON)),$(PYTHON))
VENV := $(shell . tools/python.sh; venv_of "$(ASKED)")
BIN := $(or $(VENV),$(error no environment for PYTHON=$(PYTHON)))/bin

# Programs are started by the hundred: each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## Show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

setup: ## Build .venv from the lock (installs uv and bubblewrap where they are missing)
	@sh tools/setup.sh "$(ASKED)"

agents: setup ## Install what `make real` runs: podman, chromium, HUD's SDK, agents (where npm is)
	@sh tools/agents.sh

run: setup ## Grade the example suite: no key, nothing to configure
	@$(BIN)/assay demo

web: setup ## Build the web page into src/assay/server/page
	@sh tools/web.sh

# Three at a time on two cores: many tests wait for a limit.
test: setup ## Run the tests, but for slow ones
	@$(BIN)/pytest -q -n 3 -m "not slow and not soak and not real"

slow: setup ## Run the tests that take seconds each
	@$(BIN)/pytest -q -n 3 -m "slow and not soak and not real"

versions: ## Run the tests that are nearest to the interpreter on the other Pythons that are here
	@sh tools/versions.sh

real: agents web ## Run the tests with programs of others: agents, peers, a browser
	@$(BIN)/pytest -q -n 3 -m real

soak: setup ## Run the tests that repeat something many times, and more examples of each property
	@$(BIN)/pytest -q -n 3 -m "soak or hypothesis" --hypothesis-profile=thorough

# At once, they import and collect once, and no core waits for the last test of each; a fourth
# worker computes while Ray, browsers and agents start.
every: agents web ## Run all of them: what `test`, `slow`, `real` and `soak` run, in one
	@$(BIN)/pytest -q -n 4 --hypothesis-profile=thorough

coverage: setup ## Run every test, and say what none of them reached
	@$(BIN)/pytest -q -n 3 --cov --cov-report=term:skip-covered

# Not in the gate: it takes minutes. OF is a row of tools/mutants.py; also SAMPLE=400, AGAIN=1.
mutants: setup ## Make small mistakes in a part, `make mutants OF=scoring`: do its tests notice?
	@$(BIN)/python -m tools.mutants $(OF) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(AGAIN),--again)

# With more room for what is new, pyright spends an eighth less of its time on collecting garbage.
check: setup ## Formatting, lint, types, import rules, whether the built page is current; then sizes
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports
	@NODE_OPTIONS="$$NODE_OPTIONS --max-semi-space-size=128" $(BIN)/pyright --warnings
	@sh tools/web.sh check
	@$(BIN)/python -m tools.size

format: setup ## Format the code and mend what the linter can
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: setup ## Print speed as ratios against peers, measured in one run
	@$(BIN)/python -m bench

# Pictures of the page are committed; one that is missing is taken, where there is a chromium.
docs: setup ## Build the documentation into site/, with the pictures of the page that are missing
	@$(BIN)/pytest -q --no-header -p no:randomly web/pictures.py -k picture_is_taken
	@$(BIN)/zensical build --clean --strict

sheet: setup ## Take every screen of the page, at three widths in light and dark: build/sheet/index.html
	@$(BIN)/pytest -q --no-header -p no:randomly web/pictures.py -k put_on_the_sheet

lock: ## Pin every dependency by hash after pyproject.toml changed
	@UV=$$(command -v uv || echo .tools/bin/uv); $$UV pip compile --quiet --universal --generate-hashes \
	  --no-emit-index-url --python-version 3.11 --all-extras --custom-compile-command "make lock" \
	  pyproject.toml tools/build.in --output-file requirements.lock

prices: setup ## Renew what models cost from the newest release of genai-prices
	@UV=$$(command -v uv || echo .tools/bin/uv); $$UV run --quiet --no-project --with genai-prices \
	  python tools/prices.py src/assay/models/prices.json

clean: ## Remove everything that was built
	@rm -rf .venv .venv-* .tools .assay .bench site dist build .pytest_cache .ruff_cache .hypothesis .coverage
