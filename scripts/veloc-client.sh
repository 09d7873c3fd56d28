#!/bin/sh
# Makes libveloc-client.so and .a, which give librecoup's calls the names of VELOC.
#   scripts/veloc-client.sh LIBRECOUP.SO TARGET_DIRECTORY
# The shared one looks for librecoup beside itself; a program that links the static one links librecoup too.
# With mpicc, or what MPICC names, VELOC_Init is in it; without, VELOC_Init_single is the only way in, and it says so.
set -eu

core=$1
target=$2
crate=$(CDPATH='' cd -- "$(dirname -- "$0")/../crates/doors/veloc" && pwd)
mpicc=${MPICC:-mpicc}
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() {
    "$1" -std=c11 -O2 -fPIC -Wall -Wextra -Werror -I "$crate/include" -I "$crate/../capi/include" \
        -c "$crate/shim/$2.c" -o "$work/$2.o"
}

mkdir -p "$target"
compile "$cc" veloc_calls
objects=$work/veloc_calls.o
if command -v "$mpicc" >/dev/null 2>&1; then
    compile "$mpicc" veloc_mpi
    objects="$objects $work/veloc_mpi.o"
    cc=$mpicc
else
    echo "veloc-client: $mpicc is not there, so this libveloc-client has no VELOC_Init, only VELOC_Init_single" >&2
fi
# shellcheck disable=SC2086 # a list of files
ar rc "$work/libveloc-client.a" $objects
if [ "$(uname)" = Darwin ]; then
    echo "veloc-client: this linker cannot hide names, so only libveloc-client.a is made" >&2
    mv "$work/libveloc-client.a" "$target/"
    exit 0
fi
# Only the interface's own names leave the library.
printf '{ global: VELOC_*; local: *; };\n' >"$work/names"
# A linker that loads every plugin it finds complains of each object it takes for foreign bitcode.
linked=0
# shellcheck disable=SC2016,SC2086 # $ORIGIN is the loader's, and a list of files
"$cc" -shared -o "$work/libveloc-client.so" -Wl,-soname,libveloc-client.so -Wl,--version-script="$work/names" \
    -Wl,--no-undefined -Wl,-rpath,'$ORIGIN' $objects "$core" 2>"$work/log" || linked=$?
grep -v '^bfd plugin: ' "$work/log" >&2 || true
[ "$linked" = 0 ] || exit "$linked"
mv "$work/libveloc-client.a" "$work/libveloc-client.so" "$target/"
