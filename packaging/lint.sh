#!/bin/sh
# Checks the recipes, and what target/packages holds, each with its own tool; names the tools that are not here.
#   pip install py-rattler-build spython twine auditwheel abi3audit; apt-get install lintian shellcheck
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

have() {
    command -v "$1" >/dev/null 2>&1 || { echo "lint: $1 is not here: $2 not checked" >&2; return 1; }
}

if have shellcheck "scripts are"; then
    shellcheck packaging/*.sh packaging/*/*.sh
fi
if have spython "the Apptainer definition is"; then
    spython recipe --parser singularity packaging/apptainer/recoup.def >/dev/null
fi
if have spack "the recipe of Spack is"; then
    recipes=$(mktemp -d)
    spack repo create "$recipes" recoup_lint >/dev/null
    mkdir -p "$recipes/spack_repo/recoup_lint/packages/recoup"
    sed "s/@SHA256@/$(printf '%064d' 0)/" packaging/spack/package.py \
        >"$recipes/spack_repo/recoup_lint/packages/recoup/package.py"
    printf 'repos:\n  recoup_lint: %s\n' "$recipes/spack_repo/recoup_lint" >"$recipes/repos.yaml"
    spack -C "$recipes" audit packages recoup
    rm -r "$recipes"
else
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' packaging/spack/package.py
fi
if python3 -c 'import easybuild.framework, pycodestyle' 2>/dev/null; then
    python3 - packaging/easybuild/recoup.eb <<'EOF'
import sys
from easybuild.framework.easyconfig.parser import EasyConfigParser
from easybuild.framework.easyconfig.style import check_easyconfigs_style
assert EasyConfigParser(sys.argv[1]).get_config_dict()["name"] == "recoup"
sys.exit(check_easyconfigs_style([sys.argv[1]]))
EOF
else
    echo "lint: easybuild-framework is not here: the recipe of EasyBuild is checked as Python" >&2
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' packaging/easybuild/recoup.eb
fi
if python3 -c 'import rattler_build' 2>/dev/null; then
    python3 packaging/conda/check.py packaging/conda/recipe.yaml
else
    echo "lint: rattler_build is not here: the recipe of conda is not checked" >&2
fi
for package in target/packages/*.deb; do
    [ -e "$package" ] || continue
    have lintian "$package is" || continue
    lintian --fail-on error --suppress-tags-from-file packaging/debian/lintian-tags "$package"
done
for wheel in target/packages/*.whl; do
    [ -e "$wheel" ] || continue
    if have twine "$wheel is"; then twine check --strict "$wheel"; fi
    if have auditwheel "the C library that $wheel needs is"; then
        auditwheel show "$wheel" | grep -q 'consistent with the following platform tag: *"*manylinux_2_28' ||
            auditwheel show "$wheel" | tr '\n' ' ' | grep -Eq 'platform tag: +"manylinux_2_(1[0-9]|2[0-8])_'
    fi
    if have abi3audit "the Python interface of $wheel is"; then abi3audit --strict "$wheel"; fi
done
