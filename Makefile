# Platter: make build, then bin/platter. Only Go and make are needed.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
GOFLAGS_BUILD = -trimpath -ldflags "-X main.version=$(VERSION)"
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

export CGO_ENABLED ?= 0

.PHONY: build run test race lint cross bench clean

build:
	go build $(GOFLAGS_BUILD) -o bin/platter ./cmd/platter

# One broker with its coordinator inside: data in ./data, listening on 127.0.0.1:9092.
run: build
	exec bin/platter broker

# What starts real processes, and harms them, goes one package at a time: beside others it would test the machine.
test:
	@status=0; \
	go test $(TESTFLAGS) $$(go list ./... | grep -v '^platter/tools/') || status=1; \
	go test -p 1 $(TESTFLAGS) ./tools/... || status=1; \
	exit $$status

# The race detector needs a C compiler.
race:
	CGO_ENABLED=1 go test -race ./...

lint:
	go vet ./...
	go test ./tools/lint
	@tools/lint/staticcheck.sh $(STATICCHECK)

# Every platform and every set of build tags compiles.
cross:
	go test -timeout 30m -run TestCrossCompile ./tools/lint -cross

# The bare programs, then the broker beside them; bin/platter bench --help says what else can be measured.
bench: build
	bin/platter bench ceiling
	bin/platter bench produce
	bin/platter bench fetch

clean:
	rm -rf bin
