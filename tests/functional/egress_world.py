# SPDX-License-Identifier: Apache-2.0
"""The small internet of tests/lib/internet.py around one command, in a network namespace of its own: run by `unshare -rn`, so it needs no root.

Usage: egress_world.py COMMAND…: ends with its exit code. SOMA_WORLD_TREE names a folder of package indices to serve.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import internet  # noqa: E402

internet.set_up(os.environ.get("SOMA_WORLD_TREE"))
sys.exit(subprocess.run(sys.argv[1:]).returncode)
