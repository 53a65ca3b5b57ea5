# On a fresh machine with Python 3.11+ and make, `make demo` and `make test` work. Each target first creates .venv and
# installs what it needs into it; again only after a change of pyproject.toml or of a compiled part.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
# number of test files that run at the same time: tests wait for two thirds of their time, so it exceeds the processors
JOBS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 5 + 1) / 2 )))
# of the quick ones, which wait less: each process collects all tests first, and that is a good part of the work
QUICK_JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) * 2 )))
# compiled modules are written whatever the environment says: the tests start hundreds of processes
export PYTHONDONTWRITEBYTECODE :=
# keep the order of tests/conftest.py, which begins with the files that take longest
SIDE_BY_SIDE = --dist loadfile --no-loadscope-reorder
# the quick tests: none that is slow, starts Spark or a foreign client, or needs a broker of its own, except one of Spark
QUICK := check or not (slow or spark or clients or kafka)
BENCH_ARGS ?=
SHELL := bash

.PHONY: help demo check test lint unit quick mutants mutants-sample test-kafka test-connect soak soak-transactions soak-simulation docs site bench bench-coordinator bench-log bench-assignors bench-attack fuzz dist clean bench-consumer bench-transactions bench-producer bench-consumer-groups bench-join-storms bench-two-brokers bench-share bench-share-consumers bench-cluster bench-cluster-growth bench-cut-links bench-registry bench-sizing bench-spark

help:
	@echo "make demo        the main job on real data: broker, three services, Spark, a closing table"
	@echo "make demo-cluster  the same on three brokers and a ZooKeeper (Maven Central, Java); leader, coordinator and controller are killed"
	@echo "make check       for every change: ruff, mypy, import rules, the quick tests and one of Spark, in some minutes"
	@echo "make test        before a pull request: ruff, mypy, import rules, every test, and some mutants"
	@echo "make mutants     makes thousands of small changes to the code and reports those that no test notices (hours)"
	@echo "make test-kafka  the end-to-end tests against an Apache Kafka (needs Java 17+ and Maven)"
	@echo "make test-spark-executors  kohort.spark on executors that share neither disk nor process with their driver"
	@echo "make test-spark-matrix  kohort.spark on PySpark 3.5 to 4.3, on the system's Java and on the wheel's (2 GB)"
	@echo "make test-spark-tables  kills the programs of docs/spark-tables.md: Delta, Iceberg, JDBC (PySpark 4.1; Maven Central)"
	@echo "make test-connect  Kafka Connect's workers on kohort and on an Apache Kafka (Java 17+ and Maven)"
	@echo "make test-foreign  the own tests of franz-go, kafka-go (Go), kafka-python, librdkafka and aiokafka (checkouts), half an hour"
	@echo "make soak        for ten minutes each: members that come, go, die and hang; a broker under load that is killed,"
	@echo "                 stopped, cut off and out of disk; counts go into docs/reports/reliability.md"
	@echo "make torture-cluster  three brokers and a ZooKeeper in network namespaces (Linux, root), FAULTS=500 of every kind,"
	@echo "                 drawn by SEED=1: an hour or two; counts go into docs/reports/reliability.md"
	@echo "make fuzz        malformed inputs, guided by coverage, FUZZ_SECONDS=60 for each of twelve targets"
	@echo "make soak-transactions  200 kills, pauses and full disks under processors that work in transactions"
	@echo "make soak-simulation  new simulated schedules of every kind for SIMULATION_SECONDS=7200 of processor time,"
	@echo "                 from SIMULATION_SEED=20000000 on, and the planted bugs that take long"
	@echo "make docs        writes the parts of docs/ that are generated from the code"
	@echo "make screenshots the pictures of docs/ui.md (chromium and chromium-driver)"
	@echo "make site        docs/ as a site, in build/site"
	@echo "make bench       the benchmarks"
	@echo "make bench-coordinator  groups under load beside an Apache Kafka (Java 17+ and Maven), about 10 minutes"
	@echo "make bench-log   append, fetch, restart, look-up beside an Apache Kafka (Java 17+ and Maven), about 5 minutes"
	@echo "make bench-assignors  sticky assignment beside kafka-python and, where there is Java, Apache Kafka's, about 4 minutes"
	@echo "make bench-attack  the broker under attack: memory, and what others notice (Linux), about 5 minutes"
	@echo "make bench-consumer  four different consumers on both brokers (Java 17+ and Maven), about 10 minutes"
	@echo "make bench-transactions  transactions a second on both brokers (Java 17+ and Maven), about 5 minutes"
	@echo "make bench-producer  three different producers (on an Apache Kafka with BENCH_ARGS=--compare), about 4 minutes"
	@echo "make bench-consumer-groups  consumer groups of KIP-848 on both brokers (Java 17+ and Maven), about 3 minutes"
	@echo "make bench-join-storms  many members that come at once, on both brokers (Java 17+ and Maven), about 15 minutes"
	@echo "make bench-two-brokers  what two brokers on one machine carry beside one (Java), about 3 minutes"
	@echo "make bench-share  share groups of KIP-932 on both brokers (Java 17+ and Maven), about 5 minutes"
	@echo "make bench-share-consumers  three different share consumers on both brokers (Java 17+ and Maven), about 5 minutes"
	@echo "make bench-registry  a member joins and another leaves, by ZooKeeper and by a coordinator (Java), about a minute"
	@echo "make bench-cluster  three brokers, one of them killed, beside three of Apache Kafka (Java 17+ and Maven), about 10 minutes"
	@echo "make bench-cluster-growth  three brokers with 100, 1,000 and 10,000 topics: start, a lost broker, ZooKeeper away (Java), about 30 minutes"
	@echo "make bench-cut-links  how long each cut link between brokers silences writes, beside Apache Kafka (Linux, root, Java), about 20 minutes"
	@echo "make bench-sizing  what a connection, a member, a group, a partition cost, and storms, about 10 minutes; a million groups: BENCH_ARGS=--large"
	@echo "make bench-spark  Spark micro-batches beside Spark's own Kafka source (Java 17+ and Maven), about 25 minutes"
	@echo "make dist        sdist and wheel into dist/; scripts/smoke-test installs one and tries it"
	@echo "make release-check  a dry run of a release: builds, installs on each Python found, and lists what is missing"
	@echo "make clean       removes what the other targets made"

