# SPDX-License-Identifier: Apache-2.0
"""The guest agent is the attacker: lengths that lie, messages without end, silence, a million streams. The server's memory stays flat
and a neighbour is served meanwhile."""
import os
import pathlib
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lib"))
import hostile  # noqa: E402
from conftest import skip  # noqa: E402

ATTACKERS = 3  # of each kind
GROWTH_MIB_MAX = 48  # for all of them together: a session's own bounds are below 3 MiB
SECONDS = float(os.environ.get("SOMA_FLOOD_SECONDS", "3"))


@pytest.fixture(scope="module")
def server():
    if os.geteuid() != 0:
        skip("containers with a range of ids need root")
    with hostile.HostileServer() as made:
        made.neighbour = made.create(templateID="good")
        hostile.command_seconds(made.neighbour, 20)  # whatever is loaded late is loaded
        yield made


@pytest.mark.parametrize("mode", hostile.MODES)
def test_memory_stays_flat_and_a_neighbour_is_served(server, mode):
    pid = server.server_pid()
    before = server.memory_kib()["VmRSS"]
    # Where the agent does not even greet, creating waits for it: not this thread.
    attacks = [threading.Thread(target=server.attack, args=[mode]) for _ in range(ATTACKERS)]
    for attack in attacks:
        attack.start()
    end = time.monotonic() + SECONDS
    served = 0
    highest = before
    while time.monotonic() < end or served < 10:
        served += len(hostile.command_seconds(server.neighbour, 2))
        highest = max(highest, server.memory_kib()["VmRSS"])
    for attack in attacks:
        attack.join()
    assert server.server_pid() == pid, "the server did not live through it"
    grown = (max(highest, server.memory_kib()["VmRSS"]) - before) / 1024
    print(f"{mode}: {served} commands of the neighbour, {grown:.1f} MiB more")
    assert grown < GROWTH_MIB_MAX


def test_the_attackers_were_there(server):
    """Greeting is enough to be taken for an agent: the attacks above went on with a sandbox of their own."""
    assert server.attack("silent") == 201
