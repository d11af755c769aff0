import resource
from collections.abc import Iterator

import pytest

from podtide.runtime.port_limits import PortLimits, most_connections, raise_descriptor_limit


@pytest.fixture(autouse=True)
def limit_afterwards() -> Iterator[None]:
    """Leave the process as it was."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_program_may_open_as_many_files_as_the_machine_lets_it() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    assert raise_descriptor_limit() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 65536)


def test_a_limit_that_is_high_already_stays() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_descriptor_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft


def test_no_port_takes_more_than_its_share_of_the_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    assert [most_connections(PortLimits(connections=wanted)) for wanted in (64, 8192)] == [64, 128]
