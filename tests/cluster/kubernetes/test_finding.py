import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podtide.cluster.kubernetes import InvalidAccess, find_access
from podtide.cluster.kubernetes.access import Endpoint, Secret, User

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def kubeconfig(path: Path, server: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "contexts": [{"name": "a", "context": {"cluster": "a"}}, {"name": "b", "context": {"cluster": "a"}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def name_own_proxy(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    content["clusters"][0]["cluster"]["proxy-url"] = "http://own:1"
    path.write_text(yaml.safe_dump(content))


@pytest.fixture
def account(tmp_path: Path) -> Path:
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    for name, content in (("token", "t-1"), ("ca.crt", "pem"), ("namespace", "podtide-system\n")):
        (directory / name).write_text(content)
    return directory


def found(tmp_path: Path, environment: dict[str, str] | None = None, **more: object) -> str:
    access = find_access(
        environment=environment or {},
        home=tmp_path / "home",
        service_account=tmp_path / "serviceaccount",
        **more,  # type: ignore[arg-type]  # as the tests below have them
    )
    return access.endpoint.server


@pytest.mark.usefixtures("account")
def test_the_file_that_was_named_goes_before_kubeconfig_and_that_before_the_pod_and_that_before_home(
    tmp_path: Path,
) -> None:
    named = kubeconfig(tmp_path / "named", "https://named")
    variable = kubeconfig(tmp_path / "variable", "https://variable")
    kubeconfig(tmp_path / "home" / ".kube" / "config", "https://home")
    everything = POD | {"KUBECONFIG": f"{tmp_path / 'missing'}:{variable}"}
    assert found(tmp_path, everything, kubeconfig=named) == "https://named"
    assert found(tmp_path, everything) == "https://variable"
    assert found(tmp_path, POD) == "https://10.0.0.1:443"
    assert found(tmp_path, POD, context="b") == "https://home"
    assert found(tmp_path, {"KUBECONFIG": ""}) == "https://home"


def test_a_pod_is_found_by_its_service_account(tmp_path: Path, account: Path) -> None:
    access = find_access(environment=POD, home=tmp_path, service_account=account)
    assert access.endpoint == Endpoint(server="https://10.0.0.1:443", authority=account / "ca.crt")
    assert access.user == User(token_file=account / "token")
    assert access.namespace == "podtide-system"


def test_the_address_of_an_ipv6_cluster_is_put_in_brackets(tmp_path: Path, account: Path) -> None:
    environment = POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    access = find_access(environment=environment, home=tmp_path, service_account=account)
    assert access.endpoint.server == "https://[fd00::1]:443"


def test_without_any_the_places_that_were_looked_at_are_named(tmp_path: Path, account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(
        InvalidAccess, match=r"KUBECONFIG is not set, there is no .*\.kube/config, and no service"
    ):
        found(tmp_path, POD)


def test_the_environments_proxy_is_used_unless_the_kubeconfig_names_one(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://192.0.2.1")

    def proxy(**environment: str) -> Secret | None:
        return find_access(kubeconfig=path, environment=environment, home=tmp_path).endpoint.proxy

    assert proxy() is None
    assert proxy(HTTPS_PROXY="http://proxy:3128") == Secret("http://proxy:3128")
    assert proxy(HTTPS_PROXY="http://proxy:3128", NO_PROXY="192.0.2.0/24") is None
    with pytest.raises(InvalidAccess, match="HTTPS_PROXY"):
        proxy(HTTPS_PROXY="socks5://proxy")
    name_own_proxy(path)
    assert proxy(HTTPS_PROXY="http://proxy:3128") == Secret("http://own:1")


def test_a_kubeconfig_with_a_proxy_of_its_own_does_not_care_what_the_environments_is(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://192.0.2.1")
    name_own_proxy(path)
    access = find_access(kubeconfig=path, environment={"HTTPS_PROXY": "socks5://x:1"}, home=tmp_path)
    assert access.endpoint.proxy == Secret("http://own:1")


def test_a_pod_never_loads_yaml() -> None:
    program = "import sys, podtide.cluster.kubernetes; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_port_and_what_stands_on_it_never_load_aiohttp() -> None:
    program = (
        "import sys, podtide.cluster.informer, podtide.cluster.embedded, podtide.cluster.leader_election;"
        "sys.exit('aiohttp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
