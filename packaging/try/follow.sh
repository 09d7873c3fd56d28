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
base=$root/target/roots/$suite
fresh=$root/target/roots/$(basename "$page" .md)

# The archive this system installs from.
archive() {
    sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1
}

if [ ! -e "$base.done" ]; then
    rm -rf "$base"
    mkdir -p "$root/target/roots"
    debootstrap --variant=minbase "$suite" "$base" "$(archive)" >"$base.log"
    touch "$base.done"
fi
rm -rf "$fresh"
cp -a "$base" "$fresh"
# The way to the network is that of this system.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || { mkdir -p "$fresh$(dirname "$file")" && cp -L "$file" "$fresh$file"; }
done
for file in /etc/apt/apt.conf.d/*; do
    [ -e "$fresh$file" ] || cp -L "$file" "$fresh$file"
done
reader=$fresh/srv/reader
mkdir -p "$reader"
cp "$@" "$reader"
awk '/^```/ { inside = ($0 == "```sh"); next } inside' "$page" >"$fresh/srv/page.sh"
[ -s "$fresh/srv/page.sh" ]

cat >"$fresh/srv/enter.sh" <<END
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/srv/reader
[ -z "$has" ] || { apt-get update -qq && apt-get install -qq -y --no-install-recommends $has >/dev/null; }
cd /srv/reader
date +'page begins: %T'
sh -eux /srv/page.sh
date +'page ends: %T'
END
log=$fresh.log
# What is mounted is gone with the last process.
# shellcheck disable=SC2016 # the inner shell's own words
unshare --mount --pid --fork sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    chroot "$1" /bin/sh /srv/enter.sh
' enter "$fresh" >"$log" 2>&1 || { tail -n 40 "$log"; echo "$page: its lines do not run" >&2; exit 1; }
for word in 'Killed\|killed' 'resuming from version' 'converged'; do
    grep -q "$word" "$log" || { tail -n 40 "$log"; echo "$page: no line says $word" >&2; exit 1; }
done
grep '^page \|resuming from' "$log"
rm -rf "$fresh"
