# Everything is done inside .venv. `make book` and `make test` need python3 (3.11 or newer) and make, nothing else.
PY   ?= python3
VENV ?= .venv
BIN  := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
UV   := 0.13.8
LOCKED_EXTRAS := --extra bayes --extra data --extra book --extra test --extra lint --extra browser
JOBS ?= 2
SEED ?= 0
EXAMPLES ?= 10000
PEERS := _build/bench/venv
RELEASE := _build/release/venv
# HASHES=1 refuses a download whose SHA-256 is not on record, as the workflows do
HASHES ?=
SEALED = -q --generate-hashes --universal --python-version 3.11 --no-header --no-annotate

.DEFAULT_GOAL := help
.PHONY: help book test slow fuzz portable versions arm newest mutants kernels lint prose format notebooks ledger browser controls slides pdf wheel sdist release lab bench foreign lock hashes clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

book: $(VENV)/.ok ## build the book into _build/html; a warning is an error
	$(BIN)/python scripts/build_book.py --jobs $(JOBS)

test: $(VENV)/.ok ## run the tests, the doctests and every chapter
	$(BIN)/python scripts/notebooks.py check
	$(BIN)/python -m pytest -q -n $(JOBS)

slow: $(VENV)/.ok ## run the tests that take minutes: statistics, and the shown cells of each chapter alone
	$(BIN)/python -m pytest -q -n $(JOBS) -m slow

fuzz: $(VENV)/.ok ## call every public name with wrong input, an answer or a clear error; SEED=0 EXAMPLES=10000
	EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q -n $(JOBS) --dist=load -m slow tests/house/test_fuzz.py --hypothesis-seed=$(SEED)

portable: $(VENV)/.ok ## run all tests as if on eight other machines, an hour and a half; ONLY="prescott noise-1" TESTS="tests/bayes"
	$(BIN)/python scripts/portable.py --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)") $(if $(TESTS),--tests "$(TESTS)")

versions: $(VENV)/.uv ## run the tests, without chapters, on every Python and on the lowest dependencies; ONLY="3.13" TESTS="tests/bayes"
	$(BIN)/python scripts/versions.py --jobs $(JOBS) $(if $(ONLY),--only "$(ONLY)") $(if $(TESTS),--tests "$(TESTS)")

arm: $(VENV)/.uv ## run a sample of the tests on an emulated 64-bit Arm processor, twenty minutes; ONLY="plain" TESTS="tests/bayes" GO_ON=1
	$(BIN)/python scripts/arm.py $(if $(ONLY),--only "$(ONLY)") $(if $(TESTS),--tests "$(TESTS)") $(if $(GO_ON),--go-on)

newest: ## run all tests with the newest dependencies, in a copy of the tree
	rm -rf _build/newest && git clone -q . _build/newest
	$(MAKE) -C _build/newest lock test

mutants: $(VENV)/.ok ## plant N small faults and count those that tests find, minutes; N=60 SEED=0 ROOM="solvers bayes"
	$(BIN)/python scripts/mutants.py $(if $(N),--n $(N)) $(if $(SEED),--seed $(SEED)) $(if $(ROOM),--room "$(ROOM)")

kernels: $(VENV)/.ok ## run every compiled loop without compiling; 98 % of the lines must be met
	$(BIN)/python scripts/kernel_coverage.py

lint: $(VENV)/.ok ## check style (ruff) and types (mypy)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

prose: $(VENV)/.ok ## count habits of the English that tire a reader; counts may shrink, not grow; PAGES="README.md"
	$(BIN)/python scripts/prose.py $(PAGES)

format: $(VENV)/.ok ## rewrite the code and the chapters in ruff's style
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

notebooks: $(VENV)/.ok ## run every chapter and write it back in canonical form
	$(BIN)/python scripts/notebooks.py run

ledger: $(VENV)/.ok ## print, per chapter, which published claims have a test
	$(BIN)/python scripts/ledger.py

browser: book ## check every built page in headless Chromium
	$(BIN)/python scripts/browser_checks.py --jobs $(JOBS)

