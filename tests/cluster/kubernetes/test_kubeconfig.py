import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from podtide.cluster.kubernetes import InvalidAccess
from podtide.cluster.kubernetes.access import Endpoint, KeyPair, Secret, User
from podtide.cluster.kubernetes.kubeconfig import load_kubeconfig

SERVER = "https://192.0.2.1:6443"
PEM = "-----BEGIN CERTIFICATE-----\nnot really one\n-----END CERTIFICATE-----\n"
IN_PLACE = base64.b64encode(PEM.encode()).decode()
EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login", "interactiveMode": "Never"}


def document(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, name: str = "here"
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": f"{name}-cluster", "cluster": {"server": SERVER} | (cluster or {})}],
        "users": [{"name": f"{name}-user", "user": user or {}}],
        "contexts": [
            {
                "name": name,
                "context": {"cluster": f"{name}-cluster", "user": f"{name}-user", "namespace": "mine"},
            }
        ],
        "preferences": {},
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name in ("ca.crt", "me.crt", "me.key"):
        write(tmp_path / name, PEM)
    return tmp_path / "config"


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        ({}, {}),
        ({"certificate-authority-data": IN_PLACE}, {"authority": Secret(PEM)}),
        ({"insecure-skip-tls-verify": True}, {"insecure": True}),
        ({"tls-server-name": "api.example"}, {"server_name": "api.example"}),
        (
            {"proxy-url": "http://me:pw@proxy.example:3128"},
            {"proxy": Secret("http://me:pw@proxy.example:3128")},
        ),
        ({"server": "http://[::1]:8080/prefix"}, {"server": "http://[::1]:8080/prefix"}),
        ({"certificate-authority": None, "extensions": [{"name": "x", "extension": {}}]}, {}),
    ],
)
def test_a_cluster_says_which_server_and_how_to_know_it(
    config: Path, cluster: dict[str, Any], expected: dict[str, Any]
) -> None:
    access = load_kubeconfig([write(config, document(cluster))])
    assert access.endpoint == Endpoint(**{"server": SERVER, **expected})
    assert access.namespace == "mine"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({}, User()),
        ({"token": "t-1"}, User(token=Secret("t-1"))),
        ({"username": "me", "password": "pw"}, User(username="me", password=Secret("pw"))),
        (
            {"client-certificate-data": IN_PLACE, "client-key-data": IN_PLACE},
            User(key_pair=KeyPair(Secret(PEM), Secret(PEM))),
        ),
    ],
)
def test_a_user_says_who_we_are(config: Path, user: dict[str, Any], expected: User) -> None:
    assert load_kubeconfig([write(config, document(user=user))]).user == expected


def test_relative_paths_are_relative_to_the_file_they_stand_in(config: Path) -> None:
    user = {"client-certificate": "me.crt", "client-key": str(config.parent / "me.key"), "tokenFile": "token"}
    access = load_kubeconfig([write(config, document({"certificate-authority": "./ca.crt"}, user))])
    assert access.endpoint.authority == config.parent / "ca.crt"
    assert access.user.key_pair == KeyPair(config.parent / "me.crt", config.parent / "me.key")
    assert access.user.token_file == config.parent / "token"


def test_what_stands_in_the_file_itself_goes_before_a_path(config: Path) -> None:
    cluster = {"certificate-authority": "/nowhere", "certificate-authority-data": IN_PLACE}
    assert load_kubeconfig([write(config, document(cluster))]).endpoint.authority == Secret(PEM)


def test_a_plugin_is_taken_as_it_is_written(config: Path) -> None:
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    plugin = EXEC | {
        "args": ["get-token"],
        "env": [{"name": "PROFILE", "value": "prod"}],
        "installHint": "install it",
        "provideClusterInfo": True,
    }
    cluster = {"certificate-authority": "ca.crt", "extensions": [extension]}
    read = load_kubeconfig([write(config, document(cluster, {"exec": plugin}))]).user.plugin
    assert read is not None
    assert (read.command, read.arguments, read.environment) == (
        "login",
        ("get-token",),
        (("PROFILE", Secret("prod")),),
    )
    assert read.cluster_info is not None
    assert msgspec.json.decode(read.cluster_info.reveal()) == {
        "server": SERVER,
        "certificate-authority-data": IN_PLACE,
        "config": {"audience": "x"},
    }


@pytest.mark.parametrize(
    ("command", "where"), [("login", "login"), ("bin/login", "{}/bin/login"), ("/x", "/x")]
)
def test_a_plugins_command_is_looked_up_in_path_unless_it_is_a_path(
    config: Path, command: str, where: str
) -> None:
    plugin = EXEC | {"command": command, "env": None, "args": None}
    read = load_kubeconfig([write(config, document(user={"exec": plugin}))]).user.plugin
    assert read is not None
    assert read.command == where.format(config.parent)


