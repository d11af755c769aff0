"""A credential per role: client certificates for users, bound tokens for service accounts, kubeconfigs for both."""

import http
import re
import ssl
from collections.abc import Iterable
from pathlib import Path

from control_plane.certificates import CertificateAuthority, KeyPair
from control_plane.errors import RequestFailed
from control_plane.json_http import JsonHttp
from control_plane.kubeconfig import Credential, kubeconfig

ADMINISTRATORS = "system:masters"


class Credentials:
    """Those of one control plane. What they may do is RBAC's to say: a new user may do nothing."""

    def __init__(self, url: str, authority: CertificateAuthority, directory: Path) -> None:
        self._url = url
        self._authority = authority
        self._directory = directory
        directory.mkdir()
        self.admin_kubeconfig = self.kubeconfig_for_user("admin", groups=[ADMINISTRATORS])
        self.tls = self._tls(self.client_certificate("admin", [ADMINISTRATORS]))
        self.admin = JsonHttp(url, self.tls)

    def client_certificate(self, user: str, groups: Iterable[str] = ()) -> KeyPair:
        """A certificate by which the API server knows the user and the groups."""
        return self._authority.client(user, groups)

    def token(self, namespace: str, name: str, *, seconds: int = 3600) -> str:
        """A bound token of a service account (the least the API server grants is 600 s); makes the account if need be."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        try:
            self.admin.request("POST", accounts, {"metadata": {"name": name}})
        except RequestFailed as failure:
            if failure.status != http.HTTPStatus.CONFLICT:
                raise
        answer = self.admin.request(
            "POST", f"{accounts}/{name}/token", {"spec": {"expirationSeconds": seconds}}
        )
        token: str = answer["status"]["token"]
        return token

    def kubeconfig_for_user(self, user: str, *, groups: Iterable[str] = (), url: str = "") -> Path:
        """A kubeconfig file with a client certificate of the user; `url` if it is to be used from elsewhere."""
        return self._write(user, self.client_certificate(user, groups), url)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig file with a bound token of the service account."""
        return self._write(f"system:serviceaccount:{namespace}:{name}", self.token(namespace, name))

    def _write(self, user: str, credential: Credential, url: str = "") -> Path:
        path = self._directory / f"{re.sub(r'[^a-zA-Z0-9.-]', '-', user)}.kubeconfig"
        path.write_text(kubeconfig(url or self._url, self._authority.certificate, user, credential))
        return path

    def _tls(self, client: KeyPair) -> ssl.SSLContext:
        """The ssl module takes a client's certificate from a file only."""
        file = self._directory / "admin.pem"
        file.write_text(client.certificate + client.key)
        context = ssl.create_default_context(cadata=self._authority.certificate)
        context.load_cert_chain(file)
        return context
