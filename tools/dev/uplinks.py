"""Ranks behind slow uplinks, for measurements: one network namespace each, joined by a bridge. Needs root."""

import contextlib
import json
import os
import subprocess

PORT = 29511
RUN_TIMEOUT_S = 300


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True).stdout


def inside(namespace, *words):
    return ["ip", "netns", "exec", namespace, *map(str, words)]


@contextlib.contextmanager
def uplinks(ranks, rate):
    """One namespace a rank, whose way out is limited by tc's token bucket; yields their names."""
    middle = f"leeway-uplinks-{os.getpid()}"
    hosts = [f"{middle}-{rank}" for rank in range(ranks)]
    try:
        for name in [middle, *hosts]:
            ip("netns", "add", name)
        ip("-n", middle, "link", "add", "bridge", "type", "bridge")
        ip("-n", middle, "link", "set", "bridge", "up")
        for rank, host in enumerate(hosts):
            ip("-n", middle, "link", "add", f"port{rank}", "type", "veth", "peer", "name", "eth0", "netns", host)
            ip("-n", middle, "link", "set", f"port{rank}", "master", "bridge", "up")
            ip("-n", host, "addr", "add", f"10.98.0.{rank + 1}/24", "dev", "eth0")
            ip("-n", host, "link", "set", "eth0", "up")
            ip("-n", host, "link", "set", "lo", "up")
            # A second's worth of queue: senders wait in their own socket buffers, nothing is dropped.
            subprocess.run(inside(host, "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst",
                                  "128kb", "latency", "1s"), check=True, capture_output=True, text=True)
        yield hosts
    finally:
        for name in [middle, *hosts]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def sent_bytes(host):
    """What has left a namespace, as its link counts it."""
    return json.loads(ip("-n", host, "-j", "-s", "link", "show", "eth0"))[0]["stats64"]["tx"]["bytes"]


def run_ranks(hosts, command_of, **environment):
    """Runs command_of(rank) in every namespace as one group of ranks; an error has the text of the rank that failed."""
    ranks = []
    for rank, host in enumerate(hosts):
        variables = dict(os.environ, LEEWAY_RANK=str(rank), LEEWAY_WORLD_SIZE=str(len(hosts)),
                         LEEWAY_RENDEZVOUS=f"10.98.0.1:{PORT}", **environment)
        # Ranks end with this process.
        words = ["setpriv", "--pdeathsig", "KILL", *inside(host, *command_of(rank))]
        ranks.append(subprocess.Popen(words, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    texts = [process.communicate(timeout=RUN_TIMEOUT_S)[1] for process in ranks]
    failures = [text for process, text in zip(ranks, texts) if process.returncode != 0]
    if failures:
        raise RuntimeError(failures[0].strip())
