# The two commands of README.md are `make demo` and `make test`; each sets up what it needs first.
.PHONY: setup demo test test-full lint lock-python clean
rvvbench := .venv/bin/rvvbench

setup:
	@scripts/setup.sh

demo: setup
	$(rvvbench) image build --accept-expired --accept-rebuilt --if-missing toolchain
	$(rvvbench) image build --accept-expired --accept-rebuilt --if-missing runtime --arch riscv64
	$(rvvbench) run llama-one-batch --target auto

test: setup
	@scripts/test.sh

test-full: setup
	@scripts/test.sh --full

lint: setup
	@scripts/test.sh lint

lock-python:
	scripts/lock-python.sh

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
