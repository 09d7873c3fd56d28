# recoup: `make` lists what can be asked of it.

CARGO  ?= cargo
PREFIX ?= /usr/local
PLUGIN  = $(PREFIX)/lib/hdf5/plugin
BUILT   = target/release
VELOC   = $(BUILT)/veloc-client
RUN    := scripts/with-env.sh
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SONAME  = librecoup.so.$(firstword $(subst ., ,$(VERSION)))
VELOC_VERSION = 1.8.0
INTO    = $(DESTDIR)$(PREFIX)

.DEFAULT_GOAL := help
.PHONY: help demo program build library deb wheel packages test test-all soak bench doc site install install-program \
    install-library install-veloc install-module clean

help:
	@echo "make demo             solve under injected failures, every scheme side by side; a seismic adjoint (minutes)"
	@echo "make build            the program, target/release/recoup, and the HDF5 filter plugin beside it"
	@echo "make test             what each change must pass: format, lints, the tests of the road and of the main doors (minutes)"
	@echo "make test-all         all there is: devices, MPI, PETSc, every feature, pages, examples (an hour of processor time)"
	@echo "make soak             long real runs beyond make test-all: kills, sweeps, seeds (an hour and more)"
	@echo "make bench            benchmarks of solvers, codecs and memory tiers; cargo xtask figures has those of BENCHMARKS.md"
	@echo "make doc              the API's documentation: target/doc/recoup/index.html"
	@echo "make site             pages, tutorials and references for a browser without a network: target/site/book/index.html"
	@echo "make library          librecoup for C, Fortran and PETSc, and libveloc-client over it"
	@echo "make install PREFIX=  the program into PREFIX/bin (now $(PREFIX)), the plugin into PREFIX/lib/hdf5/plugin; librecoup,"
	@echo "                      libveloc-client, headers, recoup.pc and CMake packages into PREFIX/lib, PREFIX/include and"
	@echo "                      PREFIX/share; DESTDIR is honoured"
	@echo "make deb              Debian packages in target/packages"
	@echo "make wheel            the wheel for Linux with glibc 2.28 and newer, in target/packages; PROCESSOR=aarch64 for another"
	@echo "                      processor than this one, for which rustup has the target"
	@echo "make packages         lint both, and follow their pages in fresh Debian roots (as root)"
	@echo "make clean            remove what was built"
	@echo "Missing distribution packages are installed by apt-get, as root or through sudo."

program:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --release --locked -p recoup-cli

build:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --release --locked $(if $(FEATURES),--features $(FEATURES)) -p recoup-cli -p recoup-h5plugin

library:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --release --locked -p recoup-capi
	scripts/veloc-client.sh $(BUILT)/librecoup_c.so $(VELOC)

demo:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --profile demo --locked -p recoup-cli -p recoup-studies --bin recoup --example rtm
	@rm -rf demo-report
	@$(RUN) scripts/demo.sh

test:
	@scripts/bootstrap.sh test
	$(RUN) $(CARGO) xtask ci

# All of make test, too.
test-all:
	@scripts/bootstrap.sh test-all
	CARGO_INCREMENTAL=0 $(RUN) $(CARGO) xtask ci --all

# Long real runs, an hour and more: kills on the wall clock, sweeps over problems, methods and seeds.
soak:
	@scripts/bootstrap.sh long
	@scripts/bootstrap.sh adapters
	CARGO_PROFILE_RELEASE_LTO=off $(RUN) $(CARGO) test --release --locked --workspace --no-run
	RECOUP_PROGRAM=$(BUILT)/recoup $(RUN) \
	    .venv/bin/python -m pip install --quiet --no-build-isolation --no-deps --force-reinstall .
	CARGO_PROFILE_RELEASE_LTO=off $(RUN) $(CARGO) test --release --locked --workspace -- --ignored --nocapture
	$(RUN) scripts/petsc-tutorials.py --recoup $(BUILT)/recoup --seeds 10
	$(RUN) scripts/petsc-tutorials.py --recoup $(BUILT)/recoup --seeds 10 --ranks 2
	$(RUN) scripts/exec-cost.py --recoup $(BUILT)/recoup
	$(RUN) $(CARGO) xtask faults --release --calls 0
	if [ "$$(id -u)" = 0 ]; then $(RUN) $(CARGO) xtask cluster; fi
	$(RUN) $(CARGO) xtask seeds --from 1000000 --crashes 10000000
	$(RUN) $(CARGO) xtask seeds --mistakes
	$(RUN) .venv/bin/python -m pytest -q -p no:cacheprovider -m long
	@$(MAKE) --no-print-directory deb wheel packages