controls: book ## show each check of the browser pages that are broken on purpose, four minutes
	$(BIN)/python scripts/browser_checks.py --controls --jobs $(JOBS)

slides: book ## make slides of three chapters, a file each, in _build/html/slides; DECKS="privic"
	$(BIN)/python scripts/slides.py $(DECKS)

pdf: book ## print the whole book into one file, _build/ibukit.pdf
	$(BIN)/python scripts/print_book.py --out _build/ibukit.pdf

wheel: $(VENV)/.ok ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

sdist: $(VENV)/.ok ## build the source archive into dist/
	$(BIN)/python -m build --sdist --no-isolation --outdir dist

release: book $(RELEASE)/.ok ## build wheel, archives and the list of their parts into dist/, and try them in fresh environments
	$(BIN)/python scripts/release.py --tools $(RELEASE)/bin/python

lab: $(VENV)/.ok ## open the chapters in JupyterLab (installed on first use)
	$(BIN)/uv pip install -q -p $(BIN)/python --constraint requirements.lock -e '.[lab]'
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) book/index.ipynb

bench: $(PEERS)/.ok ## race mle against its peers, forty minutes; QUICK=1: four minutes; ONLY="W1 W5"
	$(PEERS)/bin/python -m benchmarks $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))

foreign: $(PEERS)/.ok ## record anew what other programs answer, for tests/foreign; PRIVIC=file of the authors' functions
	$(BIN)/uv pip install -q -p $(PEERS)/bin/python --constraint requirements.lock --group foreign
	$(PEERS)/bin/python tests/foreign/record.py $(PRIVIC)

lock: $(VENV)/.uv ## solve the dependencies anew into requirements.lock
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 $(LOCKED_EXTRAS) \
		--no-header --no-annotate pyproject.toml -o requirements.lock
	$(MAKE) hashes

hashes: $(VENV)/.uv ## record the SHA-256 of every file of the locked versions, of uv and of the tools of `make release`
	$(BIN)/uv pip compile $(SEALED) $(LOCKED_EXTRAS) --constraint requirements.lock pyproject.toml -o requirements.hashes
	$(BIN)/uv pip compile $(SEALED) --constraint requirements.lock --group release -o packaging/release.hashes
	echo uv==$(UV) | $(BIN)/uv pip compile $(SEALED) - -o packaging/uv.hashes

clean: ## remove everything that make made
	rm -rf _build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.uv:
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "ibukit needs Python 3.11 or newer: set PY, as in: make PY=python3.12 book" >&2; exit 1; }
	$(PY) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check \
		$(if $(HASHES),--require-hashes -r packaging/uv.hashes,uv==$(UV))
	touch $@

$(RELEASE)/.ok: requirements.lock pyproject.toml | $(VENV)/.uv
	$(BIN)/uv venv -q --clear -p $(BIN)/python $(RELEASE)
	$(BIN)/uv pip install -q --compile-bytecode -p $(RELEASE)/bin/python \
		$(if $(HASHES),--require-hashes -r packaging/release.hashes,--constraint requirements.lock --group release)
	touch $@

$(PEERS)/.ok: requirements.lock pyproject.toml | $(VENV)/.uv
	$(BIN)/uv venv -q --clear -p $(BIN)/python $(PEERS)
	$(BIN)/uv pip install -q --compile-bytecode -p $(PEERS)/bin/python --constraint requirements.lock -e '.[bench,bayes]'
	# its protocols need no more than what is there; its web page needs dash and ray
	$(BIN)/uv pip install -q --compile-bytecode -p $(PEERS)/bin/python --no-deps ldp-toolbox==0.1.3
	touch $@

$(VENV)/.ok: requirements.lock pyproject.toml | $(VENV)/.uv
	# compiled at once: a package compiled on first import prints its syntax warnings into a chapter
	$(BIN)/uv pip install -q --compile-bytecode -p $(BIN)/python \
		$(if $(HASHES),--require-hashes -r requirements.hashes,-r requirements.lock)
	$(BIN)/uv pip install -q -p $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@
