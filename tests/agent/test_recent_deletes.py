from podtide.agent.recent_deletes import RecentDeletes

KEY = ("sandbox", "eth0")


def test_only_a_later_delete_counts() -> None:
    deletes = RecentDeletes()
    assert not deletes.happened_after(5.0, KEY)
    deletes.remember(KEY, 10.0)
    assert deletes.happened_after(9.9, KEY)
    assert not deletes.happened_after(10.0, KEY)
    assert not deletes.happened_after(5.0, ("sandbox", "net1"))


def test_a_repeated_delete_counts_from_its_last_time() -> None:
    deletes = RecentDeletes()
    deletes.remember(KEY, 10.0)
    deletes.remember(KEY, 20.0)
    assert deletes.happened_after(15.0, KEY)


def test_memory_is_bounded_and_the_oldest_is_forgotten_first() -> None:
    deletes = RecentDeletes()
    for number in range(5000):
        deletes.remember((f"s-{number}", "eth0"), float(number))
    assert len(deletes._at) < 2000
    assert not deletes.happened_after(-1.0, ("s-0", "eth0"))
    assert deletes.happened_after(-1.0, ("s-4999", "eth0"))
