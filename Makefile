# `make` or `make help` lists the targets.

GO         ?= go
FUZZTIME   ?= 5s
BENCH_DIR  ?= ../shared/bench
BENCH_REPS ?= 3
VENV    := .cache/venv
JS_DONE := e2e/js/node_modules/.package-lock.json
PY_DONE := $(VENV)/.done
# Where AWS's sam and the emulator MiniStack are; AWS_VENV=DIR takes one that is there already.
AWS_VENV ?= $(CURDIR)/.cache/aws-venv
AWS_DONE := $(AWS_VENV)/.done
# The browser of test-browser; CHROMIUM=PATH takes another.
CHROMIUM ?= /usr/bin/chromium
TOOL    := $(GO) tool -modfile=internal/tools/go.mod

.DEFAULT_GOAL := help
.PHONY: help run build build-RouteFunction build-AdminFunction deploy template-lint localstack-up localstack-deploy localstack-test localstack-down test test-unit test-programs test-e2e test-browser test-deploy test-emulator check format format-check vet lint lint-tool arch fuzz fleet bench bench-lambda clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## serve two built-in providers on 127.0.0.1:8080
	$(GO) run ./cmd/switchboard serve --demo

build: ## make bin/switchboard
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/switchboard ./cmd/switchboard

# What `sam build` calls for the functions of template.yaml, with ARTIFACTS_DIR. It does not
# say for which architecture, so that this comes from where sam has it: samconfig.toml.
LAMBDA_ARCH ?= $(or $(shell sed -nE 's/^[^#]*Architecture=[\\"]*(arm64|x86_64).*/\1/p' samconfig.toml | head -1),arm64)

# What keeps the binary small, because Lambda loads it at each cold start: no socket of our own
# (lambdaonly), no HTTP/2, which one request at a time has no use for, and no inlining (-l) where a
# call more costs nothing that can be measured; not in the arithmetic of TLS.
LAMBDA_TAGS   := lambda.norpc,lambdaonly,nethttpomithttp2
LAMBDA_SMALL  := github.com/... compress/... crypto/... encoding/... fmt math/big mime/... net net/http os/... \
                 reflect regexp/... vendor/... $(addprefix switchboard/internal/,awsclient config translate virtual)
LAMBDA_FAST   := $(addprefix crypto/internal/fips140/,aes/... bigmod edwards25519/... mlkem nistec/... sha256 sha512)
LAMBDA_FLAGS  := -buildvcs=false -tags $(LAMBDA_TAGS) -trimpath -ldflags '-s -w' \
                 $(foreach p,$(LAMBDA_SMALL),-gcflags='$p=-l') $(foreach p,$(LAMBDA_FAST),-gcflags='$p=')

build-RouteFunction: PACKAGE := ./functions/route
build-AdminFunction: PACKAGE := ./functions/admin
build-RouteFunction build-AdminFunction:
	CGO_ENABLED=0 GOOS=linux GOARCH=$(LAMBDA_ARCH:x86_64=amd64) $(GO) build $(LAMBDA_FLAGS) -o "$(ARTIFACTS_DIR)/bootstrap" $(PACKAGE)
	@if [ -f switchboard.yaml ]; then install -m 644 switchboard.yaml "$(ARTIFACTS_DIR)/"; fi

deploy: template-lint ## build and deploy to the AWS account of the environment (docs/deploy.md)
	$(AWS_VENV)/bin/sam build
	$(AWS_VENV)/bin/sam deploy

template-lint: $(AWS_DONE) ## sam validate and cfn-lint
	AWS_REGION=$${AWS_REGION:-us-east-1} SAM_CLI_TELEMETRY=0 $(AWS_VENV)/bin/sam validate --lint

test-deploy: $(AWS_DONE) ## sam build, deploy, update and delete on MiniStack, and calls of the deployed URLs
	AWS_VENV=$(AWS_VENV) $(GO) test -count=1 -tags deploy ./e2e/deploy

