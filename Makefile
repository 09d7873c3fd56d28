# recoup: `make` lists what can be asked of it.

CARGO  ?= cargo
PREFIX ?= /usr/local
PLUGIN  = $(PREFIX)/lib/hdf5/plugin
VELOC   = target/release/veloc-client
RUN    := scripts/with-env.sh
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SONAME  = librecoup.so.$(firstword $(subst ., ,$(VERSION)))

.DEFAULT_GOAL := help
.PHONY: help demo build library test bench doc install clean

help:
	@echo "make demo             solve under injected failures, every scheme side by side (minutes)"
	@echo "make build            the program, target/release/recoup, and the HDF5 filter plugin beside it"
	@echo "make test             everything a change must pass (format, lints, docs, tests, examples)"
	@echo "make bench            the benchmarks of BENCHMARKS.md"
	@echo "make doc              the API's documentation: target/doc/recoup/index.html"
	@echo "make library          librecoup for C, Fortran and PETSc"
	@echo "make install PREFIX=  the program into PREFIX/bin (now $(PREFIX)), the plugin into PREFIX/lib/hdf5/plugin; librecoup,"
	@echo "                      libveloc-client, headers and recoup.pc into PREFIX/lib and PREFIX/include; DESTDIR is honoured"
	@echo "make clean            remove what was built"
	@echo "Missing distribution packages are installed by apt-get, as root or through sudo."

build:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) build --release --locked -p recoup-cli -p recoup-h5plugin -p recoup-veloc
	scripts/veloc-client.sh target/release/librecoup_veloc.a $(VELOC)

library:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) rustc --release --locked -p recoup-capi --lib --crate-type cdylib,staticlib -- \
	    -C link-arg=-Wl,-soname,$(SONAME)

demo: build
	@rm -rf demo-report
	@$(RUN) scripts/demo.sh

test:
	@scripts/bootstrap.sh test
	$(RUN) $(CARGO) xtask ci

bench:
	@scripts/bootstrap.sh test
	$(RUN) $(CARGO) bench --locked -p recoup-solvers -p recoup-compress -p recoup-cache

doc:
	@scripts/bootstrap.sh build
	$(RUN) $(CARGO) doc --locked --workspace --no-deps

install: build library
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 target/release/recoup $(DESTDIR)$(PREFIX)/bin/recoup
	install -d $(DESTDIR)$(PLUGIN)
	for library in target/release/librecoup_h5plugin.so target/release/librecoup_h5plugin.dylib; do \
	    [ ! -e $$library ] || install -m 755 $$library $(DESTDIR)$(PLUGIN); \
	done
	install -d $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include/veloc
	install -m 644 crates/veloc/include/veloc.h $(DESTDIR)$(PREFIX)/include
	install -m 644 crates/veloc/include/veloc/defs.h $(DESTDIR)$(PREFIX)/include/veloc
	install -m 644 $(VELOC)/libveloc-client.a $(DESTDIR)$(PREFIX)/lib
	[ ! -e $(VELOC)/libveloc-client.so ] || install -m 755 $(VELOC)/libveloc-client.so $(DESTDIR)$(PREFIX)/lib
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 target/release/librecoup_c.so $(DESTDIR)$(PREFIX)/lib/librecoup.so.$(VERSION)
	ln -sf librecoup.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/librecoup.so
	install -m 644 target/release/librecoup_c.a $(DESTDIR)$(PREFIX)/lib/librecoup.a
	install -m 644 crates/capi/include/recoup.h crates/capi/include/recoup_mpi.h crates/capi/include/recoup_petsc*.h \
	    crates/capi/include/recoup.f90 $(DESTDIR)$(PREFIX)/include
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' crates/capi/recoup.pc.in \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/recoup.pc
	@echo "For h5py, h5dump and other HDF5 programs to read QB variables:"
	@echo "  export HDF5_PLUGIN_PATH=$(PLUGIN)"

clean:
	$(CARGO) clean
	rm -rf demo-report .venv
