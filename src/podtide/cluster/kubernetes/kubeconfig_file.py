"""Kubeconfig files as they are written, and several of them as one.

They are merged as kubectl does it: of two entries of one name the first counts, whole, and the first current-context
that is not empty. A relative path is relative to the file it stands in, so each file's paths are made absolute before
the files are merged.

Messages name the file and the field. They never quote what stands there: it may be a secret.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Struct, field
from msgspec.structs import replace

from podtide.cluster.kubernetes.access import InvalidAccess


class KubeconfigPart(Struct, frozen=True, kw_only=True, rename="kebab"):
    """A part of a kubeconfig; fields that podtide does not use are ignored."""


class Extension(KubeconfigPart, frozen=True, kw_only=True):
    """An extension that another program stores there."""

    name: str
    extension: Any = None


class KubeconfigCluster(KubeconfigPart, frozen=True, kw_only=True):
    """A server."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] = field(default_factory=list)


class Variable(KubeconfigPart, frozen=True, kw_only=True):
    """One variable of a plugin's environment."""

    name: str
    value: str


class Exec(Struct, frozen=True, kw_only=True, rename="camel"):
    """A plugin that prints credentials."""

    command: str
    api_version: str
    args: list[str] = field(default_factory=list)
    env: list[Variable] = field(default_factory=list)
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    provide_cluster_info: bool = False


class KubeconfigUser(KubeconfigPart, frozen=True, kw_only=True):
    """Credentials."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    impersonate: str = field(default="", name="as")


class KubeconfigContext(KubeconfigPart, frozen=True, kw_only=True):
    """A server, a user and a namespace."""

    cluster: str
    user: str = ""
    namespace: str = ""


class NamedCluster(KubeconfigPart, frozen=True, kw_only=True):
    """A server and its name."""

    name: str
    cluster: KubeconfigCluster = KubeconfigCluster()


class NamedUser(KubeconfigPart, frozen=True, kw_only=True):
    """Credentials and their name."""

    name: str
    user: KubeconfigUser = KubeconfigUser()


class NamedContext(KubeconfigPart, frozen=True, kw_only=True):
    """A context and its name."""

    name: str
    context: KubeconfigContext


class KubeconfigFile(KubeconfigPart, frozen=True, kw_only=True):
    """A whole file."""

    current_context: str = ""
    clusters: list[NamedCluster] = field(default_factory=list)
    users: list[NamedUser] = field(default_factory=list)
    contexts: list[NamedContext] = field(default_factory=list)


class Kubeconfig(Struct, frozen=True, kw_only=True):
    """All files merged."""

    current_context: str
    clusters: dict[str, KubeconfigCluster]
    users: dict[str, KubeconfigUser]
    contexts: dict[str, KubeconfigContext]


def read_files(paths: Sequence[Path]) -> Kubeconfig:
    """All files merged into one. Of several, those that do not exist are skipped."""
    files = [_read(path) for path in paths if len(paths) == 1 or path.exists()]
    if not files:
        where = ", ".join(str(path) for path in paths)
        raise InvalidAccess(f"none of {where} exists: correct KUBECONFIG, or name a kubeconfig")
    backwards = files[::-1]  # of two of one name the later replaces the earlier, and the first shall stay
    return Kubeconfig(
        current_context=next((file.current_context for file in files if file.current_context), ""),
        clusters={each.name: each.cluster for file in backwards for each in file.clusters[::-1]},
        users={each.name: each.user for file in backwards for each in file.users[::-1]},
        contexts={each.name: each.context for file in backwards for each in file.contexts[::-1]},
    )


def _read(path: Path) -> KubeconfigFile:
    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise InvalidAccess(
            f"kubeconfig {path} cannot be read: {error.strerror}; correct the path or its permissions"
        ) from error
    except yaml.YAMLError as error:
        # Its own text quotes the lines around the mistake, and with them tokens and keys.
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        line = f" line {mark.line + 1}" if mark else ""
        raise InvalidAccess(
            f"kubeconfig {path}{line} is not valid YAML: {problem or 'it is not text'}; correct it there"
        ) from None
    except (ValueError, RecursionError):
        raise _odd_value(path) from None
    try:
        file = msgspec.convert(_without_nulls(document) or {}, KubeconfigFile)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        at = place.strip("`").removeprefix("$").removeprefix(".") or "its top"
        raise InvalidAccess(f"kubeconfig {path} at {at}: {what}; correct it there") from None
    except (ValueError, RecursionError):
        raise _odd_value(path) from None
    return _with_absolute_paths(file, path.absolute().parent)


def _odd_value(path: Path) -> InvalidAccess:
    """The error for an invalid date, an endless number, text that is not Unicode, or nesting too deep."""
    return InvalidAccess(
        f"kubeconfig {path} has a value that cannot be read: an invalid date, number or text, or nesting too deep; correct it there"
    )


def _without_nulls(document: Any) -> Any:
    """The document without nulls: an empty value in YAML counts as absent."""
    if isinstance(document, dict):
        return {name: _without_nulls(value) for name, value in document.items() if value is not None}
    if isinstance(document, list):
        return [_without_nulls(value) for value in document if value is not None]
    return document


def _with_absolute_paths(file: KubeconfigFile, directory: Path) -> KubeconfigFile:
    def absolute(path: str) -> str:
        return str(directory / path) if path else ""

    def plugin(entry: Exec) -> Exec:
        # A bare name is looked up in PATH; anything else is a path.
        return replace(entry, command=absolute(entry.command)) if "/" in entry.command else entry

    def cluster(entry: KubeconfigCluster) -> KubeconfigCluster:
        return replace(entry, certificate_authority=absolute(entry.certificate_authority))

    def user(entry: KubeconfigUser) -> KubeconfigUser:
        return replace(
            entry,
            client_certificate=absolute(entry.client_certificate),
            client_key=absolute(entry.client_key),
            token_file=absolute(entry.token_file),
            exec=plugin(entry.exec) if entry.exec else None,
        )

    return replace(
        file,
        clusters=[replace(each, cluster=cluster(each.cluster)) for each in file.clusters],
        users=[replace(each, user=user(each.user)) for each in file.users],
    )
