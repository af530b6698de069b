# SPDX-License-Identifier: Apache-2.0
"""`soma run` with network rules: the whole way, policy to broker to journal, on the small internet of egress_world.py."""
import json
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import internet  # noqa: E402
import packages  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
# The little internet's namespace has its maker as root; the run's caller is an ordinary user there.
ORDINARY = ["unshare", "--user", "--map-user=1954", "--map-group=1954"]
CURL = ["curl", "-sS", "--max-time", "20", "--noproxy", "*"]


@pytest.fixture
def run(caller, soma_bin):
    def start(*arguments, tree=None):
        (caller.home / "hosts").write_text(internet.HOSTS)
        ran = caller.run(["unshare", "--map-root-user", "--net", "/usr/bin/python3", "-B", HERE / "egress_world.py",
                          *ORDINARY, soma_bin / "soma", "run", *arguments],
                         env={"SOMA_TEST_HOSTS": str(caller.home / "hosts"), **({"SOMA_WORLD_TREE": str(tree)} if tree else {})},
                         cwd=caller.home / "work", timeout=300)
        tail = caller.run([soma_bin / "soma-tools", "audit", "tail", "--json", "--kind", "egress", "-n", "1000"])
        return ran, [json.loads(line) for line in tail.stdout.splitlines()]

    return start


def test_an_allowed_name_is_reached_and_the_run_is_in_the_record(run):
    ran, events = run("--allow-net", "allowed.test:8080", "--", *CURL, "http://allowed.test:8080/")
    assert ran.stdout == "reached 93.184.216.1\n", ran.stderr
    assert ("allow", "allowed.test:8080") in [(event["verdict"], event["object"]) for event in events]
    assert all(event["run"] for event in events)


def test_the_rest_is_refused(run):
    ran, _ = run("--allow-net", "allowed.test:8080", "--", *CURL, "http://other.test:8080/")
    assert ran.returncode == 6, ran.stderr
    ran, _ = run("--allow-net", "allowed.test:8080", "--", *CURL, "http://93.184.216.7:8080/")
    assert "reached" not in ran.stdout and ran.returncode != 0
    ran, events = run("--allow-net", "private.test", "--", *CURL, "http://private.test:8080/")
    assert "reached" not in ran.stdout and ran.returncode != 0
    assert events[-1]["verdict"] == "deny"


def test_exit_codes_pass_through(run):
    ran, _ = run("--allow-net", "allowed.test", "--", "sh", "-c", "exit 7")
    assert ran.returncode == 7, ran.stderr


# ---- package managers -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree():
    with packages.readable_folder() as folder:
        yield packages.make_all(folder / "tree")


PACKAGES = {
    "git": ("git.test", "git clone -q http://git.test/hello.git && cat hello/hello.txt"),
    # pip from the wheel that venv would unpack, which takes it longer than all the rest of this test.
    "pip": ("pypi.test", "python3 -m venv --without-pip v && pip=$(echo /usr/share/python-wheels/pip-*.whl)/pip"
                         " && v/bin/python $pip install -q --retries 0 --index-url http://pypi.test/simple --trusted-host pypi.test hello-soma"
                         " && v/bin/python -c 'import hello_soma'"),
    "npm": ("npm.test", "npm install --no-audit --no-fund --silent --fetch-retries=0 --cache ./cache --registry http://npm.test hello-soma"
                        " && node -e 'require(\"hello-soma\")'"),
    # The system is read-only here: apt works on lists of its own, and gets the package.
    "apt": ("deb.test", "mkdir -p a/lists/partial a/cache/archives/partial && echo 'deb [trusted=yes] http://deb.test ./' > a/list"
                        " && o=\"-q -o Dir::State::Lists=$PWD/a/lists -o Dir::Cache=$PWD/a/cache -o Dir::Etc::SourceList=$PWD/a/list"
                        " -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=\""
                        " && apt-get $o update >&2 && apt-get $o download hello-soma >&2 && dpkg-deb -x hello-soma_1.0_all.deb x"
                        " && x/usr/bin/hello-soma"),
}


@pytest.mark.parametrize("manager", PACKAGES)
def test_package_managers_work_through_the_broker(run, tree, manager):
    host, script = PACKAGES[manager]
    script = f'cd "$(mktemp -d -p "$PWD")" && {script}'  # what one run leaves must not serve the next
    ran, events = run("--allow-net", host, "--", "sh", "-c", script, tree=tree)
    assert (ran.returncode, ran.stdout) == (0, f"hello from {manager}\n"), ran.stderr
    assert {(event["verdict"], event["object"]) for event in events if event["subject"] == "connect"} == {("allow", f"{host}:80")}
    refused, _ = run("--allow-net", "allowed.test", "--", "sh", "-c", script, tree=tree)
    assert refused.returncode != 0, refused.stdout
