"""The alerting rules: promtool has nothing against them, each fires when it should, and each has its runbook."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from msgspec import structs

from deploy.chart import Chart, Document, one
from deploy.monitoring import (
    RULE_TESTS,
    RULES,
    RUNBOOKS,
    AlertRule,
    alert_rules,
    known_metrics,
    metrics_in,
)
from prometheus_programs import PrometheusPrograms

ALERTS = alert_rules()
PARTS = ["What it means", "How to look", "What to do", "When it ends"]
KIND = "monitoring.coreos.com/v1/PrometheusRule"


def promtool(programs: PrometheusPrograms, *arguments: str | Path) -> str:
    """What promtool says, after it found nothing wrong."""
    answer = subprocess.run(
        [programs.promtool, *arguments], check=False, capture_output=True, text=True, cwd=RULE_TESTS.parent
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def test_promtool_has_nothing_to_object_to(prometheus: PrometheusPrograms) -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool(
        prometheus, "check", "rules", "--lint-fatal", RULES
    )


def test_every_alert_fires_when_it_should_and_ends(prometheus: PrometheusPrograms) -> None:
    assert "SUCCESS" in promtool(prometheus, "test", "rules", RULE_TESTS)


@pytest.mark.parametrize("alert", [rule.alert for rule in ALERTS])
@pytest.mark.parametrize("factor", [0, 2], ids=["sooner", "later"])
def test_those_tests_notice_an_alert_that_comes_sooner_or_later(
    prometheus: PrometheusPrograms, tmp_path: Path, alert: str, factor: int
) -> None:
    changed = yaml.safe_load(RULES.read_text())
    for group in changed["groups"]:
        for rule in group["rules"]:
            if rule["alert"] == alert:
                rule["for"] = f"{seconds_of(rule['for']) * factor}s"
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(changed))
    tests = yaml.safe_load(RULE_TESTS.read_text()) | {"rule_files": ["rules.yaml"]}
    tests["tests"] = [each for each in tests["tests"] if f'"{alert}"' in str(each)]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    answer = subprocess.run(
        [prometheus.promtool, "test", "rules", "tests.yaml"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert answer.returncode == 1
    assert alert in answer.stdout + answer.stderr


def seconds_of(duration: str) -> int:
    """Of a duration as Prometheus writes it, with one unit."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.alert)
def test_an_alert_says_what_is_so_what_to_do_and_how_bad_it_is(rule: AlertRule) -> None:
    assert rule.alert.startswith("Podtide")
    assert rule.labels.keys() == {"severity"}
    assert rule.labels["severity"] in {"warning", "critical"}
    assert rule.annotations.keys() == {"summary", "description", "runbook_url"}
    assert not rule.annotations["summary"].endswith(".")
    assert rule.annotations["description"].endswith(".")


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.alert)
def test_an_alert_goes_by_metrics_that_there_are(rule: AlertRule) -> None:
    named = metrics_in(rule.expression)
    assert named
    assert named <= known_metrics()


def sections() -> dict[str, str]:
    """The sections of the runbooks that are about one alert."""
    found = re.findall(r"^## (Podtide\w+)\n(.*?)(?=^## |\Z)", RUNBOOKS.read_text(), re.MULTILINE | re.DOTALL)
    return dict(found)


def test_every_alert_has_its_runbook_and_there_is_no_other() -> None:
    assert list(sections()) == [rule.alert for rule in ALERTS]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule.alert)
def test_an_alert_links_to_its_runbook_which_has_all_its_parts(rule: AlertRule) -> None:
    assert rule.annotations["runbook_url"] == f"docs/runbooks.md#{rule.alert.lower()}"
    section = sections()[rule.alert]
    assert re.findall(r"^\*\*(.+?)\.\*\* ", section, re.MULTILINE) == PARTS
    assert f"*{rule.labels['severity']}*, after {rule.seconds}" in section


def prometheus_rules(chart: Chart, **values: object) -> list[Document]:
    """What Helm makes of them in a cluster that knows the kind."""
    known = structs.replace(chart, api_versions=(KIND,))
    return [each for each in known.objects(**values) if each["kind"] == "PrometheusRule"]


def test_the_chart_has_the_same_rules_for_a_cluster_that_knows_the_kind(chart: Chart) -> None:
    (made,) = prometheus_rules(chart, prometheusRule__labels={"release": "prometheus"})
    assert made["spec"] == yaml.safe_load(RULES.read_text())
    assert made["metadata"]["labels"]["release"] == "prometheus"
    assert "PrometheusRule" not in {each["kind"] for each in chart.objects()}
    assert prometheus_rules(chart, prometheusRule__enabled=False) == []


def test_its_alerts_link_to_where_runbooks_are_read(chart: Chart) -> None:
    (made,) = prometheus_rules(chart, prometheusRule__runbooks="https://wiki.example.org/podtide")
    links = [
        rule["annotations"]["runbook_url"] for group in made["spec"]["groups"] for rule in group["rules"]
    ]
    assert links == [f"https://wiki.example.org/podtide#{rule.alert.lower()}" for rule in ALERTS]


def test_the_chart_names_nodes_in_what_it_scrapes_of_agents(chart: Chart) -> None:
    objects = chart.objects(serviceMonitor__enabled=True)
    [endpoint] = one(objects, "ServiceMonitor", "podtide-agent")["spec"]["endpoints"]
    assert [each["targetLabel"] for each in endpoint["relabelings"]] == ["node"]
