"""A real Prometheus that scrapes what a list of targets names, every second, and evaluates podtide's alerting rules."""

import json
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from control_plane.json_http import JsonHttp
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process
from deploy.monitoring import RULES
from prometheus_programs import PrometheusPrograms


class PrometheusServer:
    """Runs until the context ends, with its data in a directory that vanishes with it."""

    def __init__(self, programs: PrometheusPrograms, targets: str) -> None:
        """`targets` is the URL of a list for HTTP service discovery."""
        (port,) = free_ports(1)
        self._nursery = Nursery()
        self._http = JsonHttp(f"http://{LOOPBACK}:{port}")
        configuration = self._nursery.directory / "prometheus.json"
        configuration.write_text(json.dumps(_configuration(targets)))
        command = [
            str(programs.prometheus),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={self._nursery.directory / 'data'}",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--log.level=warn",
        ]
        self._process = Process(self._nursery, command, lambda: self._http.is_up("/-/ready"))

    def __enter__(self) -> Self:
        try:
            self._process.start()
        except BaseException:
            self._nursery.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._nursery.close()

    def series(self, expression: str) -> list[dict[str, Any]]:
        """What the expression is now. RequestFailed, with Prometheus' own words, if it cannot be evaluated."""
        answer = self._http.request("GET", f"/api/v1/query?{urlencode({'query': expression})}")
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The rules with their health and their alerts, as last evaluated."""
        groups = self._http.request("GET", "/api/v1/rules")["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]


def _configuration(targets: str) -> dict[str, Any]:
    """JSON, which is YAML as well."""
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "podtide", "http_sd_configs": [{"url": targets, "refresh_interval": "1s"}]}
        ],
    }
