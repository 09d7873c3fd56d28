"""Builds the wheel: maturin's backend, with the program `recoup` among the scripts.

`RECOUP_PROGRAM` names a program that was built already. Without it, cargo builds one as it builds the library.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

# `data` of [tool.maturin] in pyproject.toml.
SCRIPTS = Path("target/wheel-data/scripts")


def build_program() -> Path:
    """Builds the program with the profile that maturin is asked for and returns its path."""
    arguments = shlex.split(os.environ.get("MATURIN_PEP517_ARGS", ""))
    profile = arguments[arguments.index("--profile") + 1] if "--profile" in arguments else "release"
    cargo = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--package", "recoup-cli", "--profile", profile]
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    subprocess.run([*cargo, "--target-dir", target], check=True)
    return Path(target, "debug" if profile == "dev" else profile, "recoup")


def stage_program() -> None:
    """Puts the program where maturin takes the scripts of the wheel from."""
    given = os.environ.get("RECOUP_PROGRAM")
    program = Path(given) if given else build_program()
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    staged = SCRIPTS / "recoup"
    shutil.copy(program, staged)
    # A program of another processor stays as it is.
    if strip := shutil.which("strip"):
        subprocess.run([strip, staged], check=False, stderr=subprocess.DEVNULL)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)  # maturin refuses a folder that is not there
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    stage_program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    stage_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
