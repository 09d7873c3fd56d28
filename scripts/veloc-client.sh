#!/bin/sh
# Makes libveloc-client.so and .a of the static library that cargo built.
#   scripts/veloc-client.sh LIBRECOUP_VELOC.A TARGET_DIRECTORY
# With mpicc, or what MPICC names, VELOC_Init is in it; without, VELOC_Init_single is the only way in, and it says so.
set -eu

core=$1
target=$2
crate=$(CDPATH='' cd -- "$(dirname -- "$0")/../crates/veloc" && pwd)
mpicc=${MPICC:-mpicc}
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$target"
cp "$core" "$work/libveloc-client.a"
if command -v "$mpicc" >/dev/null 2>&1; then
    cc=$mpicc
    "$mpicc" -std=c11 -O2 -fPIC -Wall -Wextra -Werror -I "$crate/include" -I "$crate/../capi/include" \
        -c "$crate/shim/veloc_mpi.c" -o "$work/veloc_mpi.o"
    ar r "$work/libveloc-client.a" "$work/veloc_mpi.o" 2>/dev/null
else
    echo "veloc-client: $mpicc is not there, so this libveloc-client has no VELOC_Init, only VELOC_Init_single" >&2
fi
if [ "$(uname)" = Darwin ]; then
    echo "veloc-client: this linker cannot hide names, so only libveloc-client.a is made" >&2
    mv "$work/libveloc-client.a" "$target/"
    exit 0
fi
# Only the interface's own names leave the library.
printf '{ global: VELOC_*; local: *; };\n' >"$work/names"
# A linker that loads every plugin it finds complains of each object it takes for foreign bitcode.
linked=0
"$cc" -shared -o "$work/libveloc-client.so" -Wl,-soname,libveloc-client.so -Wl,--version-script="$work/names" \
    -Wl,--gc-sections -Wl,--whole-archive "$work/libveloc-client.a" -Wl,--no-whole-archive -lpthread -ldl -lm 2>"$work/log" || linked=$?
grep -v '^bfd plugin: ' "$work/log" >&2 || true
[ "$linked" = 0 ] || exit "$linked"
mv "$work/libveloc-client.a" "$work/libveloc-client.so" "$target/"