test-emulator: $(AWS_DONE) ## the DynamoDB, Firehose, S3 and Athena suites on MiniStack, an emulator that is not ours
	AWS_VENV=$(AWS_VENV) scripts/with-ministack.sh $(GO) test -count=1 -timeout 30m -tags emulator ./internal/dynamo ./internal/firehose ./internal/s3log ./internal/athena

$(AWS_DONE): e2e/deploy/requirements.txt
	python3 -m venv $(AWS_VENV)
	$(AWS_VENV)/bin/pip install --quiet --disable-pip-version-check -r e2e/deploy/requirements.txt
	@touch $@

test: test-unit $(AWS_DONE) ## all tests, with their set-up
	$(MAKE) -O -j2 test-programs test-emulator

# Beside the emulator's suites, which mostly wait for it.
test-programs:
	$(MAKE) -j1 test-e2e test-browser template-lint test-deploy

# SQLite is C made Go: the detector finds nothing in it that is ours, and makes it ten times slower.
RACE := -race -gcflags='modernc.org/...=-race=false'

test-unit: ## tests that need only Go, with the race detector
	$(GO) test $(RACE) ./...

test-e2e: $(JS_DONE) $(PY_DONE) ## the official SDKs against real processes: one machine, and the Function URL
	$(GO) test $(RACE) -count=1 -tags e2e ./e2e/...

test-browser: ## the dashboard in Chromium, at two widths; pictures of it in .cache/screenshots
	@command -v "$(CHROMIUM)" >/dev/null || { echo "no Chromium at $(CHROMIUM): apt-get install --no-install-recommends chromium, or CHROMIUM=PATH" >&2; exit 1; }
	CHROMIUM="$(CHROMIUM)" $(GO) test -count=1 -tags browser ./e2e/browser

# npm writes this file last.
$(JS_DONE): e2e/js/package.json e2e/js/package-lock.json
	npm ci --prefix e2e/js --no-audit --no-fund
	@touch $@

$(PY_DONE): e2e/py/requirements.txt
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r e2e/py/requirements.txt
	@touch $@

check: format-check vet lint arch test fuzz ## what CI runs

format: ## rewrite the source as the formatters want it
	$(TOOL) golangci-lint fmt ./...

format-check: ## fail when a file is not formatted
	$(TOOL) golangci-lint fmt --diff ./...

vet: ## go vet, also of the tagged tests
	$(GO) vet ./...
	$(GO) vet -tags e2e,browser,deploy,emulator ./...

lint: ## the linters of .golangci.yml
	$(TOOL) golangci-lint run --build-tags e2e,browser,deploy,emulator ./...

lint-tool: ## build the linter; the first time takes minutes
	$(TOOL) golangci-lint version

arch: ## imports, documentation, globals: the house's rules
	$(GO) test -count=1 ./internal/archtest

fuzz: ## every fuzz target for FUZZTIME
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

fleet: ## compare ways of routing over a simulated fleet, write docs/routing.md
	$(GO) run ./bench/fleet

bench: ## measure against the floor, write docs/performance.md (BENCH_DIR, BENCH_REPS)
	$(GO) run ./bench -tools $(BENCH_DIR) -reps $(BENCH_REPS)

localstack-up: ## AWS on this machine and both functions behind their URLs, until Ctrl-C
	$(GO) run ./localstack --demo

localstack-deploy: ## deploy template.yaml to the emulator at AWS_ENDPOINT_URL (LocalStack, MiniStack)
	AWS_ENDPOINT_URL=$${AWS_ENDPOINT_URL:-http://127.0.0.1:4566} $(GO) run ./localstack

localstack-test: ## the emulator and the local stack, end to end
	$(GO) test -count=1 ./localstack ./internal/emulator

localstack-down: ## stop what localstack/docker-compose.yml started
	docker compose -f localstack/docker-compose.yml --profile localstack --profile ministack down

bench-lambda: ## measure the route function, write docs/performance-aws.md
	$(GO) run ./bench/lambda

clean: ## remove what was built and installed
	rm -rf bin .cache e2e/js/node_modules