$(VENV)/.installed: pyproject.toml $(wildcard */_native.pyx)
	@test -n "$(PYTHON)" || { echo "kohort needs Python 3.11 or newer: install it, or say where it is with 'make PYTHON=/path/to/python3 ...'"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian and Ubuntu: apt-get install python3-venv)"; exit 1; }
	@echo "installing kohort and what it needs into $(VENV) (some minutes the first time: PySpark is 450 MB)"
	@$(BIN)/python -m pip install --quiet --upgrade pip "setuptools>=77"
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[all,dev]'
	@touch $@

# pytest rewrites the asserts of every test file and keeps what it wrote: here once, else each of the processes that run
# side by side does it for itself. What goes wrong is told by them
$(VENV)/.rewritten: $(VENV)/.installed
	@$(BIN)/python -m pytest -n 0 --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/python examples/demo/run.py

.PHONY: demo-cluster
demo-cluster: $(VENV)/.installed
	$(BIN)/python examples/demo/run.py --cluster

# types are checked beside the tests, in one process
check: $(VENV)/.installed
	$(MAKE) --jobs 2 lint quick

test: $(VENV)/.installed
	$(MAKE) --jobs 2 lint unit
	$(MAKE) mutants-sample

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=.src $(BIN)/lint-imports
	$(BIN)/python scripts/import_circles.py

quick: $(VENV)/.rewritten
	$(BIN)/python -m pytest -n $(QUICK_JOBS) $(SIDE_BY_SIDE) -m "$(QUICK)" $(PYTEST_ARGS)

# what fails beside the others runs once more, alone: a busy machine refuses no change. It is shown all the same, since
# what depends on load is a fault of the test or of the code
unit: $(VENV)/.rewritten
	$(BIN)/python -m pytest -n $(JOBS) $(SIDE_BY_SIDE) $(PYTEST_ARGS) || { test $$? = 1 && \
		echo "what failed above runs once more, one test at a time; the first that fails again ends it" && \
		$(BIN)/python -m pytest --last-failed --last-failed-no-failures=none --maxfail=1 $(PYTEST_ARGS); }

# mutants of whole rooms (ROOMS='coordinator log', by default all) take hours
ROOMS ?=
mutants: $(VENV)/.installed
	$(BIN)/python scripts/mutants.py $(ROOMS) $(MUTANTS_ARGS)

# some mutants of one room, drawn by the commit's hash; the goal is lower than that of a whole room, because draws vary
mutants-sample: $(VENV)/.installed
	$(BIN)/python scripts/mutants.py --functions 30 --goal 65 --minutes 2

test-kafka: $(VENV)/.installed
	scripts/apache-kafka start 19192
	trap 'scripts/apache-kafka stop 19192' EXIT; \
		$(BIN)/python -m pytest -m kafka --bootstrap 127.0.0.1:19192 $(PYTEST_ARGS)

test-connect: $(VENV)/.installed
	$(BIN)/python -m pytest --connect tests/clients/test_connect.py $(PYTEST_ARGS)
	$(MAKE) test-kafka PYTEST_ARGS="--connect tests/clients/test_connect.py $(PYTEST_ARGS)"

# FOREIGN_ARGS: names of suites, --apache-kafka, --bootstrap HOST:PORT, --update-docs
FOREIGN_ARGS ?=
.PHONY: test-foreign
test-foreign: $(VENV)/.installed
	PYTHONPATH=.src $(BIN)/python -m tests.foreign $(FOREIGN_ARGS)

.PHONY: test-spark-executors
test-spark-executors: $(VENV)/.installed
	$(BIN)/python -m pytest --executors tests/spark/test_executors.py $(PYTEST_ARGS)

.PHONY: test-spark-matrix
test-spark-matrix: $(VENV)/.installed
	PYTHON=$(BIN)/python scripts/spark-matrix

