#!/bin/sh
# Four solves under injected failures, every scheme side by side, and a report with plots for each.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
recoup=${RECOUP:-target/release/recoup}
report=${REPORT:-demo-report}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
mkdir -p "$report"

# One comparison: a folder name, a title, then what `recoup compare` is told.
compare() {
    name=$1
    title=$2
    shift 2
    printf '\n== %s\n' "$title"
    "$recoup" compare "$@" --dir "$work/$name" --report "$report/$name" --seed 1
    entries="$entries<li><a href=\"$name/index.html\">$title</a></li>"
}

entries=
compare cg "CG, 3D Poisson" \
    --poisson3d 64 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 \
    --failures inject --mtti 1800 --virtual-time --t-iter 5 --pfs-bandwidth 17476
compare gmres "GMRES(30), 3D Poisson" \
    --poisson3d 48 --rhs-kind random --method gmres --restart 30 --pc jacobi --rtol 1e-8 \
    --failures inject --mtti 1800 --virtual-time --t-iter 5 --pfs-bandwidth 7373
compare jacobi "Jacobi, 3D Poisson" \
    --poisson3d 32 --rhs-kind random --method jacobi --rtol 1e-4 \
    --failures inject --mtti 1800 --virtual-time --t-iter 2 --pfs-bandwidth 2185
compare bcsstk14 "CG, bcsstk14 (stiffness of a roof)" \
    --matrix tests/data/bcsstk14.mtx.gz --rhs-kind smooth --method cg --pc jacobi --rtol 1e-8 \
    --failures at:60,140,220 --mtti 1800 --interval 30it
compare sherman5 "GMRES(30), sherman5 (oil reservoir)" \
    --matrix tests/data/sherman5.mtx.gz --rhs-kind smooth --method gmres --restart 30 --pc jacobi --rtol 1e-8 \
    --failures at:100,200,300 --mtti 1800 --interval 60it

cat >"$report/index.html" <<HTML
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>recoup: demo</title>
<style>body { font: 17px/1.6 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem }</style>
<h1>recoup: what each scheme costs</h1>
<p>The same failures, seed by seed, under every scheme.</p>
<ul>$entries</ul>
</html>
HTML
printf '\nThe report lies in %s/index.html\n' "$report"
