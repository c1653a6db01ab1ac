# `make help` lists the targets. PYTHON=/path/to/python selects the interpreter of `make install`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
BIN := .venv/bin
UV := $(or $(TIPCFLOW_HOME),.tipcflow)/uv/bin/uv
# Tests install the wheel without a network: this stores the metadata of its packages in uv's cache.
STORE_METADATA := $(UV) pip compile --quiet --python $(BIN)/python --extra airflow --constraints requirements/scheduler.txt \
	pyproject.toml >/dev/null
COMPILE := $(UV) pip compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links \
	--python-version 3.11 --universal

.PHONY: help install demo test test-unit test-full test-slurm test-compose bench lint docs sbom audit screenshots format lock clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: .venv/.installed ## Create .venv with tipcflow (requires Python 3.11 or newer with pip)

.venv/.installed: requirements/uv.txt requirements/dev.txt requirements/build.txt pyproject.toml tools/install.sh
	@tools/install.sh

demo: install ## Certified run in a real Airflow on two local SSH nodes (EXIT=1: exit after the run, CLI=1: without Airflow, SUITE=pytorch_multinode or parameter_server)
	@$(BIN)/tipcflow demo $(if $(SUITE),--suite $(SUITE)) $(if $(PARAMS),--params $(PARAMS)) $(if $(EXIT),--exit) $(if $(CLI),--cli)

test: install ## Unit, cluster and end-to-end tests; installs their dependencies
	@$(BIN)/python -m devcluster.install.prepare --tests
	@$(STORE_METADATA)
	@tools/node_autolog.sh
	@tools/test.sh

test-unit: install ## Fast unit tests; no root, servers or Paddle
	@tools/test_unit.sh

test-full: install ## All tests, including slow ones; updates docs/faults.md with the results
	@$(BIN)/python -m devcluster.install.prepare --tests
	@$(STORE_METADATA)
	@tools/node_autolog.sh
	@tools/node_torch.sh
	@$(BIN)/python -m devcluster.install.prepare --servers
	@npm cache add axe-core@4.14.1 || echo 'without npm, accessibility is not tested'
	@status=0; TIPCFLOW_WRITE_DOCS=1 tools/test.sh --full || status=$$?; tools/test_slurm.sh --full || status=$$?; exit $$status

test-slurm: install ## Tests on a real Slurm of four nodes on this machine (root; Debian: slurmctld slurmd slurm-client munge; full: slurmdbd mariadb-server-core mariadb-client-core)
	@tools/test_slurm.sh

test-compose: install ## Tests of docker-compose.yaml on an own container engine (root; Debian: docker.io docker-compose iptables nginx-light tini)
	@tools/test_compose.sh

bench: install ## Benchmarks: run overhead of CLI and Airflow, plans, DAGs, pages, parsing, store, detection
	@$(BIN)/python -m devcluster.install.prepare
	$(BIN)/python benchmarks/run_overhead.py
	$(BIN)/python benchmarks/scaling_overhead.py
	$(BIN)/python benchmarks/airflow_latency.py
	$(BIN)/python benchmarks/plan_batch.py
	$(BIN)/python benchmarks/many_dags.py
	$(BIN)/python benchmarks/pages.py
	$(BIN)/python benchmarks/github/webhook.py
	$(BIN)/python benchmarks/github/first_step.py
	$(BIN)/python benchmarks/parse_speed.py
	$(BIN)/python benchmarks/store_ingest.py
	$(BIN)/python benchmarks/store_history.py
	$(BIN)/python benchmarks/gang_start.py
	$(BIN)/python benchmarks/step_overhead.py
	$(BIN)/python benchmarks/makespan.py
	$(BIN)/python benchmarks/detection/run.py
	$(BIN)/python benchmarks/detection/speed.py
	$(BIN)/python benchmarks/detection/parts.py
	$(BIN)/python benchmarks/bisection.py
	$(BIN)/python benchmarks/ab_pairs.py
	$(BIN)/python benchmarks/scale/simulate.py --nodes 30 --chains 120 --at-once 27 --pulls 12 --hours 1 --mtbf-days 5

lint: install ## Check style, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini
	$(BIN)/lint-imports
	$(BIN)/python tools/house.py
	git ls-files '*.py' '*.md' '*.yaml' '*.toml' '*.html' '*.sh' '*.js' Makefile ':!tests/golden' ':!configs/chains' ':!*/uplot/*' | xargs $(BIN)/codespell
	$(BIN)/python tools/quarantine.py check
	$(BIN)/python tools/package_graph.py --check

docs: install ## Build the documentation site into site/
	@tools/docs.sh

sbom: install ## Write the bill of materials of the packages that requirements/ pins (CycloneDX) into sbom/
	@tools/sbom.sh

audit: install ## Compare the pinned packages with a database of known vulnerabilities (network; AUDIT_OFFLINE_OK=1: none is not an error)
	@tools/sbom.sh --audit

screenshots: install ## Retake docs/screenshots in a local Airflow with generated runs (requires Chromium)
	$(BIN)/python tools/screenshots.py

format: install ## Format the code
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lock: install ## Pin the newest allowed packages by version and hash
	$(COMPILE) requirements/uv.in -o requirements/uv.txt
	$(COMPILE) requirements/build.in -o requirements/build.txt
	$(COMPILE) requirements/scheduler.in -o requirements/scheduler.txt
	@# Only what scheduler.txt lacks.
	UV_CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) -c requirements/scheduler.txt \
		$$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements/scheduler.txt) \
		requirements/kubernetes.in -o requirements/kubernetes.txt
	sed -i '/^# The following packages were excluded/,$$d' requirements/kubernetes.txt
	$(COMPILE) -c requirements/scheduler.txt requirements/dev.in -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt requirements/docs.in -o requirements/docs.txt
	$(COMPILE) requirements/audit.in -o requirements/audit.txt
	$(COMPILE) requirements/node-cpu.in -o requirements/node-cpu.txt
	@# Not for all platforms: on Windows, Paddle 2.6.2 requires a protobuf without its parameter server.
	$(subst --universal,--python-platform linux,$(COMPILE)) requirements/node-ps.in -o requirements/node-ps.txt
	$(subst --universal,--python-platform linux,$(COMPILE)) requirements/node-torch-gpu.in -o requirements/node-torch-gpu.txt
	$(if $(TIPCFLOW_WHEEL_URL),UV_FIND_LINKS=$(TIPCFLOW_WHEEL_URL) $(COMPILE) requirements/node-torch.in -o requirements/node-torch.txt)
	$(if $(TIPCFLOW_WHEEL_URL),UV_FIND_LINKS=$(TIPCFLOW_WHEEL_URL) $(COMPILE) -c requirements/node-cpu.txt \
		requirements/node-autolog.in -o requirements/node-autolog.txt)

clean: ## Remove .venv and caches (keeps .tipcflow with runs and node environments)
	rm -rf .venv site sbom .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
