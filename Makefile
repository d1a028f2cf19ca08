# Every target sets itself up: it needs python3 (3.11 or newer, with venv), make, git and a Python package registry.

PYTHON ?= python3
UV_VERSION := 0.13.9
VENV := .venv
BIN := $(VENV)/bin
LOCK := requirements-dev.lock
STAMP := $(VENV)/.installed
# Extras that the lock holds; those of frameworks with stacks of their own are tried by nox.
EXTRAS := wire llm pydantic-ai langgraph openai-agents claude-agent-sdk mcp google-genai collector vcr
TEST_ARGS ?=
LINT := "ruff format --check ." "ruff check ." pyright lint-imports codespell

# The stamp holds the folder that the environment was made in; an environment that was moved, copied or broken by a
# Python upgrade is made again.
HERE := $(CURDIR)
USABLE := $(shell [ "$$(cat $(STAMP) 2>/dev/null)" = "$(HERE)" ] && $(BIN)/python -c '' 2>/dev/null && echo yes)
ifneq ($(USABLE),yes)
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test conformance capabilities matrix lint fix bench chaos lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make the environment in .venv (the other targets do so by themselves)

$(STAMP): $(LOCK) pyproject.toml
	@if [ "$(USABLE)" != yes ]; then \
	  echo "making $(VENV)"; rm -rf $(VENV); \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "playhead needs Python 3.11 or newer: make PYTHON=python3.12")' && \
	  $(PYTHON) -m venv $(VENV); \
	fi
	@echo "installing what $(LOCK) names into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes $(LOCK)
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@printf '%s\n' "$(HERE)" > $@

demo: $(STAMP) ## Record, replay, fork and compare a small agent (no key, no network)
	@$(BIN)/playhead demo --output text

test: $(STAMP) ## Run all tests, in random order (TEST_ARGS="-k name" to choose)
	$(BIN)/python -m pytest -n 2 $(TEST_ARGS)

conformance: $(STAMP) ## Run every adapter scenario and every tau-bench session, with Claude's own program too (minutes)
	PLAYHEAD_CONFORMANCE=all $(BIN)/python -m pytest -n 2 tests/contract tests/acceptance/test_tau_bench.py $(TEST_ARGS)

HARNESSES := plain.py:FunctionsHarness plain.py:WireHarness pydantic_ai.py:PydanticAIHarness langgraph.py:LangGraphHarness \
  openai_agents.py:OpenAIAgentsHarness claude.py:ClaudeHarness
THIN_HARNESSES := mcp.py:MCPHarness google_genai.py:GenAIHarness
NOX := $(BIN)/uv tool run --quiet nox
MEASURED := src/playhead/engine/capabilities.json

capabilities: $(STAMP) ## Measure what the adapters can do; write the file and the table in docs/adapters.md
	@cp $(MEASURED) $(MEASURED).new
	-$(BIN)/python -m playhead.testing.conformance $(HARNESSES:%=tests/contract/test_adapter_%) \
	  $(THIN_HARNESSES:%=tests/thin/test_%) --save $(MEASURED).new
	-$(NOX) -k measure -- $(MEASURED).new
	@mv $(MEASURED).new $(MEASURED)
	$(BIN)/python tests/docs/adapters_page.py

matrix: $(STAMP) ## Run every adapter with its oldest and newest framework, each in an environment of its own (an hour)
	$(NOX) -k "not measure"

lint: $(STAMP) ## Check format, style, types, layers and spelling
	@failed=; for step in $(LINT); do \
	  echo "== $$step"; $(BIN)/$$step || failed="$$failed, $$step"; \
	done; [ -z "$$failed" ] || { echo "lint: failed: $${failed#, }" >&2; exit 1; }

fix: $(STAMP) ## Format, and mend what can be mended by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python tests/docs/cli_page.py
	$(BIN)/python tests/docs/adapters_page.py

bench: $(STAMP) ## Measure everything, as ratios in one run; results in benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks --save

chaos: $(STAMP) ## Kill workers, zygotes, children and command lines during 200 replays; print the tally
	$(BIN)/python tests/chaos/kills.py --replays 200

lock: $(STAMP) ## Choose the newest versions that fit pyproject.toml (no registry host is written)
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip compile pyproject.toml --group dev $(addprefix --extra ,$(EXTRAS)) --universal --python-version 3.11 \
	  --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet --output-file $(LOCK)

clean: ## Remove the environment and what tools left behind
	rm -rf $(VENV) .nox build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
