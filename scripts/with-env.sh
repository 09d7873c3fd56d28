#!/bin/sh
# Runs a command with the tools of .venv on the path and the serial HDF5 chosen.
#   scripts/with-env.sh cargo build
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

if [ -d "$root/.venv/bin" ]; then
    PATH=$root/.venv/bin:$PATH
    RECOUP_PYTHON=$root/.venv/bin/python
    export PATH RECOUP_PYTHON
    # CUDA's runtime compiler, which the tests compile kernels with where there is no toolkit.
    for nvrtc in "$root"/.venv/lib/python3*/site-packages/nvidia/cu13/lib; do
        if [ -d "$nvrtc" ]; then
            export RECOUP_NVRTC="${RECOUP_NVRTC:-$nvrtc}"
        fi
    done
fi

# Beside a parallel HDF5, pkg-config means that one when asked for plain hdf5, and a serial program
# would link it without a word. Where both names mean the same, nothing is set.
if [ -z "${HDF5_DIR:-}" ] && command -v pkg-config >/dev/null 2>&1 && pkg-config --exists hdf5-serial; then
    serial=$(pkg-config --libs-only-L hdf5-serial | tr -d ' ' | sed 's/^-L//')
    plain=$(pkg-config --libs-only-L hdf5 2>/dev/null | tr -d ' ' | sed 's/^-L//' || true)
    if [ -n "$serial" ] && [ "$serial" != "$plain" ]; then
        HDF5_DIR=$serial
        export HDF5_DIR
    fi
fi

exec "$@"
