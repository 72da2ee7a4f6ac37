# Commands of this repository. PYTHON=python3.12 chooses the interpreter of .venv.
PYTHON ?=
BIN := .venv/bin
export PYTHON
# Spark looks up the machine's name otherwise, which can take seconds.
export SPARK_LOCAL_IP := 127.0.0.1
# In the order of the folders: the long files of tests/dbt first, the short ones of tests/unit last.
IN_TWO := -n 2 --dist loadfile --no-loadscope-reorder

# Tests of builds that hold for every format with commits, beside those of tests/iceberg
ON_ICEBERG := tests/iceberg tests/spark/test_cases.py tests/spark/test_set_aside.py $(addprefix tests/dbt/test_,at.py audit_of_builds.py capture.py cdc.py cluster_by.py compare.py diagnose.py repair.py \
	statements.py undo.py erase.py writers_between_statements.py) $(addprefix tests/proof/test_,builds_at_once.py heal.py kill.py readers.py weather.py)

.PHONY: help setup demo retail unit test slow proof platforms iceberg matrix nightly weekly mutants site check format bench golden drawings release clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Make .venv with the pinned versions (Python 3.10 to 3.13, Java 17 or newer)
	@scripts/setup.sh

demo: ## Build two example dimensions and test them, merge batches into a third, show what they hold
	@scripts/setup.sh demo
	@$(BIN)/python scripts/demo.py

retail: setup ## Run examples/retail: PostgreSQL, S3, Airflow and dbt on loopback, three nights, the rows compared
	@examples/retail/airflow/setup.sh
	@$(BIN)/python examples/retail/run.py $(ARGS)

unit: setup ## Run the tests that need no Spark, in seconds
	@$(BIN)/python -m pytest tests/unit $(ARGS)

test: setup ## Run the tests that each change has to pass, in two processes; ARGS='-k ties' goes to pytest, in one
	@$(BIN)/python -m pytest $(or $(ARGS),$(IN_TWO))

slow: setup ## Run the tests that `make test` leaves out; ARGS as above
	@$(BIN)/python -m pytest -m slow $(or $(ARGS),$(IN_TWO) tests/spark tests/dbt)

proof: setup ## Run kills, races, long histories and real data; ARGS as above
	@$(BIN)/python -m pytest -m "" $(or $(ARGS),$(IN_TWO) tests/proof)

platforms: setup ## Run the tests on servers, adapters of vendors, S3, Airflow and Chromium; ARGS as above
	@$(BIN)/python -m pytest -m "" $(or $(ARGS),$(IN_TWO) tests/platforms)

iceberg: setup ## Run tests on Iceberg, with a Spark of its own, in two processes; ARGS as above
	@tests/environments/setup.sh iceberg
	@HEALING_TABLES_FORMAT=iceberg .environments/iceberg/bin/python -m pytest -m "" $(or $(ARGS),$(IN_TWO) $(ON_ICEBERG))

matrix: setup ## Run the Spark tests with other versions of Spark, dbt and Python, see scripts/matrix.py
	@$(BIN)/python scripts/matrix.py $(ARGS)

nightly: setup ## Run slow, proof, platforms, iceberg and matrix into docs/trust.md; ARGS=--resume goes on another day
	@ON_ICEBERG="$(ON_ICEBERG)" $(BIN)/python scripts/nightly_tests.py nightly $(ARGS)

weekly: setup ## Run random histories, kills and races at a larger scale into docs/trust.md; ARGS as for nightly
	@$(BIN)/python scripts/nightly_tests.py weekly $(ARGS)

mutants: setup ## Break 300 places of the code, see which tests notice, into docs/trust.md; ARGS='--stage unit' the quick ones
	@tests/environments/setup.sh mutants
	@ON_ICEBERG="$(ON_ICEBERG)" PYTHONPATH=tests/shared .environments/mutants/bin/python scripts/mutants.py $(ARGS)

site: setup ## Build the documentation as a site in target/site, and check its links
	@tests/environments/setup.sh site
	@NO_MKDOCS_2_WARNING=1 .environments/site/bin/mkdocs build --strict

check: setup site ## Format, lint and types of the Python code; spelling; the dbt project parses; the site builds
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@git ls-files -z | xargs -0 $(BIN)/codespell
	@$(BIN)/dbt --quiet parse --no-partial-parse

format: setup ## Format the Python code
	@$(BIN)/ruff format
	@$(BIN)/ruff check --fix

bench: setup ## Measure a rebuild; ARGS='--rows 5000000' passes arguments
	@$(BIN)/python benchmarks/rebuild.py $(ARGS)

golden: setup ## Write the golden files of the generated SQL anew, to be reviewed like code
	@UPDATE_GOLDEN=1 $(BIN)/python -m pytest tests/unit/test_golden.py tests/dbt/test_statements.py $(ARGS)
	@tests/environments/setup.sh iceberg
	@UPDATE_GOLDEN=1 HEALING_TABLES_FORMAT=iceberg .environments/iceberg/bin/python -m pytest tests/dbt/test_statements.py

drawings: ## Draw the flowcharts of docs/flows anew; needs npm and Chromium
	@python3 scripts/flow_drawings.py

release: setup ## Make the commits and files of a release: VERSION=0.2.0; see RELEASE.md
	@$(BIN)/python scripts/release.py $(VERSION)

clean: ## Remove what was built: warehouse, dbt's target and logs, caches, .venv
	rm -rf .venv .airflow .environments .warehouse target logs dbt_packages spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
