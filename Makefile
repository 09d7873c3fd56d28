# recoup: `make` lists what can be asked of it.

CARGO  ?= cargo
PREFIX ?= /usr/local
RUN    := scripts/with-env.sh

.DEFAULT_GOAL := help
.PHONY: help demo build test bench doc install clean

help:
	@echo "make demo             solve under injected failures, every scheme side by side (minutes)"
	@echo "make build            the program: target/release/recoup"
	@echo "make test             everything a change must pass (format, lints, docs, tests, examples)"
	@echo "make bench            the benchmarks of BENCHMARKS.md"
	@echo "make doc              the API's documentation: target/doc/recoup/index.html"
	@echo "make install PREFIX=  the program into PREFIX/bin (now $(PREFIX)); DESTDIR is honoured"
	@echo "make clean            remove what was built"
	@echo "Missing distribution packages are installed by apt-get, as root or through sudo."

build:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --release --locked -p recoup-cli

demo: build
	@rm -rf demo-report
	@$(RUN) scripts/demo.sh

test:
	@scripts/bootstrap.sh test
	$(RUN) $(CARGO) xtask ci

bench:
	@scripts/bootstrap.sh test
	$(RUN) $(CARGO) bench --locked -p recoup-solvers -p recoup-compress

doc:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) doc --locked --workspace --no-deps

install: build
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 target/release/recoup $(DESTDIR)$(PREFIX)/bin/recoup

clean:
	$(CARGO) clean
	rm -rf demo-report .venv
