# nx_vulkan. `make demo` trains a network on the GPU, `make test` checks everything that can be
# checked on this machine; both do their own set-up first.

SHELL   := /bin/sh
GO      ?= go
BIN     := bin/nxvk_port
CROSS   := freebsd/amd64 freebsd/arm64 linux/amd64 linux/arm64 darwin/arm64
ENV     := top=$(CURDIR); . scripts/env.sh;
# purego has no C compiler to lean on under FreeBSD: the runtime's own fake cgo stands in.
FAKECGO := -gcflags="github.com/ebitengine/purego/internal/fakecgo=-std"

.PHONY: build test test-go test-elixir test-lesser demo bench cross lint toolchain fuzz clean

build:
	CGO_ENABLED=0 $(GO) build $(if $(filter freebsd,$(shell $(GO) env GOOS)),$(FAKECGO)) -trimpath -o $(BIN) ./cmd/nxvk_port

toolchain:
	scripts/setup.sh

test: toolchain lint-go test-go test-elixir
	@echo "make test: all passed"

.PHONY: lint-go
lint-go:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt would change: $$bad"; exit 1; }
	$(GO) vet ./...

test-go: build
	$(ENV) scripts/test-go.sh

test-elixir: build
	$(ENV) NXVK_PORT=$(CURDIR)/$(BIN) scripts/test-elixir.sh

# As on devices without f64, 64-, 16- or 8-bit integers or f16: each missing in turn, then all of them.
test-lesser: build
	$(ENV) NXVK_PORT=$(CURDIR)/$(BIN) scripts/test-lesser.sh

demo: toolchain build
	$(ENV) NXVK_PORT=$(CURDIR)/$(BIN) scripts/demo.sh

bench: build
	$(BIN) bench

cross:
	@for t in $(CROSS); do \
	  os=$${t%/*}; arch=$${t#*/}; flags=; [ $$os = freebsd ] && flags='$(FAKECGO)'; \
	  echo "build $$t"; \
	  eval CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build $$flags -trimpath -o bin/nxvk_port-$$os-$$arch ./cmd/nxvk_port || exit 1; \
	done

lint: lint-go
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
	$(ENV) cd elixir && mix format --check-formatted

fuzz: build
	scripts/fuzz.sh

clean:
	rm -rf bin .cache/build elixir/_build elixir/deps elixir/doc elixir/port
