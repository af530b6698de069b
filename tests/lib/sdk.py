# SPDX-License-Identifier: Apache-2.0
"""E2B's own SDKs, two generations each, installed once below build/sdk by npm and pip."""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PLACE = pathlib.Path(os.environ.get("SOMA_SDK_DIR", ROOT / "build/sdk"))
# The newest is pinned too: a test that changes by itself explains nothing. `previous` still speaks the unversioned create call.
VERSIONS = {"js": {"newest": "2.51.0", "previous": "2.45.0"}, "py": {"newest": "2.63.0", "previous": "2.45.1"}}
NODE = "22"  # Debian 12's is too old for the SDK


class NotInstalled(Exception):
    pass


def _run(argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, **options)
    if done.returncode != 0:
        raise NotInstalled(f"{argv[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def _marked(folder, version, install):
    """Runs `install` unless it has succeeded for this version."""
    mark = folder / ".installed"
    if not mark.exists() or mark.read_text() != version:
        folder.mkdir(parents=True, exist_ok=True)
        install()
        mark.write_text(version)


def javascript(generation):
    """(command prefix, folder in which scripts find the SDK)."""
    folder = PLACE / f"js-{generation}"
    version = VERSIONS["js"][generation]

    def install():
        (folder / "package.json").write_text('{"private": true, "type": "module"}\n')
        _run(["npm", "install", "--no-audit", "--no-fund", "--silent", f"node@{NODE}", f"e2b@{version}"], cwd=folder)

    _marked(folder, version, install)
    return [str(folder / "node_modules/.bin/node")], folder


def python(generation):
    folder = PLACE / f"py-{generation}"
    version = VERSIONS["py"][generation]

    def install():
        _run(["/usr/bin/python3", "-m", "venv", str(folder)])
        _run([str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", f"e2b=={version}"])

    _marked(folder, version, install)
    return [str(folder / "bin/python")], folder


def run_script(language, generation, script, environment, timeout=120):
    """Runs a script of ours with that SDK; gives the finished process."""
    prefix, folder = javascript(generation) if language == "js" else python(generation)
    place = pathlib.Path(script)
    if language == "js":
        # Node looks for packages beside the script, so a copy lies beside them.
        place = folder / place.name
        place.write_bytes(pathlib.Path(script).read_bytes())
    return subprocess.run([*prefix, str(place)], env=environment, capture_output=True, text=True, timeout=timeout)
