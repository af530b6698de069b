# SPDX-License-Identifier: Apache-2.0
"""Local package indices as plain folders, one a host name (internet.py serves them): pypi.test, npm.test, deb.test and git.test.

Each holds one tiny package that says `hello from X`.
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import zipfile


def _wheel(folder):
    name = "hello_soma-1.0-py3-none-any.whl"
    files = {"hello_soma.py": 'print("hello from pip")\n',
             "hello_soma-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: hello-soma\nVersion: 1.0\n",
             "hello_soma-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: soma\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files["hello_soma-1.0.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return name


def make_pypi(folder):
    index = folder / "simple/hello-soma"
    index.mkdir(parents=True)
    name = _wheel(index)
    (index / "index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>\n')


def make_npm(folder):
    folder.mkdir()
    files = {"package.json": json.dumps({"name": "hello-soma", "version": "1.0.0", "main": "index.js"}),
             "index.js": 'console.log("hello from npm")\n'}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    tarball = packed.getvalue()
    (folder / "tarballs").mkdir()
    (folder / "tarballs/hello-soma-1.0.0.tgz").write_bytes(tarball)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
    version = {"name": "hello-soma", "version": "1.0.0", "main": "index.js",
               "dist": {"tarball": "http://npm.test/tarballs/hello-soma-1.0.0.tgz", "integrity": integrity}}
    (folder / "hello-soma").write_text(json.dumps({"name": "hello-soma", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def make_deb(folder, name="hello-soma"):
    """folder/NAME.deb, whose program NAME needs to be root's and whose maintainer script runs as root. Gives its path."""
    build = folder / f"{name}.build"
    (build / "DEBIAN").mkdir(parents=True)
    (build / "usr/bin").mkdir(parents=True)
    (build / f"usr/bin/{name}").write_text("#!/bin/sh\necho hello from apt\n")
    (build / "DEBIAN/control").write_text(f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: Soma <soma@example.invalid>\n"
                                          "Description: says hello\n")
    (build / "DEBIAN/postinst").write_text(f"#!/bin/sh\nset -e\nid -u > /var/lib/{name}.uid\n")
    for path in (build / f"usr/bin/{name}", build / "DEBIAN/postinst"):
        path.chmod(0o755)
    deb = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", build, deb], check=True, capture_output=True)
    subprocess.run(["rm", "-r", build], check=True)
    return deb


def make_apt(folder):
    """A flat repository without signatures: `deb [trusted=yes] http://deb.test ./`."""
    folder.mkdir()
    deb = make_deb(folder)
    content = deb.read_bytes()
    control = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
    listing = f"{control}Filename: ./{deb.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n\n".encode()
    (folder / "Packages").write_bytes(listing)
    (folder / "Release").write_text(f"Suite: stable\nDate: Sun, 01 Jan 2023 00:00:00 UTC\nSHA256:\n {hashlib.sha256(listing).hexdigest()} {len(listing)} Packages\n")


def make_git(folder):
    """A repository that is read by plain HTTP: http://git.test/hello.git"""
    folder.mkdir()
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments):
        identity = ["-c", "user.name=soma", "-c", "user.email=soma@example.invalid", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *identity, *map(str, arguments)], env=clean, check=True, capture_output=True)

    work = folder / "work"
    git("init", work)
    (work / "hello.txt").write_text("hello from git\n")
    git("-C", work, "add", "hello.txt")
    git("-C", work, "commit", "-m", "hello")
    git("clone", "--bare", work, folder / "hello.git")
    git("-C", folder / "hello.git", "update-server-info")
    subprocess.run(["rm", "-r", work], check=True)


@contextlib.contextmanager
def readable_folder():
    """A folder that every user can read. pytest's own can't be: each session takes the others' rights away again."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="soma-world-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_all(tree):
    """All of them below tree/; readable by everybody."""
    tree.mkdir(exist_ok=True)
    make_pypi(tree / "pypi.test")
    make_npm(tree / "npm.test")
    make_apt(tree / "deb.test")
    make_git(tree / "git.test")
    subprocess.run(["chmod", "-R", "a+rX", tree], check=True)
    return tree
