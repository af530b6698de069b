# SPDX-License-Identifier: Apache-2.0
"""The journal from outside: what soma-tools records, tail shows, and verify finds."""
import hashlib
import json
import pathlib
import re
import subprocess

import pytest


@pytest.fixture
def tools(caller, soma_bin):
    def run(*arguments, **options):
        return caller.run([soma_bin / "soma-tools", *arguments], **options)

    return run


def journal(caller):
    return pathlib.Path(caller.home) / "state/journal"


def segment(caller):
    return journal(caller) / "segments/0/00000000.jsonl"


def make_keys(tools, count=2):
    return [tools("key", "create", "--tenant", "acme").stdout.strip() for _ in range(count)]


def test_a_key_change_is_recorded_and_the_chain_holds(tools):
    keys = make_keys(tools)
    assert all(re.fullmatch(r"e2b_[0-9a-f]{40}", key) for key in keys)
    tail = tools("audit", "tail", "--kind", "key_change", "--json")
    events = [json.loads(line) for line in tail.stdout.splitlines()]
    assert [event["subject"] for event in events] == ["tenant created", "key created", "key created"]
    assert not any(key in tail.stdout for key in keys)
    verified = tools("audit", "verify")
    assert verified.returncode == 0, verified.stdout
    assert "The chain holds" in verified.stdout


def test_any_tool_can_check_a_record(tools, caller):
    make_keys(tools)
    previous = "0" * 64
    for number, line in enumerate(segment(caller).read_bytes().splitlines()):
        record = json.loads(line)
        hashed = line[: line.rindex(b',"hash":"')]
        assert hashlib.sha256(hashed).hexdigest() == record["hash"]
        assert (record["n"], record["prev"]) == (number, previous)
        previous = record["hash"]


def damage_flip(lines):
    lines[2] = lines[2].replace(b"acme", b"acmf")
    return lines, 2


def damage_cut_middle(lines):
    return lines[:2] + lines[3:], 2


def damage_reorder(lines):
    return lines[:1] + [lines[2], lines[1]] + lines[3:], 1


def damage_cut_tail(lines):
    return lines[:-1], len(lines) - 1


@pytest.mark.parametrize("damage", [damage_flip, damage_cut_middle, damage_reorder, damage_cut_tail])
def test_damage_is_named_by_segment_record_and_byte(tools, caller, damage):
    make_keys(tools)
    lines = segment(caller).read_bytes().splitlines(keepends=True)
    changed, record = damage(list(lines))
    segment(caller).write_bytes(b"".join(changed))
    verified = tools("audit", "verify", "--json")
    assert verified.returncode == 1
    report = json.loads(verified.stdout)
    assert not report["ok"]
    fault = report["faults"][0]
    assert (fault["segment"], fault["record"]) == (0, record)
    assert fault["byte_offset"] == len(b"".join(lines[:record]))


def test_a_journal_put_back_in_time_is_found_by_a_head_kept_elsewhere(tools, caller):
    make_keys(tools, 1)
    before = {path: path.read_bytes() for path in journal(caller).rglob("*") if path.is_file()}
    make_keys(tools, 1)
    head = json.loads(tools("audit", "verify", "--json").stdout)["head"]
    for path, content in before.items():
        path.write_bytes(content)
    assert tools("audit", "verify").returncode == 0
    found = tools("audit", "verify", "--head", head)
    assert found.returncode == 1
    assert "cut off" in found.stdout


def test_a_revoked_key_is_listed_as_such_and_the_secret_never(tools):
    key = make_keys(tools, 1)[0]
    made = json.loads(tools("key", "list", "--json").stdout)[0]
    assert key not in json.dumps(made)
    assert tools("key", "revoke", made["id"]).returncode == 0
    assert "revoked" in json.loads(tools("key", "list", "--json").stdout)[0]
    assert tools("key", "revoke", "00000000").returncode == 125


def test_tail_follows(tools, caller, soma_bin):
    make_keys(tools, 1)
    follower = caller.popen([soma_bin / "soma-tools", "audit", "tail", "-n", "1", "-f"], stdout=subprocess.PIPE, text=True)
    try:
        # Once it shows what is there, it follows.
        assert "key created" in follower.stdout.readline()
        make_keys(tools, 1)
        assert "journal segment opened" in follower.stdout.readline()
        assert "key created" in follower.stdout.readline()
    finally:
        follower.kill()
        follower.wait()
        follower.stdout.close()


def test_wrong_use_is_one_clear_line_and_125(tools):
    for arguments in (["audit"], ["audit", "verify", "--head", "xyz"], ["audit", "verify", "--head", ""], ["nonsense"],
                      ["key", "create", "--tenant", "Not A Name"], ["audit", "verify", "--journal", "/nonexistent"],
                      ["audit", "tail", "--kind", "bogus"]):
        refused = tools(*arguments)
        assert refused.returncode == 125, arguments
        assert refused.stderr.startswith("soma: "), arguments
        assert refused.stdout == ""


def test_an_unknown_kind_is_told_the_known_ones(tools):
    refused = tools("audit", "tail", "--kind", "bogus")
    assert "bogus" in refused.stderr and "refusal" in refused.stderr and "egress" in refused.stderr