.PHONY: test-spark-tables
test-spark-tables: $(VENV)/.installed
	PYTHON=$(BIN)/python JAVAS=system PYTEST_ARGS="-s --soak 1 -k test_killed_tables $(PYTEST_ARGS)" scripts/spark-matrix 4.1

SOAK_SECONDS ?= 600
soak: $(VENV)/.installed
	$(BIN)/python -m pytest tests/churn tests/torture -s --soak $(SOAK_SECONDS) --report docs/reports/reliability.md $(PYTEST_ARGS)

soak-transactions: $(VENV)/.installed
	$(BIN)/python -m pytest tests/torture/test_exactly_once_killed.py -s --soak 1 \
		--report docs/reports/reliability.md $(PYTEST_ARGS)

FAULTS ?= 500
SEED ?= 1
.PHONY: torture-cluster
torture-cluster: $(VENV)/.installed
	PYTHONPATH=.src $(BIN)/python -m tests.torture.cluster_episode --faults $(FAULTS) --seed $(SEED) \
		--report docs/reports/reliability.md

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet atheris || echo "atheris has no wheel for this Python: inputs are damaged by chance"
	PYTHONPATH=.src $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --report docs/reports/reliability.md

SIMULATION_SECONDS ?= 7200
SIMULATION_SEED ?= 20000000
soak-simulation: $(VENV)/.installed
	PYTHONPATH=.src $(BIN)/python -m tests.simulation --seconds $(SIMULATION_SECONDS) --seed $(SIMULATION_SEED) \
		--report docs/reports/reliability.md
	$(BIN)/python -m pytest tests/simulation/test_planted_bugs.py -s --soak 1 $(PYTEST_ARGS)

docs: $(VENV)/.installed
	$(BIN)/python scripts/generated_docs.py
	$(BIN)/python scripts/typed_settings.py

.PHONY: screenshots
screenshots: $(VENV)/.installed
	$(BIN)/python -m tests.ui.screenshots

site: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[site]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html"

bench: $(VENV)/.installed
	$(BIN)/python -m benchmarks

# BENCH_ARGS='--json FILE' keeps the raw figures, --update-docs writes the table into docs/reports/performance.md
bench-coordinator: $(VENV)/.installed
	$(BIN)/python -m benchmarks.coordinator --compare $(BENCH_ARGS)

bench-log: $(VENV)/.installed
	$(BIN)/python -m benchmarks.log --compare $(BENCH_ARGS)

# BENCH_ARGS=small runs it at the size that the tests use
bench-attack: $(VENV)/.installed
	PYTHONPATH=.src $(BIN)/python -m tests.attack $(BENCH_ARGS)

bench-assignors: $(VENV)/.installed
	$(BIN)/python -m benchmarks.assignors --compare $(BENCH_ARGS)

bench-consumer: $(VENV)/.installed
	$(BIN)/python -m benchmarks.consumer --compare $(BENCH_ARGS)

bench-transactions: $(VENV)/.installed
	$(BIN)/python -m benchmarks.transactions --compare $(BENCH_ARGS)

bench-producer: $(VENV)/.installed
	$(BIN)/python -m benchmarks.producer $(BENCH_ARGS)

bench-consumer-groups: $(VENV)/.installed
	$(BIN)/python -m benchmarks.consumer_groups --compare $(BENCH_ARGS)

bench-join-storms: $(VENV)/.installed
	$(BIN)/python -m benchmarks.join_storms --compare $(BENCH_ARGS)

bench-two-brokers: $(VENV)/.installed
	$(BIN)/python -m benchmarks.two_brokers --compare $(BENCH_ARGS)

bench-share: $(VENV)/.installed
	$(BIN)/python -m benchmarks.share_groups --compare $(BENCH_ARGS)

bench-share-consumers: $(VENV)/.installed
	$(BIN)/python -m benchmarks.share_consumers --compare $(BENCH_ARGS)

bench-cluster: $(VENV)/.installed
	$(BIN)/python -m benchmarks.cluster --compare $(BENCH_ARGS)

bench-cluster-growth: $(VENV)/.installed
	$(BIN)/python -m benchmarks.cluster_growth $(BENCH_ARGS)

bench-cut-links: $(VENV)/.installed
	PYTHONPATH=.src $(BIN)/python -m tests.torture.measured_links --compare $(BENCH_ARGS)

bench-registry: $(VENV)/.installed
	$(BIN)/python -m benchmarks.registry $(BENCH_ARGS)

bench-sizing: $(VENV)/.installed
	$(BIN)/python -m benchmarks.sizing $(BENCH_ARGS)

bench-spark: $(VENV)/.installed
	$(BIN)/python -m benchmarks.spark --compare $(BENCH_ARGS)

dist: $(VENV)/.installed
	rm -rf build dist *.egg-info
	$(BIN)/python -m pip install --quiet build
	$(BIN)/python -m build
	rm -rf build *.egg-info # what is left of it stands in the way of pytest

.PHONY: release-check
release-check: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet build twine cyclonedx-bom
	$(BIN)/python scripts/release_check.py

clean:
	rm -rf build dist *.egg-info .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
