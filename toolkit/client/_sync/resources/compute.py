# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.compute`: GPU pods."""

from toolkit.client._infrastructure import ComputeCalls, ComputeView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import compute


class Compute(ComputeView, Deletable[compute.Compute]):
    """A rented GPU pod, which is billed until it is deleted."""

    noun, resource, record_type = "Compute", "compute", compute.Compute


class Computes(ComputeCalls[Reply[Compute]], Resource[Compute]):
    """`client.compute`: rent, list and delete GPU pods."""

    handle = Compute