# Lints the packages, and follows the pages of docs/install that the network here is enough for, in fresh Debian roots.
packages:
	@scripts/bootstrap.sh packages
	$(RUN) packaging/lint.sh
	packaging/try/follow.sh docs/install/apt.md "" target/packages/recoup_*.deb
	packaging/try/follow.sh docs/install/pip.md "python3 python3-venv" target/packages/recoup-*_$$(uname -m).whl
	packaging/try/follow.sh docs/install/dealii.md "g++ cmake make libdeal.ii-dev" target/packages/recoup_*.deb

bench:
	@scripts/bootstrap.sh test-all
	$(RUN) $(CARGO) bench --locked --features recoup-compress/zfp-c -p recoup-solvers -p recoup-compress -p recoup-cache

doc:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) doc --locked --workspace --no-deps

site:
	@scripts/bootstrap.sh site
	$(RUN) $(CARGO) xtask site
	$(RUN) $(CARGO) xtask site --check

install: build library
	@$(MAKE) --no-print-directory install-program install-library install-veloc install-module
	@echo "For h5py, h5dump and other HDF5 programs to read QB variables:"
	@echo "  export HDF5_PLUGIN_PATH=$(PLUGIN)"

# Debian packages of what was built, in target/packages.
deb: build library
	@scripts/bootstrap.sh packages
	$(RUN) packaging/debian/build.sh

wheel:
	@scripts/bootstrap.sh packages
	$(RUN) packaging/wheel/build.sh $(PROCESSOR)

# The parts of install copy what was built into $(BUILT), and build nothing.
install-program:
	install -d $(INTO)/bin $(DESTDIR)$(PLUGIN) $(INTO)/share/bash-completion/completions $(INTO)/share/zsh/site-functions
	install -s -m 755 $(BUILT)/recoup $(INTO)/bin/recoup
	for library in $(BUILT)/librecoup_h5plugin.so $(BUILT)/librecoup_h5plugin.dylib; do \
	    [ ! -e $$library ] || install -s -m 755 $$library $(DESTDIR)$(PLUGIN); \
	done
	$(RUN) $(BUILT)/recoup man $(INTO)/share/man/man1
	$(RUN) $(BUILT)/recoup completions bash > $(INTO)/share/bash-completion/completions/recoup
	$(RUN) $(BUILT)/recoup completions zsh > $(INTO)/share/zsh/site-functions/_recoup

install-library:
	install -d $(INTO)/lib/pkgconfig $(INTO)/lib/cmake/recoup $(INTO)/include/recoup
	install -s -m 755 $(BUILT)/librecoup_c.so $(INTO)/lib/librecoup.so.$(VERSION)
	ln -sf librecoup.so.$(VERSION) $(INTO)/lib/$(SONAME)
	ln -sf $(SONAME) $(INTO)/lib/librecoup.so
	install -m 644 $(BUILT)/librecoup_c.a $(INTO)/lib/librecoup.a
	strip --strip-debug $(INTO)/lib/librecoup.a
	install -m 644 crates/doors/capi/include/*.h crates/doors/capi/include/recoup.hpp crates/doors/capi/include/recoup.f90 $(INTO)/include
	install -m 644 crates/doors/capi/include/recoup/*.hpp $(INTO)/include/recoup
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' crates/doors/capi/recoup.pc.in > $(INTO)/lib/pkgconfig/recoup.pc
	install -m 644 crates/doors/capi/cmake/recoupConfig.cmake $(INTO)/lib/cmake/recoup
	sed 's|@VERSION@|$(VERSION)|' scripts/cmake/ConfigVersion.cmake.in > $(INTO)/lib/cmake/recoup/recoupConfigVersion.cmake

install-veloc:
	install -d $(INTO)/bin $(INTO)/lib $(INTO)/include/veloc $(INTO)/share/veloc/cmake
	install -m 644 crates/doors/veloc/include/veloc.h crates/doors/veloc/include/veloc.hpp $(INTO)/include
	install -m 644 crates/doors/veloc/include/veloc/*.h crates/doors/veloc/include/veloc/*.hpp $(INTO)/include/veloc
	install -m 644 $(VELOC)/libveloc-client.a $(INTO)/lib
	strip --strip-debug $(INTO)/lib/libveloc-client.a
	[ ! -e $(VELOC)/libveloc-client.so ] || install -s -m 755 $(VELOC)/libveloc-client.so $(INTO)/lib
	install -m 755 crates/doors/veloc/shim/veloc-backend $(INTO)/bin
	install -m 644 crates/doors/veloc/cmake/velocConfig.cmake $(INTO)/share/veloc/cmake
	sed 's|@VERSION@|$(VELOC_VERSION)|' scripts/cmake/ConfigVersion.cmake.in > $(INTO)/share/veloc/cmake/velocConfigVersion.cmake

install-module:
	install -d $(INTO)/share/modulefiles/recoup
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@PLUGIN@|$(PLUGIN)|' packaging/modulefile.in \
	    > $(INTO)/share/modulefiles/recoup/$(VERSION)

clean:
	$(CARGO) clean
	rm -rf demo-report .venv
