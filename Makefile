# `make help` lists the targets. The two to begin with: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION := v1.13.0

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
TOOLS := $(CURDIR)/.cache/bin
STAMPS := $(CURDIR)/.cache/stamps
VENV := $(CURDIR)/.venv
export PATH := $(TOOLS):$(PATH)
# Tests that train use this interpreter; it has scikit-learn.
export POTATO_TEST_PYTHON := $(VENV)/bin/python

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

## ---- building

.PHONY: spa
spa: $(STAMPS)/npm ## Build the page into spa/dist
	npm run --silent build

.PHONY: build
build: spa agents binaries ## Build bin/potato and bin/potato-agent with the page and every platform's agent in it

.PHONY: binaries
binaries:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# The platforms that a training machine may have.
AGENTS := linux/amd64 linux/arm64 linux/ppc64le darwin/arm64 darwin/amd64

.PHONY: agents
agents: ## Build the agent for every platform, packed, for the server to carry
	@mkdir -p .cache/agents
	@for p in $(AGENTS); do \
	  CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build -trimpath -ldflags '$(LDFLAGS)' -o .cache/agents/potato-agent-$${p%/*}-$${p#*/} ./cmd/potato-agent; \
	done
	@go run ./scripts/packagents .cache/agents runners/agents

.PHONY: demo
demo: build $(STAMPS)/venv ## Start the tutorial's study, train once, leave the page's URL and key on the screen
	@python3 scripts/demo.py $(VENV)/bin/python

.PHONY: dev
dev: binaries $(STAMPS)/npm $(STAMPS)/venv ## The demo's server with the page reloading as you edit it
	@trap 'kill %1' EXIT; npm run --silent dev & PORT=8000 python3 scripts/demo.py $(VENV)/bin/python

.PHONY: generate
generate: $(STAMPS)/npm ## Write the OpenAPI document, the TypeScript types and the config's key tables anew
	go test ./openapi -run TestDocumentIsFresh -update
	go test ./project -run TestKeyTablesAreFresh -update
	npm run --silent generate

## ---- checking

.PHONY: test
test: unit python spa-test e2e ## Everything: Go, Python, page, end to end

.PHONY: unit
unit: $(STAMPS)/venv $(STAMPS)/debian $(TOOLS)/gotestsum ## Go tests of the packages
	$(TOOLS)/gotestsum --format pkgname-and-test-fails -- -timeout 10m $$(go list ./... | grep -v '/e2e')

.PHONY: python
python: $(STAMPS)/venv ## Tests of the Python trainers, under the oldest and the newest Python too
	@scripts/python-tests.sh 3.8 3.13

.PHONY: spa-test
spa-test: $(STAMPS)/npm ## Types and component tests of the page
	npm run --silent typecheck
	npm run --silent test

.PHONY: e2e
e2e: build $(STAMPS)/venv $(STAMPS)/tools $(STAMPS)/peer $(STAMPS)/debian $(TOOLS)/gotestsum ## The built program against real things: Python, Chromium, the published peer
	$(TOOLS)/gotestsum --format testname -- -count=1 -timeout 30m ./e2e/...
	npm run --silent e2e

.PHONY: test-all
test-all: export POTATO_TEST_ALL := 1
test-all: test ## The same with every Python and the long runs: 100 kills, race detector
	@scripts/python-tests.sh 3.9 3.10 3.11 3.12
	go test -race -timeout 30m ./agent/... ./runners/... ./supervisor/... ./store/... ./handlers/...

.PHONY: lint
lint: $(TOOLS)/golangci-lint $(STAMPS)/npm $(STAMPS)/tools ## Formatting, linters, import directions, stale generated files
	golangci-lint run ./...
	.venv-tools/bin/ruff check --isolated --quiet --select F trainers scripts
	npm run --silent lint
	go test -count=1 ./openapi
	npm run --silent generate -- --check
	go mod tidy -diff

.PHONY: fmt
fmt: $(TOOLS)/golangci-lint $(STAMPS)/npm ## Format Go and TypeScript
	golangci-lint fmt ./...
	npm run --silent format

FUZZTIME := 10s
.PHONY: fuzz
fuzz: ## Fuzz every parser of strangers' bytes, FUZZTIME each
	@go list ./... | while read -r pkg; do \
	  (go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true) | while read -r f; do \
	    echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$pkg"; \
	  done; \
	done

.PHONY: bench
bench: build $(STAMPS)/venv $(STAMPS)/peer $(STAMPS)/debian ## Side by side with the published peer, as ratios
	scripts/debian-packages.sh sqlite3
	go run ./e2e/bench

.PHONY: clean
clean: ## Remove what was built; .cache and the virtual environments stay
	rm -rf bin spa/dist/assets spa/dist/*.html runners/agents/*.zst

## ---- what the targets stand on

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(TOOLS)/gotestsum:
	GOBIN=$(TOOLS) go install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)

$(STAMPS)/npm: package.json package-lock.json spa/tools/package.json spa/tools/package-lock.json
	npm ci --no-fund --no-audit --loglevel=error
	npm ci --no-fund --no-audit --loglevel=error --prefix spa/tools
	@mkdir -p $(@D) && touch $@

$(STAMPS)/venv: trainers/requirements-test.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r trainers/requirements-test.txt
	@mkdir -p $(@D) && touch $@

$(STAMPS)/tools: e2e/requirements.txt
	python3 -m venv .venv-tools
	.venv-tools/bin/python -m pip install --quiet --disable-pip-version-check -r e2e/requirements.txt
	@mkdir -p $(@D) && touch $@

$(STAMPS)/peer:
	python3 -m venv .venv-peer
	.venv-peer/bin/python -m pip install --quiet --disable-pip-version-check potato-annotation==2.12.1
	@mkdir -p $(@D) && touch $@

$(STAMPS)/debian: scripts/debian-packages.sh Makefile
	scripts/debian-packages.sh chromium openssh-client openssh-server tcsh fish nginx iproute2 slurmctld slurmd slurm-client munge
	@mkdir -p $(@D) && touch $@
