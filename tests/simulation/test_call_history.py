"""Calls of kubelets that contradict each other are found, and nothing else is."""

from podtide.cni.versions import Verb
from podtide.simulation.checks.call_history import CallHistory

ADDRESS = "10.0.0.5"


class Kubelets:
    """Calls as kubelets make them."""

    def __init__(self) -> None:
        self.history = CallHistory()

    def ask(self, sandbox: str, node: str = "node-0", scope: str = "") -> int:
        return self.history.began(Verb.ADD, node=node, scope=scope, pod="default/pod", sandbox=sandbox)

    def add(self, sandbox: str, node: str = "node-0", scope: str = "") -> None:
        self.history.answered(self.ask(sandbox, node, scope), (ADDRESS,))

    def delete(self, sandbox: str, node: str = "node-0", scope: str = "") -> None:
        self.history.began(Verb.DEL, node=node, scope=scope, pod="default/pod", sandbox=sandbox)


def test_two_nodes_that_give_one_address_are_found() -> None:
    kubelets = Kubelets()
    kubelets.add("a", "node-0")
    kubelets.add("b", "node-1")
    assert kubelets.history.finding() == (
        "history of calls: 10.0.0.5 belonged to pod default/pod on node-0 (sandbox a) and to pod default/pod on node-1 "
        "(sandbox b) at once"
    )


def test_an_address_goes_from_one_sandbox_to_the_next() -> None:
    kubelets = Kubelets()
    for sandbox in "abc":
        kubelets.add(sandbox)
        kubelets.delete(sandbox)
    kubelets.add("d", "node-1")
    assert kubelets.history.finding() == ""


def test_a_machine_without_power_has_no_sandboxes() -> None:
    kubelets = Kubelets()
    kubelets.add("a", "node-0")
    kubelets.history.switched_off("node-0")
    kubelets.add("b", "node-1")
    assert kubelets.history.finding() == ""
    kubelets.history.switched_off("node-0")
    kubelets.add("c", "node-0")
    assert "node-1 (sandbox b) and to pod default/pod on node-0 (sandbox c)" in kubelets.history.finding()


def test_each_network_has_addresses_of_its_own() -> None:
    kubelets = Kubelets()
    kubelets.add("a", scope="net-1")
    kubelets.add("b", scope="net-2")
    kubelets.add("c")
    assert kubelets.history.finding() == ""
    kubelets.add("d", scope="net-2")
    assert "of net-2 (sandbox d) at once" in kubelets.history.finding()


def test_the_del_of_one_network_gives_up_nothing_of_another() -> None:
    kubelets = Kubelets()
    kubelets.add("a", scope="net-1")
    kubelets.delete("a", scope="net-2")
    kubelets.add("b", scope="net-1")
    assert kubelets.history.finding()


def test_a_call_without_an_answer_proves_nothing() -> None:
    kubelets = Kubelets()
    kubelets.ask("a")
    kubelets.add("b")
    assert kubelets.history.finding() == ""


def test_an_answer_after_the_del_had_the_address_for_a_moment_at_most() -> None:
    kubelets = Kubelets()
    late = kubelets.ask("a")
    kubelets.delete("a")
    kubelets.history.answered(late, (ADDRESS,))
    kubelets.add("b")
    assert kubelets.history.finding() == ""


def test_a_sandbox_that_asks_again_after_its_del_has_the_address_again() -> None:
    kubelets = Kubelets()
    kubelets.add("a")
    kubelets.delete("a")
    kubelets.add("a")
    kubelets.add("b")
    assert kubelets.history.finding()
