# SPDX-License-Identifier: Apache-2.0
# The whole vocabulary of this repository; `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON := /usr/bin/python3
BUILD := build/dev
JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.PHONY: help demo build test test-unit test-vm test-long test-asan bench adversary format lint install clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: build ## install what is missing, build, and show a real agent's work on one screen
	@scripts/at-root scripts/demo

build:
	@scripts/bootstrap
	@[ -f $(BUILD)/build.ninja ] || cmake --preset dev >/dev/null
	@cmake --build --preset dev

test: build ## install what is missing, build, lint, and run every test but those of test-vm and test-long
	@scripts/lint --format-only
	@SOMA_BIN_DIR=$(CURDIR)/$(BUILD)/bin scripts/at-root ctest --preset dev -LE 'long|asan-only' -j$(JOBS) --no-tests=error

test-unit: build ## only the fast tests (unit, corpus, style)
	@scripts/at-root ctest --preset dev -L 'unit|corpus|style' -j$(JOBS) --no-tests=error

test-vm: build ## boot Debian 12's own kernel (6.1, cgroup v2) in QEMU and run the walls' tests there
	@scripts/at-root scripts/test-vm

test-asan: ## the unit and corpus tests under ASan and UBSan
	@scripts/bootstrap
	@cmake --preset asan >/dev/null
	@cmake --build --preset asan --target unit_and_corpus
	@scripts/at-root ctest --preset asan -L 'unit|corpus' -j$(JOBS) --no-tests=error

test-long: build ## TSan, chaos and soak: minutes to hours
	@cmake --preset tsan >/dev/null && cmake --build --preset tsan --target unit_and_corpus
	@scripts/at-root ctest --preset tsan -L unit -j$(JOBS) --no-tests=error
	@SOMA_BIN_DIR=$(CURDIR)/$(BUILD)/bin scripts/at-root ctest --preset dev -L long --no-tests=error

adversary: build ## only the attacks: each must work without its wall and fail with it
	@SOMA_BIN_DIR=$(CURDIR)/$(BUILD)/bin scripts/at-root ctest --preset dev -L security --no-tests=error

bench: ## ratios against named peers, interleaved in one run (release build)
	@scripts/bootstrap
	@cmake --preset release >/dev/null && cmake --build --preset release
	@scripts/at-root bench/run-all build/release/bin

format: ## rewrite the sources in the house format
	@scripts/lint --format-fix

lint: build ## clang-format and clang-tidy's checks, warnings are errors
	@scripts/lint --format-only && scripts/lint

install: ## install the release build below PREFIX (default /usr/local)
	@scripts/bootstrap
	@cmake --preset release >/dev/null && cmake --build --preset release
	@cmake --install build/release --prefix "$${PREFIX:-/usr/local}"

clean: ## remove everything that was built
	@rm -rf build
