#!/bin/sh
# Loads the module file of an installed recoup with every module system that is here, kills a solve and resumes it.
#   make install PREFIX=/tmp/recoup && packaging/try/module.sh /tmp/recoup
set -eu
prefix=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/user.sh" <<'END'
. "$2"
module use "$1/share/modulefiles"
module load recoup
set -eu
[ "$(command -v recoup)" = "$1/bin/recoup" ]
[ "$HDF5_PLUGIN_PATH" = "$1/lib/hdf5/plugin" ]
pkg-config --exists recoup
timeout --signal=KILL 3 recoup run --poisson3d 40 --method cg --pc jacobi --rtol 1e-8 \
    --interval 10it --t-iter 50ms --dir versions || echo killed
recoup run --poisson3d 40 --method cg --pc jacobi --rtol 1e-8 --interval 10it --t-iter 50ms --dir versions 2>&1 |
    grep 'resuming from version'
set +eu
module unload recoup
! command -v recoup
END

tried=0
for init in /usr/share/modules/init/bash /usr/share/lmod/lmod/init/bash; do
    [ -e "$init" ] || continue
    tried=$((tried + 1))
    mkdir "$work/$tried"
    (cd "$work/$tried" && env -i HOME="$work" PATH=/usr/bin:/bin bash "$work/user.sh" "$prefix" "$init")
    echo "module: $init is served"
done
[ "$tried" -gt 0 ] || { echo "module: neither Environment Modules nor Lmod is here" >&2; exit 1; }
