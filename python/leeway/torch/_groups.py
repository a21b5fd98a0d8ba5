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
        """Returns the value once there is one, or None after `seconds`. Polls, since a wait() would hold up the store's other users."""
        until = time.monotonic() + seconds
        while not self._store.check([key]):
            if time.monotonic() >= until:
                return None
            time.sleep(_LOOK)
        return self._store.get(key)


def group_of(process_group=None):
    """Returns the group, or the default one for None. Raises InvalidArgumentError if there is none, or this rank is not in it."""
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
    """Returns a leeway.Communicator whose ranks are those of the group, in the same order. All ranks of the group call it.

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
        # The local address for data is the one that routes to this host. The store carries one small value then.
        meeting["rendezvous"] = f"[{host}]:0" if ":" in host else f"{host}:0"
    return Communicator.create(**{**meeting, **options})


class OnGroup:
    """An object that works with the ranks of a process group, over a communicator of its own or one that it is given."""

    def _join(self, process_group, purpose):
        self._communicator = communicator_of(process_group, purpose)
        self._owns_communicator = self._communicator is not process_group

    def close(self):
        """Leaves the group of ranks; parameters stay as they are."""
        if self._owns_communicator:
            self._communicator.close()


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
    """Options for calls after which ranks tell each other what they lack. A lossy call then returns what its deadline left,
    where an exact spread would fail."""
    lossy = str(options.delivery.kind) != "exact" and str(options.spread) == "exact"
    return options.replace(spread="bounded") if lossy else options
