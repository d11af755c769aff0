"""`podtide agent` with a network to install, and `podtide uninstall-cni`."""

import json
from pathlib import Path

import aiohttp
import pytest

from cli.conftest import Run
from cli.processes import running, served_cluster
from cli.test_agent import Place, join, nowhere
from podtide.agent.cni_installation import CONFLIST

SCRIPT = Path(__file__).parent.parent.parent / "plugin" / "podtide.py"


@pytest.mark.real_time
async def test_an_agent_installs_once_it_is_ready_and_leaves_it_when_it_stops(
    tmp_path: Path, podtide: Run
) -> None:
    place, bin_directory, conf_directory = Place(tmp_path), tmp_path / "bin", tmp_path / "net.d"
    conflist = conf_directory / CONFLIST
    where = ("--cni-bin-directory", str(bin_directory), "--cni-conf-directory", str(conf_directory))
    async with served_cluster(place.kubeconfig) as cluster:
        options = (*where, "--plugin", SCRIPT, "--mtu", "1400", "--metrics-listen", "127.0.0.1:0")
        async with running(*place.options, *options) as agent:
            metrics = (await agent.logged("listening"))["metrics"]
            async with aiohttp.ClientSession(f"http://{metrics}") as door:
                async with door.get("/readyz") as response:
                    assert response.status == 503
                assert not bin_directory.exists()
                assert not conf_directory.exists()
                await join(cluster, "10.1.0.5")
                assert (await agent.logged("installed"))["path"] == str(bin_directory / "podtide")
                assert (await agent.logged("installed"))["path"] == str(conflist)
                for path in ("/readyz", "/healthz", "/metrics"):
                    async with door.get(path) as response:
                        assert response.status == 200, path
                async with door.post("/debug/ipaddresses", json={}) as response:
                    assert response.status == 404, "what is open to others tells, and does nothing"
            assert b'"mtu": 1400' in conflist.read_bytes()
            await agent.stop()
    assert conflist.exists()
    outcome = podtide("uninstall-cni", *where)
    assert outcome.out == f"removed {conflist}\nremoved {bin_directory / 'podtide'}\n"
    assert (outcome.status, outcome.err) == (0, "")
    assert [*bin_directory.iterdir(), *conf_directory.iterdir()] == []


def test_where_there_is_nothing_to_remove_it_says_so(podtide: Run, tmp_path: Path) -> None:
    where = ("--cni-bin-directory", str(tmp_path), "--cni-conf-directory", str(tmp_path))
    outcome = podtide("uninstall-cni", *where)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == f"nothing of podtide's is in {tmp_path} or {tmp_path}\n"


def test_an_agents_records_and_socket_go_where_that_is_asked_for(podtide: Run, tmp_path: Path) -> None:
    state, sockets = tmp_path / "state", tmp_path / "sockets"
    for path in (state / "agent.journal", sockets / "agent.sock"):
        path.parent.mkdir()
        path.touch()
    nowhere = ("--cni-bin-directory", str(tmp_path), "--cni-conf-directory", str(tmp_path))
    assert podtide("uninstall-cni", *nowhere).out.startswith("nothing of podtide's is in")
    both = (f"--state-directory={state}", f"--socket-directory={sockets}")
    outcome = podtide("uninstall-cni", *nowhere, *both, "-o", "json")
    removed = [str(path) for path in (state / "agent.journal", state, sockets / "agent.sock", sockets)]
    assert outcome.err.splitlines() == [f"removed {path}" for path in removed]
    assert (outcome.status, json.loads(outcome.out)["removed"]) == (0, removed)
    assert list(tmp_path.iterdir()) == []


BOTH = ("--cni-bin-directory", "bin", "--cni-conf-directory", "net.d")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cni-conf-directory", "net.d"), "with --cni-conf-directory give --cni-bin-directory, too"),
        (("--cni-conf-directory", ""), "the path is empty: give the path of a directory"),
        ((*BOTH, "--plugin", "/none"), "the plugin /none cannot be read"),
        ((*BOTH, "--plugin", __file__), "is not podtide's plugin"),
        (
            (*BOTH, "--plugin", str(SCRIPT), "--no-node-pool"),
            "leave out --no-node-pool, or --cni-conf-directory",
        ),
        (("--network-type", "macvlan"), "'macvlan' is not one of 'ptp', 'bridge'"),
        (("--network-name", ""), "--network-name '' is not a valid network name"),
        (("--network-name", "a b"), "--network-name 'a b' is not a valid network name"),
        (("--mtu", "-1"), "--mtu=-1 is refused: give 68 to 65535, or 0 for the interface plugin's own"),
        (("--mtu", "5"), "--mtu=5 is refused: give 68 to 65535, or 0 for the interface plugin's own"),
        (("--mtu", "65536"), "--mtu=65536 is refused: give 68 to 65535"),
        (("--route", "everywhere"), "--route=everywhere is refused: give a CIDR, such as 10.0.0.0/8"),
        (("--metrics-listen", "9391"), "--metrics-listen '9391' is not an address to listen on"),
        (("--listen", "9391"), "--listen '9391' is not an address to listen on"),
    ],
)
def test_what_cannot_be_installed_is_refused_in_one_line(
    podtide: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], words: str
) -> None:
    monkeypatch.delenv("PODTIDE_PLUGIN", raising=False)
    outcome = podtide("agent", *nowhere(tmp_path), "--log-level", "error", *options)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert words in outcome.err
