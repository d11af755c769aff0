"""Every port of every program against five thousand connections that ask nothing, or half of it."""

import json
from pathlib import Path

import pytest

from cli.floods import CONNECTIONS, flood, flooded_program, healthy, silent_plugins
from cli.processes import served_cluster
from cli.test_agent import Place, join
from cli.test_controller import NAMES
from control_plane.certificates import CertificateAuthority

pytestmark = [pytest.mark.real_time, pytest.mark.slow]


async def test_a_flood_on_the_agents_ports_keeps_neither_the_plugin_nor_the_probes_waiting(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    ports = ("--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0")
    async with (
        served_cluster(place.kubeconfig) as cluster,
        flooded_program(tmp_path, *place.options, *ports) as agent,
    ):
        await join(cluster, "10.1.0.5", "10.1.0.6")
        listening = json.loads(await agent.said('"listening"'))
        cns, metrics = (f"http://{listening[name]}" for name in ("address", "metrics"))
        await place.call("ADD", "before")
        with (
            flood(cns, metrics, connections=CONNECTIONS // 2, body="POST /network/requestipconfigs"),
            silent_plugins(place.socket),
        ):
            assert (await place.call("ADD", "during")).exit_status == 0
            assert await healthy(metrics)
            assert await healthy(cns)
            assert (await place.call("DEL", "during")).exit_status == 0
            agent.check()


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
async def test_a_flood_on_the_allocator_keeps_nobody_waiting(tmp_path: Path, secure: bool) -> None:
    options: tuple[str | Path, ...] = ()
    if secure:
        pair = CertificateAuthority().server("127.0.0.1")
        certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        certificate.write_text(pair.certificate)
        key.write_text(pair.key)
        options = ("--tls-cert", certificate, "--tls-key", key)
    database = ("--database", f"sqlite:///{tmp_path}/subnets.db", "--listen", "127.0.0.1:0")
    async with flooded_program(tmp_path, "allocator", *database, *options) as allocator:
        url = json.loads(await allocator.said('"listening"'))["url"]
        with flood(url, body="PUT /networks/blue/subnets/pods"):
            assert await healthy(url)
            allocator.check()


async def test_a_flood_on_the_controllers_metrics_keeps_nobody_waiting(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    options = ("--kubeconfig", kubeconfig, "--database", f"sqlite:///{tmp_path}/subnets.db")
    async with (
        served_cluster(kubeconfig),
        flooded_program(
            tmp_path, "controller", *NAMES, *options, "--metrics-listen", "127.0.0.1:0"
        ) as controller,
    ):
        url = json.loads(await controller.said('"listening"'))["url"]
        with flood(url):
            assert await healthy(url)
            controller.check()


async def test_a_flood_on_the_embedded_cluster_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with flooded_program(tmp_path, "cluster") as cluster:
        said = await cluster.said("the cluster is at")
        url = said.partition("the cluster is at ")[2].partition(",")[0]
        with flood(url, body="POST /api/v1/namespaces"):
            assert await healthy(url)
            cluster.check()
