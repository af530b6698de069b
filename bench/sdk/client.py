# SPDX-License-Identifier: Apache-2.0
"""client.py ROUNDS NAME=URL=KEY...: the times of each server in milliseconds, as JSON, the servers taking turns."""
import json
import sys
import time

from e2b import Sandbox


def once(url, key):
    """create, first output of `echo`, kill; each from the beginning."""
    begin = time.perf_counter()
    sandbox = Sandbox.create("base", api_url=url, sandbox_url=url, api_key=key)
    created = time.perf_counter()
    sandbox.commands.run("echo hi")
    said = time.perf_counter()
    sandbox.kill()
    return created - begin, said - created, time.perf_counter() - begin


def main():
    rounds = int(sys.argv[1])
    servers = [word.split("=", 2) for word in sys.argv[2:]]
    times = {name: {"create": [], "run": [], "all": [], "true": []} for name, _, _ in servers}
    kept = {name: Sandbox.create("base", api_url=url, sandbox_url=url, api_key=key) for name, url, key in servers}
    for number in range(rounds + 5):
        for name, url, key in servers:
            created, said, whole = once(url, key)
            begin = time.perf_counter()
            kept[name].commands.run("true")
            true = time.perf_counter() - begin
            if number >= 5:  # the first ones warm connections and pools
                for kind, seconds in (("create", created), ("run", said), ("all", whole), ("true", true)):
                    times[name][kind].append(seconds * 1000)
    for sandbox in kept.values():
        sandbox.kill()
    print(json.dumps(times))


main()
