# SPDX-License-Identifier: Apache-2.0
"""What people install has no switch that turns a wall off.

The sources that know a switch are preprocessed as the release build compiles them, and nothing of it is left. That the installed bytes
have none either is what test_release_install.py (label `long`) shows.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess

import pytest
from conftest import BIN, skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SOMA_BUILD_DIR", BIN.parent))
SWITCH = "SOMA_TEST_"  # starts the name of every variable that a test build reads
VARIABLE = re.compile(r"\bSOMA_TEST_(?!SWITCHES\b)")
MACRO = "-DSOMA_TEST_SWITCHES=1"


def sources():
    """The translation units of the product that know a switch; headers are seen through test_walls.cc, which has them all."""
    return sorted(path for path in (ROOT / "src").rglob("*.cc") if not path.name.endswith("_test.cc") and VARIABLE.search(path.read_text()))


def preprocessed(path, with_switches):
    commands = BUILD / "compile_commands.json"
    if not commands.exists():
        skip("no compile_commands.json: this is an installed tree")
    [command] = {entry["command"] for entry in json.loads(commands.read_text()) if entry["file"] == str(path)}
    words = [word for word in shlex.split(command) if word != MACRO]
    assert len(words) < len(shlex.split(command)), "the tests' own build has the switches"
    del words[words.index("-o"):words.index("-o") + 2]
    words[words.index("-c")] = "-E"
    while "-Xclang" in words:  # precompiled headers were made with the macro
        del words[words.index("-Xclang"):words.index("-Xclang") + 2]
    done = subprocess.run([*words, *([MACRO] if with_switches else [])], cwd=BUILD, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Without the comments, -E leaves only what is compiled; line markers are no code.
    return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("#"))


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_nothing_of_a_switch_is_compiled_without_the_macro(path):
    assert SWITCH in preprocessed(path, with_switches=True)
    assert SWITCH not in preprocessed(path, with_switches=False)


def test_the_release_build_does_not_define_the_macro():
    presets = {preset["name"]: preset for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
    release = {**presets[presets["release"]["inherits"]]["cacheVariables"], **presets["release"]["cacheVariables"]}
    assert "SOMA_TEST_SWITCHES" not in release
    [option] = [line for line in (ROOT / "CMakeLists.txt").read_text().splitlines() if line.startswith("option(SOMA_TEST_SWITCHES")]
    assert option.endswith("OFF)")
