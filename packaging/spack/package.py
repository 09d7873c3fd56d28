# Copyright The recoup developers
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""Spack's recipe. `cargo xtask release` writes the checksum of the source archive into it."""

from spack_repo.builtin.build_systems.generic import Package
from spack_repo.builtin.build_systems.python import PythonExtension, PythonPipBuilder

from spack.package import *


class Recoup(Package, PythonExtension):
    """Checkpoints for iterative solvers: lossless, or lossy within a bound that follows the
    residual. The program recoup, librecoup for C, C++, Fortran and PETSc, and a Python package."""

    homepage = "https://github.com/recoup-rs/recoup"
    url = "https://github.com/recoup-rs/recoup/releases/download/v0.1.0/recoup-0.1.0.tar.gz"

    license("Apache-2.0 OR MIT", checked_by="recoup-rs")

    version("0.1.0", sha256="@SHA256@")

    variant(
        "mpi", default=True, description="Ranks of MPI jobs in the program and in libveloc-client"
    )
    variant(
        "petsc",
        default=False,
        description="PETSc, whose programs the headers recoup_petsc.h serve",
    )
    variant("python", default=False, description="The Python package")
    variant(
        "cuda",
        default=False,
        description="CUDA's runtime compiler, which solvers on a device load",
    )

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.89:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("petsc", when="+petsc")
    # The code is in every build and looks for the driver at run time.
    depends_on("cuda@12.2:", type="run", when="+cuda")

    with when("+python"):
        extends("python@3.10:")
        depends_on("py-pip", type="build")
        depends_on("py-maturin@1.9:1", type="build")
        depends_on("py-numpy@1.23:", type=("build", "run"))

    def setup_build_environment(self, env):
        if self.spec.satisfies("+mpi"):
            env.set("MPICC", self.spec["mpi"].mpicc)
        else:
            env.set("MPICC", "no-mpicc")

    def setup_run_environment(self, env):
        env.prepend_path("HDF5_PLUGIN_PATH", self.prefix.lib.hdf5.plugin)

    def install(self, spec, prefix):
        make("build", "library")
        make("install-program", "install-library", "install-veloc", f"PREFIX={prefix}")
        if spec.satisfies("+python"):
            env["RECOUP_PROGRAM"] = "target/release/recoup"
            pip(*PythonPipBuilder.std_args(self), f"--prefix={prefix}", ".")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def solve(self):
        Executable(self.prefix.bin.recoup)("solve", "--poisson3d", "16", "--method", "cg")
