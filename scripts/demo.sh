#!/bin/sh
# Five solves under injected failures, every scheme side by side, and a report with plots over all of them.
# Time is virtual: each solve takes about an hour of it, a vector two minutes to write, and failures come every half hour on
# average, as in the published experiments (doi 10.1145/3208040.3208050) with twice as many failures. All rates are declared,
# so the seeds repeat on every machine, and docs/overview.svg is what this draws.
# Then a small seismic adjoint, with every way to keep its states, in real time (docs/rtm.md).
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
recoup=${RECOUP:-target/demo/recoup}
rtm=${RTM:-target/demo/examples/rtm}
report=${REPORT:-demo-report}

# One comparison: a folder's name, a title, then what `recoup compare` is told.
compare() {
    name=$1
    printf '\n== %s\n' "$2"
    shift 2
    "$recoup" compare "$@" --failures inject --mtti 1800 --virtual-time --codec-rate 5e8 --trials 10 --seed 1 \
        --report "$report/$name"
}

compare cg "CG, 3D Poisson" \
    --poisson3d 32 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --t-iter 30 --pfs-bandwidth 2185
compare gmres "GMRES(30), 3D Poisson" \
    --poisson3d 24 --rhs-kind random --method gmres --restart 30 --pc jacobi --rtol 1e-8 --t-iter 26 --pfs-bandwidth 922
compare jacobi "Jacobi, 3D Poisson" \
    --poisson3d 16 --rhs-kind random --method jacobi --rtol 1e-4 --t-iter 11 --pfs-bandwidth 273
compare bcsstk14 "CG, bcsstk14 (stiffness of a roof)" \
    --matrix tests/data/bcsstk14.mtx.gz --rhs-kind smooth --method cg --pc jacobi --rtol 1e-8 --t-iter 11 --pfs-bandwidth 120
compare sherman5 "GMRES(30), sherman5 (oil reservoir)" \
    --matrix tests/data/sherman5.mtx.gz --rhs-kind smooth --method gmres --restart 30 --pc jacobi --rtol 1e-8 --t-iter 9 \
    --pfs-bandwidth 220

printf '\n'
"$recoup" report "$report"

printf '\n== Image of two seismic shots, states in memory, on a tape and computed again\n'
"$rtm" --extents 201,121 --rounds 3 --report "$report/rtm"
