"""Which TCP congestion control connections use here, and namespaces whose loopback uses another. Namespaces need root.

The kernel's default may be BBR, while most of the world runs CUBIC: under loss the two differ by factors of ten and more. A
route can choose the control of its connections (`ip route ... congctl cubic`); the default cannot be set in a namespace.

  python3 tools/dev/congestion_control.py     # prints the one in use over loopback, and what there is
"""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
COMMON = "cubic"  # what most hosts run
NAME_BYTES_MAX = 16  # TCP_CA_NAME_MAX


def name_of(raw):
    """The name in what TCP_CONGESTION returns: padded with zeros."""
    return raw.split(b"\0")[0].decode()


def in_use(address="127.0.0.1"):
    """The control of a new connection to an address of this host, asked of the connection itself: routes may choose one."""
    with socket.create_server((address, 0)) as server, socket.create_connection(server.getsockname()) as client:
        return name_of(client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES_MAX))


def available():
    """Those that the kernel has loaded; none where it does not tell."""
    return AVAILABLE.read_text().split() if AVAILABLE.exists() else []


def to_compare(default, offered):
    """The default first, then CUBIC and BBR, as far as the kernel offers them."""
    return [default] + [name for name in (COMMON, "bbr") if name in offered and name != default]


def describe(controls):
    """A line for a table's head: 'TCP congestion control: bbr (this kernel's default), cubic'."""
    return f"TCP congestion control: {controls[0]} (this kernel's default)" + "".join(f", {name}" for name in controls[1:])


def loopback_route(control):
    """Returns the arguments of `ip` that give 127.0.0.1 a control. Otherwise the route stays the kernel's own."""
    return ["route", "replace", "local", "127.0.0.1", "dev", "lo", "proto", "kernel", "scope", "host", "src", "127.0.0.1",
            "table", "local", "congctl", control]


@contextlib.contextmanager
def loopback(control):
    """A network namespace whose loopback uses this control; yields the words that run a command in it."""
    name = f"leeway-{control}-{os.getpid()}"
    run = lambda *words: subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
    run("netns", "add", name)
    try:
        run("-n", name, "link", "set", "lo", "up")
        run("-n", name, *loopback_route(control))
        inside = ["ip", "netns", "exec", name]
        used = subprocess.run([*inside, sys.executable, __file__, "--in-use"], check=True, capture_output=True,
                              text=True).stdout.strip()
        if used != control:
            raise RuntimeError(f"connections over the loopback of {name} use {used}, not {control}")
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


if __name__ == "__main__":
    print(in_use() if "--in-use" in sys.argv else f"{describe(to_compare(in_use(), available()))}; there are: {' '.join(available())}")
