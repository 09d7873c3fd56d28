#!/bin/sh
# Packs what `make build library` built as Debian packages in target/packages: recoup, and recoup-veloc over it.
# `make deb` runs it, with cargo-deb of scripts/bootstrap.sh on the path.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
stage=target/stage/debian
packages=target/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Files carry the time of the commit, so that the same sources give the same packages.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
# Where the distribution's own HDF5 looks for filters.
plugins=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/hdf5/serial/plugins

put() {
    make --no-print-directory "$2" "DESTDIR=$stage/$1" PREFIX=/usr "PLUGIN=$plugins"
}

# The page of changes in the form that Debian's tools read.
changelog() {
    cat <<END
$1 ($version-1) unstable; urgency=medium

  * Version $version. /usr/share/doc/recoup/changelog.gz lists the changes.

 -- The recoup developers <>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
}

rm -rf "$stage"
put recoup install-program
put recoup install-library
put recoup-veloc install-veloc
# A shared one would bring an MPI with it. The static one takes the MPI of the program.
rm -f "$stage/recoup-veloc/usr/lib/libveloc-client.so"
doc=$stage/recoup/usr/share/doc/recoup
install -d "$doc/examples"
install -m 644 examples/embed/* "$doc/examples"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
for name in recoup recoup-veloc; do
    changelog "$name" >"$stage/$name.changelog"
done
# shellcheck disable=SC2046 # shell completions are not run
chmod 644 $(find "$stage" -path '*/share/*' -type f)

chmod 644 "$stage/recoup/usr/lib/librecoup.so.$version" "$stage/recoup$plugins"/*
{
    echo "Debian systems have the Apache License in /usr/share/common-licenses/Apache-2.0. The other choice:"
    echo
    cat LICENSE-MIT
} >"$stage/licence"

mkdir -p "$packages"
cargo deb --package recoup-cli --no-build --no-strip --output "$packages"
cargo deb --package recoup-cli --no-build --no-strip --output "$packages" --variant veloc
