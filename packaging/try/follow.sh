#!/bin/sh
# Follows a page of docs/install in a fresh Debian root: the lines of its `sh` blocks, as printed, as one script.
#   packaging/try/follow.sh docs/install/apt.md "" target/packages/recoup_*.deb
#   packaging/try/follow.sh docs/install/pip.md "python3 python3-venv" target/packages/*.whl
# The second word names the Debian packages that the reader of the page has already. The files lie in the reader's
# folder. The page must kill a solve and resume it. Needs root, debootstrap, and an archive of Debian packages.
set -eu
page=$1
has=$2
shift 2
root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
suite=bookworm
roots=$root/target/roots
name=$(basename "$page" .md)
bare=$roots/$suite
# What the reader has before the first line of the page; kept for the next time.
had=$roots/$name.had
fresh=$roots/$name
mkdir -p "$roots"

# The archive this system installs from.
archive() {
    sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1
}

# Gives a root the way of this system to the network.
connect() {
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
        [ ! -e "$file" ] || { mkdir -p "$1$(dirname "$file")" && cp -L "$file" "$1$file"; }
    done
    for file in /etc/apt/apt.conf.d/*; do
        [ -e "$1$file" ] || cp -L "$file" "$1$file"
    done
}

# Runs a script that lies in a root. What is mounted is gone with the last process.
enter() {
    # shellcheck disable=SC2016 # the inner shell's own words
    unshare --mount --pid --fork sh -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/srv/reader
        exec chroot "$1" /bin/sh -eu "$2"
    ' enter "$1" "$2"
}

if [ ! -e "$bare.done" ]; then
    rm -rf "$bare"
    debootstrap --variant=minbase "$suite" "$bare" "$(archive)" >"$bare.log"
    touch "$bare.done"
fi
if [ "$(cat "$had.done" 2>/dev/null)" != "has $has" ]; then
    rm -rf "$had" "$had.done"
    cp -a "$bare" "$had"
    connect "$had"
    mkdir -p "$had/srv/reader"
    if [ -n "$has" ]; then
        echo "apt-get update && apt-get install -y --no-install-recommends $has" >"$had/srv/has.sh"
        enter "$had" /srv/has.sh >"$had.log" 2>&1 || { tail -n 40 "$had.log"; exit 1; }
    fi
    echo "has $has" >"$had.done"
fi

rm -rf "$fresh"
cp -a "$had" "$fresh"
# Once more: packages may have put certificates of their own in place.
connect "$fresh"
cp "$@" "$fresh/srv/reader"
awk '/^```/ { inside = ($0 == "```sh"); next } inside' "$page" >"$fresh/srv/page.sh"
[ -s "$fresh/srv/page.sh" ]
cat >"$fresh/srv/enter.sh" <<'END'
cd /srv/reader
date +'page begins: %T'
sh -eux /srv/page.sh
date +'page ends: %T'
END
log=$fresh.log
enter "$fresh" /srv/enter.sh >"$log" 2>&1 || { tail -n 40 "$log"; echo "$page: its lines do not run" >&2; exit 1; }
for word in 'Killed\|killed' 'resuming from version\|starts at [1-9]' 'converged\|relative residual [0-9.]*e-\(0[89]\|1\)'; do
    grep -q "$word" "$log" || { tail -n 40 "$log"; echo "$page: no line says $word" >&2; exit 1; }
done
grep '^page \|resuming from\|starts at [1-9]' "$log"
rm -rf "$fresh"
