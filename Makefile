# recoup: `make` lists what can be asked of it.

CARGO  ?= cargo
PREFIX ?= /usr/local
PLUGIN  = $(PREFIX)/lib/hdf5/plugin
RUN    := scripts/with-env.sh

.DEFAULT_GOAL := help
.PHONY: help demo build test bench doc install clean

help:
	@echo "make demo             solve under injected failures, every scheme side by side (minutes)"
	@echo "make build            the program, target/release/recoup, and the HDF5 filter plugin beside it"
	@echo "make test             everything a change must pass (format, lints, docs, tests, examples)"
	@echo "make bench            the benchmarks of BENCHMARKS.md"
	@echo "make doc              the API's documentation: target/doc/recoup/index.html"
	@echo "make install PREFIX=  the program into PREFIX/bin (now $(PREFIX)), the plugin into PREFIX/lib/hdf5/plugin;"
	@echo "                      DESTDIR is honoured"
	@echo "make clean            remove what was built"
	@echo "Missing distribution packages are installed by apt-get, as root or through sudo."

build:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --release --locked -p recoup-cli -p recoup-h5plugin

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
	install -d $(DESTDIR)$(PLUGIN)
	for library in target/release/librecoup_h5plugin.so target/release/librecoup_h5plugin.dylib; do \
	    [ ! -e $$library ] || install -m 755 $$library $(DESTDIR)$(PLUGIN); \
	done
	@echo "For h5py, h5dump and other HDF5 programs to read QB variables:"
	@echo "  export HDF5_PLUGIN_PATH=$(PLUGIN)"

clean:
	$(CARGO) clean
	rm -rf demo-report .venv
