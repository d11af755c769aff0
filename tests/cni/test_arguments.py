from ipaddress import ip_address, ip_interface

import pytest

from podtide.cni.arguments import CniCall, PodArguments, parse_cni_args, parse_environment
from podtide.cni.errors import InvalidEnvironment
from podtide.cni.versions import Verb

ENVIRONMENT = {
    "CNI_COMMAND": "ADD",
    "CNI_CONTAINERID": "3f6940ab",
    "CNI_NETNS": "/var/run/netns/blue",
    "CNI_IFNAME": "eth0",
    "CNI_PATH": "/opt/cni/bin:/usr/lib/cni",
    "CNI_ARGS": "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u-1",
}


def test_the_environment_of_an_add_is_a_call() -> None:
    assert parse_environment(ENVIRONMENT) == CniCall(
        verb=Verb.ADD,
        container_id="3f6940ab",
        netns="/var/run/netns/blue",
        ifname="eth0",
        plugin_path=("/opt/cni/bin", "/usr/lib/cni"),
        pod=PodArguments(pod_namespace="default", pod_name="web", pod_uid="u-1"),
    )


@pytest.mark.parametrize(
    ("verb", "required"),
    [
        ("ADD", {"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"}),
        ("DEL", {"CNI_CONTAINERID", "CNI_IFNAME"}),
        ("CHECK", {"CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"}),
        ("STATUS", set()),
        ("GC", {"CNI_PATH"}),
        ("VERSION", set()),
    ],
)
def test_each_verb_needs_the_variables_that_the_specification_says(verb: str, required: set[str]) -> None:
    whole = ENVIRONMENT | {"CNI_COMMAND": verb}
    for name in whole.keys() - {"CNI_COMMAND"}:
        for environment in ({k: v for k, v in whole.items() if k != name}, whole | {name: ""}):
            if name in required:
                with pytest.raises(InvalidEnvironment, match=name):
                    parse_environment(environment)
            else:
                assert parse_environment(environment).verb == verb


def test_all_missing_variables_are_named_at_once() -> None:
    with pytest.raises(InvalidEnvironment, match="ADD needs CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS in"):
        parse_environment({"CNI_COMMAND": "ADD"})


@pytest.mark.parametrize(
    "environment", [{}, {"CNI_COMMAND": ""}, {"CNI_COMMAND": "add"}, {"CNI_COMMAND": "PING"}]
)
def test_a_command_that_is_none_is_answered_with_those_there_are(environment: dict[str, str]) -> None:
    with pytest.raises(InvalidEnvironment, match=r"CNI_COMMAND .* ADD, DEL, CHECK, STATUS, GC, VERSION"):
        parse_environment(environment)


@pytest.mark.parametrize("container_id", ["-a", "a/b", "a b", "ä", "a\n"])
def test_a_container_id_that_could_be_a_path_is_refused(container_id: str) -> None:
    with pytest.raises(InvalidEnvironment, match="CNI_CONTAINERID"):
        parse_environment(ENVIRONMENT | {"CNI_CONTAINERID": container_id})


@pytest.mark.parametrize("ifname", [".", "..", "a/b", "a:b", "a b", "sixteen-letters-", "äöüäöüäö", "eth0\n"])
def test_an_interface_name_that_linux_refuses_is_refused(ifname: str) -> None:
    with pytest.raises(InvalidEnvironment, match="CNI_IFNAME"):
        parse_environment(ENVIRONMENT | {"CNI_IFNAME": ifname})


@pytest.mark.parametrize("ifname", ["net1", "...", ".a", "fifteen-letters"])
def test_an_interface_name_that_linux_takes_is_taken(ifname: str) -> None:
    assert parse_environment(ENVIRONMENT | {"CNI_IFNAME": ifname}).ifname == ifname


def test_cni_args_say_which_pod_and_which_addresses() -> None:
    arguments = parse_cni_args(
        "K8S_POD_NAMESPACE=ns;K8S_POD_NAME=p;K8S_POD_INFRA_CONTAINER_ID=c;K8S_POD_UID=u;"
        "IP=10.0.0.5/24, fd00::5/64;GATEWAY=10.0.0.1,fd00::1"
    )
    assert arguments == PodArguments(
        pod_namespace="ns",
        pod_name="p",
        infra_container_id="c",
        pod_uid="u",
        ips=(ip_interface("10.0.0.5/24"), ip_interface("fd00::5/64")),
        gateways=(ip_address("10.0.0.1"), ip_address("fd00::1")),
    )


def test_no_cni_args_at_all_are_fine() -> None:
    assert parse_cni_args("") == PodArguments()


@pytest.mark.parametrize("ignore", ["1", "true", "True", "TRUE"])
def test_unknown_keys_are_ignored_when_the_caller_says_so(ignore: str) -> None:
    assert parse_cni_args(f"COLOUR=blue;IgnoreUnknown={ignore};K8S_POD_NAME=p").pod_name == "p"


@pytest.mark.parametrize(
    "args", ["COLOUR=blue", "COLOUR=blue;IgnoreUnknown=0", "IgnoreUnknown=false;COLOUR=blue"]
)
def test_unknown_keys_are_refused_otherwise(args: str) -> None:
    with pytest.raises(InvalidEnvironment, match="unknown keys 'COLOUR'; add IgnoreUnknown=1"):
        parse_cni_args(args)


@pytest.mark.parametrize(
    "args",
    [
        "K8S_POD_NAME",
        "K8S_POD_NAME=a=b",
        "K8S_POD_NAME=a;",
        ";",
        "IgnoreUnknown=maybe",
        "IP=10.0.0.5",
        "GATEWAY=x",
        "IP=,",
    ],
)
def test_malformed_cni_args_are_refused_by_name(args: str) -> None:
    with pytest.raises(InvalidEnvironment, match="CNI_ARGS"):
        parse_cni_args(args)
