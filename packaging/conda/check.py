"""Renders the recipe for Linux as rattler-build does, and fails where it would refuse it."""

import sys
from pathlib import Path

from rattler_build import Stage0Recipe, VariantConfig

# The compilers of conda-forge. The checksum is written when there is an archive to name.
VARIANTS = """
c_compiler: [gcc]
c_stdlib: [sysroot]
c_stdlib_version: ["2.28"]
rust_compiler: [rust]
python: ["3.12.* *_cpython"]
"""

text = Path(sys.argv[1]).read_text().replace("@SHA256@", "0" * 64)
rendered = Stage0Recipe.from_yaml(text).render(VariantConfig.from_yaml(VARIANTS))
assert len(rendered) == 1, f"{len(rendered)} packages, one expected"
print(f"{sys.argv[1]}: {rendered[0].recipe.package.name} {rendered[0].recipe.package.version}")
