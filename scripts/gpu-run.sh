#!/bin/sh
# Measures the CUDA device of this machine and runs the device tests, within 10 minutes.
#   run.sh RESULTS [--quick] [--device N]
# `cargo xtask gpu --pack DIR` puts this script next to the programs and kernels that it runs. They need the GPU's
# driver, for the release of CUDA whose NVRTC made the kernels or a newer one, and neither cargo nor NVRTC.
# RESULTS gets gpu.json, gpu.md and what each list of tests said. Exit code: 0, 5 without a device, else 1.
set -u
if [ $# -lt 1 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$1" && results=$(CDPATH='' cd -- "$1" && pwd) || exit 1
shift
export RECOUP_KERNELS="$here/kernels" RECOUP_REAL_DEVICE=1
failed=0

timeout 300 "$here/recoup-gpu" measure --out "$results" "$@"
code=$?
[ "$code" -ne 5 ] || exit 5
[ "$code" -eq 0 ] || {
    echo "recoup-gpu: exit code $code, 124 is the limit of 300 s" >&2
    failed=1
}

# Runs a list of tests; options choose those that need a device and no compiler.
tests() {
    name=$1
    shift
    timeout 75 "$here/$name" "$@" >"$results/$name.txt" 2>&1
    code=$?
    echo "$name: $(grep '^test result' "$results/$name.txt" || echo "exit code $code, 124 is the limit of 75 s")"
    [ "$code" -eq 0 ] || failed=1
}

tests device-tests --skip kernels::a_source_
tests solvers-tests --skip kernels::
tests codec-tests device::
tests tape-tests
exit "$failed"
