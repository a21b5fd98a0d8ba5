"""Communicators with the ranks of a torch process group, whatever its backend: they meet in the group's c10d store."""

import collections
import os
import time
import zlib

import torch.distributed as dist
from torch.distributed import distributed_c10d

from .. import Communicator, InvalidArgumentError

_LOOK = 0.002  # seconds between looks at the store

# Communicators that this process has begun to make, by group, its ranks, and purpose. Ranks make them in the same order.
_counts = collections.Counter()


class StoreRendezvous:
    """A c10d store as the place where ranks meet (Options.store): put(key, bytes), get(key, seconds)."""

    def __init__(self, store):
        self._store = store

    def put(self, key, value):
        self._store.set(key, value)

    def get(self, key, seconds):
        """The value as soon as there is one, None after `seconds`. It polls: a wait() would hold up the store's other callers."""
        until = time.monotonic() + seconds
        while not self._store.check([key]):
            if time.monotonic() >= until:
                return None
            time.sleep(_LOOK)
        return self._store.get(key)


def group_of(process_group=None):
    """The group itself, for None the default one. InvalidArgumentError where there is none, or this rank is not in it."""
    if process_group is None:
        if not dist.is_initialized():
            raise InvalidArgumentError("there is no default process group yet: call torch.distributed.init_process_group() "
                                       "first, with any backend")
        process_group = dist.group.WORLD
    if not isinstance(process_group, dist.ProcessGroup):
        if process_group == dist.GroupMember.NON_GROUP_MEMBER:
            raise InvalidArgumentError("this rank is not in the process group: only its members may use it")
        raise InvalidArgumentError(f"process_group: {process_group!r} is not a torch.distributed.ProcessGroup")
    if process_group.rank() < 0:
        raise InvalidArgumentError("this rank is not in the process group: only its members may use it")
    return process_group


def communicator_of(process_group=None, purpose="leeway", **options):
    """A leeway.Communicator whose ranks are those of the group, in the same order. All ranks of the group call it.

    They meet in the group's c10d store, under leeway/0/<group>/<purpose>/<n>; n counts the
    communicators of this group and purpose. `options` are those of Communicator.create(). Waits for all ranks.
    A leeway.Communicator in place of the group is returned as it is.
    """
    if isinstance(process_group, Communicator):
        return process_group
    group = group_of(process_group)
    name = _name_of(group)
    number = _counts[name, purpose]
    _counts[name, purpose] += 1
    meeting = {"rank": group.rank(), "world_size": group.size(), "store": StoreRendezvous(_store_of(group)),
               "communicator_name": f"{name}/{purpose}/{number}"}
    host = os.environ.get("MASTER_ADDR")
    if host and not os.environ.get("LEEWAY_RENDEZVOUS"):
        # Towards where the local address for data lies; the store carries one small value then.
        meeting["rendezvous"] = f"[{host}]:0" if ":" in host else f"{host}:0"
    return Communicator.create(**{**meeting, **options})


def _name_of(group):
    # A later group may have the name of one that was destroyed, but other ranks.
    ranks = ",".join(map(str, dist.get_process_group_ranks(group)))
    return f"{group.group_name}-{zlib.crc32(ranks.encode()):08x}"


def _store_of(group):
    try:
        return distributed_c10d._get_process_group_store(group)
    except KeyError:
        raise InvalidArgumentError("the process group was destroyed, or was not made by torch.distributed") from None


def repaired_later(options):
    """The options for calls after which ranks tell each other what they lack: a lossy call returns what its deadline left."""
    lossy = str(options.delivery.kind) != "exact" and str(options.spread) == "exact"
    return options.replace(spread="bounded") if lossy else options