def test_of_several_files_the_first_that_says_something_counts(tmp_path: Path) -> None:
    first, second = document(user={"token": "first"}), document(user={"token": "second"})
    del first["current-context"]
    second["clusters"][0]["cluster"]["server"] = "https://another"
    second["current-context"] = "there"
    third = document(user={"token": "third"}, name="there")
    paths = [
        tmp_path / "missing",
        write(tmp_path / "1" / "config", first),
        write(tmp_path / "2" / "config", second),
        write(tmp_path / "3" / "config", third),
    ]
    here = load_kubeconfig(paths, "here")
    assert (here.endpoint.server, here.user.token) == (SERVER, Secret("first"))
    assert load_kubeconfig(paths).user.token == Secret("third")


def test_a_context_may_take_its_cluster_and_user_from_other_files(tmp_path: Path) -> None:
    whole = document({"certificate-authority": "ca.crt"}, {"tokenFile": "token"})
    parts = [
        write(tmp_path / name / "config", {name: whole[name]}) for name in ("contexts", "clusters", "users")
    ]
    write(tmp_path / "clusters" / "ca.crt", PEM)
    access = load_kubeconfig(parts, "here")
    assert access.endpoint.authority == tmp_path / "clusters" / "ca.crt"
    assert access.user.token_file == tmp_path / "users" / "token"


def test_a_context_without_a_user_is_nobody(config: Path) -> None:
    content = document()
    del content["contexts"][0]["context"]["user"]
    assert load_kubeconfig([write(config, content)]).user == User()


def without(*path: str) -> dict[str, Any]:
    content = document()
    *parents, last = path
    place = content
    for name in parents:
        place = place[name]
    del place[last]
    return content


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("users: [", "line 1 is not valid YAML"),
        ("users:\n- {name: a,\n  user: {token: s3cret", "line 3 is not valid YAML"),
        ("\x00", "is not valid YAML"),
        ("just text", "at its top: Expected `object`"),
        ("", "has no current-context: name a context, of which it has none at all"),
        (
            {"users": [{"name": "a", "user": {"token": 5}}]},
            r"at users[0].user.token: Expected `str`, got `int`",
        ),
        (without("current-context"), "has no current-context: name a context, of which it has here"),
        (without("contexts"), "has no context 'here': it has none at all"),
        (without("clusters"), "has no cluster 'here-cluster'"),
        (without("users"), "has no user 'here-user'"),
        (document({"server": ""}), "server is not a valid URL: give one such as https://host:port"),
        (
            document({"server": "192.0.2.1:6443"}),
            "server is not a valid URL: give one such as https://host:port",
        ),
        (
            document({"server": "https://host:port"}),
            "server is not a valid URL: give one such as https://host:port",
        ),
        (document({"proxy-url": "socks5://s3cret@x"}), "proxy-url is not the URL of an HTTP proxy"),
        (document({"certificate-authority": "nowhere.crt"}), "nowhere.crt cannot be read: No such file"),
        (
            document({"certificate-authority-data": "s3cret!"}),
            "certificate-authority-data is not PEM in base64",
        ),
        (
            document(user={"client-certificate": "me.crt"}),
            "of client-certificate and client-key one is missing",
        ),
        (document(user={"client-key": "."}), "client-key {} cannot be read: Is a directory"),
        (document(user={"as": "admin"}), "acting as another user is not supported"),
        (document(user={"auth-provider": {"name": "gcp"}}), "use exec with the provider's plugin"),
        (document(user={"exec": EXEC | {"apiVersion": "v1"}}), "exec has apiVersion 'v1'"),
        (document(user={"exec": EXEC | {"interactiveMode": "Maybe"}}), "exec has interactiveMode 'Maybe'"),
        (document(user={"exec": {"command": "x"}}), "missing required field `apiVersion`"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_file_and_no_secret(
    config: Path, content: Any, complaint: str
) -> None:
    with pytest.raises(InvalidAccess) as caught:
        load_kubeconfig([write(config, content)])
    message = str(caught.value)
    assert complaint.format(config.parent) in message
    assert str(config.parent) in message
    assert "\n" not in message
    assert "s3cret" not in message


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidAccess, match="config cannot be read: No such file"):
        load_kubeconfig([tmp_path / "config"])
    with pytest.raises(InvalidAccess, match=r"none of .*/a, .*/b exists"):
        load_kubeconfig([tmp_path / "a", tmp_path / "b"])


def test_what_is_printed_of_an_access_shows_no_secret(config: Path) -> None:
    user = {
        "token": "s3cret",
        "username": "me",
        "password": "s3cret",
        "exec": EXEC | {"env": [{"name": "KEY", "value": "s3cret"}]},
    }
    access = load_kubeconfig([write(config, document({"proxy-url": "http://me:s3cret@proxy"}, user))])
    assert "s3cret" not in repr(access)
    assert "s3cret" not in f"{access}"
