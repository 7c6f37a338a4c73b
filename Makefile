# What there is to do here. `make check` is what the continuous integration runs (.ci/run).

GO        ?= go
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
GENERATED  = docs/configuration.md deploy/config.example.yaml

# Debian keeps smtp-sink, which tests use, where only root's path leads.
export PATH := $(PATH):/usr/sbin

.PHONY: help build run demo test test-short test-programs check format vet staticcheck arch size english generated bench profile chaos fair generate fuzz vuln sbom dist tools screenshots clean
.DEFAULT_GOAL := help

help: ## List what there is to do
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build bin/postroom, static, with its version
	@GO="$(GO)" sh tools/build.sh bin/postroom "$(VERSION)"

run: build ## Run Postroom on 127.0.0.1:3000, with its data in ./data; installs redis-server if it's missing
	@sh tools/redis-server.sh
	bin/postroom serve

demo: build ## See it work in a minute: nothing to configure, no data stays behind; installs redis-server
	@sh tools/redis-server.sh
	bin/postroom demo

# Tests often wait for their servers, so one package more than there are processors is tested at once.
AT_ONCE = $$(($$(getconf _NPROCESSORS_ONLN) + 1))

# These take minutes, so they begin first: the last ones would run alone.
LONGEST = ./ui/e2e ./cmd/postroom ./newsletter/e2e ./accounts/e2e

# The race detector would keep each test program for a second before it ends.
test: export GORACE = atexit_sleep_ms=0
test: test-programs ## Run all tests with the race detector; installs the programs they need
	$(GO) test -race -p $(AT_ONCE) -timeout 40m $(TESTFLAGS) $(LONGEST) ./...

test-short: ## Run the tests that need no other program, in two minutes; lists what it leaves out
	@sh tools/test-short.sh

test-programs: ## Install the programs that tests need, where they are missing
	@sh tools/test-programs.sh

# The checks look at the code as the tests build it, with -race: each package is compiled once. vet has then been run.
RACED = GOFLAGS="$$GOFLAGS -race"
check: TESTFLAGS = -vet=off
# Without a network vuln says that it checked nothing.
check: UNREACHED = pass
check: format english vet staticcheck arch size generated vuln test fuzz ## Everything that must hold before a change goes in

format: ## Fail on code that gofmt would change
	@files=$$(gofmt -l .); \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi

vet: ## Look for mistakes with go vet
	$(GO) vet -race ./...

staticcheck: ## Look for mistakes with staticcheck, at the version of tools/go.mod
	@tool=$$($(GO) tool -modfile=tools/go.mod -n staticcheck) && \
	$(RACED) GOGC=$(or $(GOGC),400) $$tool ./...

arch: ## Fail on imports that docs/architecture.md forbids
	$(GO) test -race -count=1 .

size: ## Print how large and tangled the code is; fail beyond the bounds of tools/size/bounds.txt
	@$(RACED) $(GO) run -C tools ./size

ENGLISH ?= --limit tools/english/counts.txt

english: ## Fail on a file with more unnatural English than tools/english/counts.txt allows (tools/english/README.md)
	@command -v python3 >/dev/null || sh tools/install.sh python3
	@python3 tools/english/english-lint.py $(ENGLISH)

generated: ## Fail on generated files that are not what go generate makes
	@before=$$(cat $(GENERATED) | cksum); $(RACED) $(GO) generate ./... && \
	if [ "$$before" != "$$(cat $(GENERATED) | cksum)" ]; then \
		echo "generated files were out of date; they are right now: commit $(GENERATED)"; exit 1; fi

generate: ## Write the generated files anew
	$(GO) generate ./...

bench: build ## Measure, and print ratios; takes some minutes (docs/performance.md)
	$(GO) run ./bench

profile: ## Write processor and memory profiles of each row of make bench; see: go tool pprof data/profiles/submit.cpu
	$(GO) run ./bench -profile data/profiles

CHAOS ?= -for 10m

chaos: ## Break everything at random for ten minutes and count; CHAOS="-for 1m -seed 7" (docs/testing.md)
	$(GO) run ./bench/chaos $(CHAOS)

vuln: ## Look for known vulnerabilities; fails if vuln.go.dev can't be reached (GOVULNDB=file:… needs no network)
	@GO="$(GO)" sh tools/vuln.sh || { [ $$? = 75 ] && [ "$(UNREACHED)" = pass ]; }

fuzz: ## Fuzz one target for half a minute, another with each commit; FUZZ="FuzzParse 10m" chooses
	@GO="$(GO)" sh tools/fuzz.sh $(FUZZ)

sbom: build ## Write bin/postroom.cdx.json: the modules that the program is made of (CycloneDX)
	@$(GO) run -C tools ./sbom "$(CURDIR)/bin/postroom" "$(CURDIR)/bin/postroom.cdx.json"

dist: ## Build the archives of a release in bin/dist: Linux and macOS, amd64 and arm64; PLATFORMS="linux/arm64" picks some
	@GO="$(GO)" sh tools/dist.sh bin/dist "$(VERSION)"

tools: ## Download and build the tools of tools/go.mod
	$(GO) build -modfile=tools/go.mod -o bin/ tool

screenshots: test-programs ## Take the pictures of docs/pictures anew, in chromium
	$(GO) test ./ui/e2e -count=1 -run '^TestPictures$$' -update

clean: ## Remove what make build made; data stays
	rm -rf bin
