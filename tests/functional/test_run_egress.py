# SPDX-License-Identifier: Apache-2.0
"""`soma run` with network rules: the whole way, policy to broker to journal, on the small internet of egress_world.py."""
import json
import pathlib

import pytest

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = "93.184.216.1 allowed.test\n10.1.2.3 private.test\n"
# The little internet's namespace has its maker as root; the run's caller is an ordinary user there.
ORDINARY = ["unshare", "--user", "--map-user=1954", "--map-group=1954"]
CURL = ["curl", "-sS", "--max-time", "20", "--noproxy", "*"]


@pytest.fixture
def run(caller, soma_bin):
    def start(*arguments):
        (caller.home / "hosts").write_text(HOSTS)
        ran = caller.run(["unshare", "--map-root-user", "--net", "/usr/bin/python3", "-B", HERE / "egress_world.py",
                          *ORDINARY, soma_bin / "soma", "run", *arguments],
                         env={"SOMA_TEST_HOSTS": str(caller.home / "hosts")}, cwd=caller.home / "work")
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
