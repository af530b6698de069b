# SPDX-License-Identifier: Apache-2.0
"""A sandbox from start to end with E2B's own SDK.

Needs E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY, as `soma serve` prints them:

    pip install e2b && python3 quickstart.py
"""
import os
import time
import urllib.error
import urllib.request

from e2b import CommandExitException, Sandbox, SandboxQuery


def ask(host: str) -> str:
    """GET / of a host that is served by E2B_SANDBOX_URL, again while nothing listens there yet."""
    request = urllib.request.Request(os.environ["E2B_SANDBOX_URL"] + "/", headers={"Host": host})
    for attempt in range(301):
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.read().decode()
        except urllib.error.HTTPError as error:
            if attempt == 300:
                raise
            error.close()
            time.sleep(0.2)
    raise AssertionError("unreachable")


def use(sandbox: Sandbox) -> None:
    # Output arrives while the command runs.
    arrivals = []

    def on_stdout(text: str) -> None:
        arrivals.append(time.monotonic())
        print("  " + text, end="")

    counted = sandbox.commands.run(
        'for i in 1 2 3; do echo "line $i"; sleep 0.3; done; echo oops >&2', on_stdout=on_stdout)
    assert counted.stdout == "line 1\nline 2\nline 3\n", counted
    assert counted.stderr == "oops\n", counted
    assert counted.exit_code == 0
    assert arrivals[-1] - arrivals[0] > 0.3, "output was held back until the end"

    # A failing command is an exception that carries its exit code.
    try:
        sandbox.commands.run("exit 3")
        raise AssertionError("exit 3 did not raise")
    except CommandExitException as error:
        assert error.exit_code == 3

    # Standard input.
    cat = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(cat.pid, "through stdin\n")
    sandbox.commands.close_stdin(cat.pid)
    assert cat.wait().stdout == "through stdin\n"

    # Files.
    print("wrote", sandbox.files.write("soma-demo/hello.txt", "hello from outside").path)
    assert sandbox.files.read("soma-demo/hello.txt") == "hello from outside"
    assert [entry.name for entry in sandbox.files.list("soma-demo")] == ["hello.txt"]
    assert not sandbox.files.exists("soma-demo/nothing")
    sandbox.files.rename("soma-demo/hello.txt", "soma-demo/moved.txt")
    sandbox.files.remove("soma-demo")
    assert not sandbox.files.exists("soma-demo")

    # A web server inside, asked from outside by its host name. Only the Host header routes, so no
    # DNS is needed for this.
    server = sandbox.commands.run(
        "cd $(mktemp -d) && echo served > index.html && exec python3 -m http.server 8123",
        background=True)
    text = ask(sandbox.get_host(8123))
    assert text == "served\n", text
    print("web server inside says", repr(text))
    server.kill()

    # Life: its end can be moved, and it is in the list of its owner.
    sandbox.set_timeout(60)
    page = Sandbox.list(query=SandboxQuery(metadata={"example": "quickstart py"})).next_items()
    assert sandbox.sandbox_id in [item.sandbox_id for item in page]
    assert sandbox.is_running()


def main() -> None:
    sandbox = Sandbox.create(timeout=120, metadata={"example": "quickstart py"})
    print("created", sandbox.sandbox_id)
    try:
        use(sandbox)
    finally:
        sandbox.kill()
    assert not sandbox.is_running()
    assert not Sandbox.kill(sandbox.sandbox_id)
    print("killed; all good")


if __name__ == "__main__":
    main()
