#!/bin/sh
# Builds the wheel, with the program among its scripts, for every Linux with glibc 2.28 or newer: target/packages/*.whl.
#   packaging/wheel/build.sh             for this processor: make wheel
#   packaging/wheel/build.sh aarch64     for another one, for which rustup has the target: make wheel PROCESSOR=aarch64
# Needs maturin, ziglang and cargo-zigbuild of PyPI: zig links against an older C library than this system's.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
target=${1:-$(uname -m)}-unknown-linux-gnu
program=target/$target/release/recoup
# Files carry the time of the commit, so that the same sources give the same wheel.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH

command -v cargo-zigbuild > /dev/null || {
    echo "no cargo-zigbuild: make wheel installs it" >&2
    exit 1
}
rustup target list --installed 2>/dev/null | grep -qx "$target" || {
    echo "no toolchain for $target: rustup target add $target" >&2
    exit 1
}
cargo-zigbuild rustc --release --locked --target "$target.2.28" --package recoup-cli --bin recoup -- -C strip=symbols
RECOUP_PROGRAM=$program PYTHONPATH=packaging/wheel python3 -c 'import recoup_backend; recoup_backend.stage_program()'
maturin build --release --locked --zig --compatibility manylinux_2_28 --target "$target" --out target/packages
