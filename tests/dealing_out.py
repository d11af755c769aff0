"""Groups of tests are dealt out to workers in time that does not grow with the tests that are done.

pytest-xdist's `--dist loadgroup` keeps the tests that a worker has finished in its list, and counts through all of the
list whenever one more is finished: with thousands of tests its process is busy for tens of seconds with that. Here what is
finished leaves the list.
"""

import os
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class GroupScheduling(LoadGroupScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """pytest-xdist's own, without a memory of groups that are done."""

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget the test's group once all of it is done."""
        super().mark_test_complete(node, item_index, duration)
        group = self._split_scope(self.registered_collections[node][item_index])
        assigned = self.assigned_work[node]
        if all(assigned[group].values()):
            del assigned[group]


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: tests on real nodes, control planes, databases and plugins wait for them most of the time."""
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Any:
    """Take the place of `--dist loadgroup`, and of no other way."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None
