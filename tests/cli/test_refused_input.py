"""Values that cannot be used, through every command that takes such a one: one sentence with the option and what to do."""

import sqlite3
from contextlib import closing
from pathlib import Path
from socket import socket

import pytest

from cli.conftest import Outcome, Run
from podtide.cluster.served.kubeconfig import write_kubeconfig

NOWHERE = "http://127.0.0.1:1"
CONTROLLER = ("controller", "--cluster-name", "east", "--network", "blue", "--subnet", "pods")
SUBNETS: dict[str, tuple[str, ...]] = {
    "add": ("subnet", "add", "blue", "pods", "10.0.0.0/24"),
    "grow": ("subnet", "grow", "blue", "pods", "10.0.1.0/24"),
    "list": ("subnet", "list"),
    "show": ("subnet", "show", "blue", "pods"),
    "remove": ("subnet", "remove", "blue", "pods"),
}
DURATIONS = {
    "agent": ("--gather", "--shrink-delay", "--cooldown", "--add-wait", "--contact-timeout", "--quarantine"),
    "controller": ("--poll", "--quarantine", "--leak-grace", "--leader-lease", "--repair-interval"),
    "allocator": ("--refresh", "--drain", "--cooldown", "--quarantine"),
    "top": ("--interval",),
}


@pytest.fixture
def away(tmp_path: Path) -> tuple[str, str]:
    """A cluster that does not answer: nothing that is tried here should come as far as asking it."""
    write_kubeconfig(tmp_path / "kubeconfig", NOWHERE)
    return "--kubeconfig", str(tmp_path / "kubeconfig")


def refused(outcome: Outcome, *words: str) -> None:
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    for each in words:
        assert each in outcome.err


def command(name: str, tmp_path: Path, away: tuple[str, str]) -> tuple[str, ...]:
    """A command that would run, but for what the test adds."""
    return {
        "agent": ("agent", "--node-name", "n1", "--state-directory", f"{tmp_path}/state", *away),
        "controller": (*CONTROLLER, "--database", f"sqlite:///{tmp_path}/subnets.db", *away),
        "allocator": ("allocator", "--database", f"sqlite:///{tmp_path}/subnets.db"),
        "top": ("top", *away),
    }[name]


@pytest.mark.parametrize("value", ["8761h", "999999999999h", "-5s", "soon", "12345678901234567890"])
@pytest.mark.parametrize(
    ("name", "option"), [(name, option) for name, options in DURATIONS.items() for option in options]
)
def test_a_duration_out_of_range(  # noqa: PLR0917 - fixtures and parameters
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str, option: str, value: str
) -> None:
    outcome = podtide(*command(name, tmp_path, away), f"{option}={value}")
    refused(outcome, f"{option}={value} is refused: give a duration such as 30s", "and at most 8760h")


@pytest.mark.parametrize("option", ["--batch", "--max-ips"])
def test_a_number_of_23_digits(podtide: Run, tmp_path: Path, away: tuple[str, str], option: str) -> None:
    number = "12345678901234567890123"
    outcome = podtide(*command("controller", tmp_path, away), option, number)
    refused(outcome, f"{option}={number} is refused: give a whole number, at least 1 and at most 65536")


@pytest.mark.parametrize("number", ["12345678901234567890123", "65537", "-1", "few"])
@pytest.mark.parametrize("where", [("--allocator", NOWHERE), ("--database", "sqlite:///nowhere.db")])
def test_a_number_of_addresses_to_keep_back_that_is_none(
    podtide: Run, number: str, where: tuple[str, str]
) -> None:
    outcome = podtide(*SUBNETS["add"], f"--keep-back-first={number}", *where)
    refused(
        outcome,
        f"--keep-back-first={number} is refused: give a whole number, at least 0 and at most 65536",
    )


def test_a_number_of_23_digits_to_be_explained(podtide: Run) -> None:
    number = "12345678901234567890123"
    for arguments in (
        ("explain", "request", "--demand", "5", "--batch", number),
        ("explain", "batch", "--capacity", "100", "--nodes", "2x5@16", "--batch", number),
    ):
        refused(podtide(*arguments), "--batch", number, "whole number", ": give")


@pytest.mark.parametrize("name", ["agent", "controller", "allocator"])
@pytest.mark.parametrize(
    ("variable", "advice"),
    [
        ("PODTIDE_BATCHH", "did you mean PODTIDE_BATCH? Correct or unset it"),
        ("PODTIDE_COLOUR", "unset it"),
    ],
)
def test_an_unknown_variable(  # noqa: PLR0917 - fixtures and parameters
    podtide: Run,
    tmp_path: Path,
    away: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    variable: str,
    advice: str,
) -> None:
    monkeypatch.setenv(variable, "8")
    outcome = podtide(*command(name, tmp_path, away))
    refused(outcome, f"the environment variable {variable} is not a setting of podtide: {advice}")


def test_an_unknown_variable_is_nothing_to_a_command_without_settings(
    podtide: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODTIDE_BATCHH", "8")
    outcome = podtide("explain", "request", "--demand", "5")
    assert (outcome.status, outcome.err) == (0, "")
    documented = Path(__file__).parents[2] / "docs" / "settings.md"
    assert "The three programs refuse unknown variables that begin with `PODTIDE_`" in documented.read_text()


@pytest.mark.parametrize("name", ["Bad Name", "node_1", "-node", "n" * 254])
def test_a_node_name_that_is_none(podtide: Run, tmp_path: Path, away: tuple[str, str], name: str) -> None:
    outcome = podtide(*command("agent", tmp_path, away), f"--node-name={name}")
    refused(outcome, "--node-name '", "is not a valid Kubernetes name: use lower-case letters, digits")


@pytest.mark.parametrize("name", ["Bad Subnet", "Pods", "pods_a", "pods."])
def test_a_subnet_name_that_kubernetes_would_not_take(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str
) -> None:
    where = ("--database", f"sqlite:///{tmp_path}/subnets.db")
    for option, outcome in (
        ("NAME", podtide("subnet", "add", "blue", name, "10.0.0.0/24", *where)),
        ("NAME", podtide("subnet", "add", "blue", name, "10.0.0.0/24", "--allocator", NOWHERE)),
        ("--subnet", podtide(*command("controller", tmp_path, away), "--subnet", name)),
        ("--subnet-v6", podtide(*command("controller", tmp_path, away), "--subnet-v6", name)),
    ):
        refused(outcome, f"{option} '{name}' is not a valid Kubernetes name: use lower-case letters")


@pytest.mark.parametrize("where", [("--allocator", NOWHERE), ("--database", "sqlite:///nowhere.db")])
def test_a_subnet_name_that_no_label_could_name(podtide: Run, where: tuple[str, str]) -> None:
    outcome = podtide("subnet", "add", "blue", "p" * 64, "10.0.0.0/24", *where)
    refused(outcome, "NAME 'ppp", "has 64 characters: give at most 63, because nodes choose a subnet by")


@pytest.mark.parametrize("name", SUBNETS)
def test_a_network_name_that_is_none(podtide: Run, name: str) -> None:
    arguments = (*SUBNETS[name][:2], "bad network", *SUBNETS[name][3:])
    refused(
        podtide(*arguments, "--allocator", NOWHERE),
        "NETWORK 'bad network' is not a valid name: use letters, digits",
    )


@pytest.mark.parametrize("option", ["--token-file", "--ca-file"])
@pytest.mark.parametrize("name", [*SUBNETS, "check", "controller"])
def test_a_file_that_is_not_there(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str, option: str
) -> None:
    missing = str(tmp_path / "missing")
    arguments: tuple[str, ...] = (*CONTROLLER, "--allocator", NOWHERE, *away)
    if name != "controller":
        arguments = (*SUBNETS.get(name, ("check", *away)), "--allocator", NOWHERE)
    outcome = podtide(*arguments, option, missing)
    refused(outcome, f"'{option}': the file {missing} does not exist: correct the path.")


@pytest.mark.parametrize("option", ["--tokens", "--tls-cert", "--tls-key"])
def test_a_file_that_the_allocator_is_to_read_and_that_is_not_there(
    podtide: Run, tmp_path: Path, option: str
) -> None:
    outcome = podtide("allocator", "--database", f"sqlite:///{tmp_path}/x.db", option, str(tmp_path / "none"))
    refused(outcome, f"'{option}': the file {tmp_path / 'none'} does not exist: correct the path.")


@pytest.mark.parametrize("name", [*SUBNETS, "check", "controller", "allocator"])
def test_a_database_that_is_none(podtide: Run, tmp_path: Path, away: tuple[str, str], name: str) -> None:
    directory, notes = tmp_path / "directory", tmp_path / "notes.txt"
    directory.mkdir()
    notes.write_text("to do: buy milk\n" * 300)
    refused(
        podtide(*database_command(name, away), f"sqlite:///{directory}"),
        f"--database sqlite:///{directory} names a directory: name a file in it",
    )
    refused(
        podtide(*database_command(name, away), f"sqlite:///{notes}"),
        f"--database sqlite:///{notes} names a file that is not a SQLite database: name another",
    )
    assert notes.read_text() == "to do: buy milk\n" * 300


@pytest.mark.parametrize("name", [*SUBNETS, "check"])
def test_commands_that_only_ask_never_make_a_database(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str
) -> None:
    database = tmp_path / "slip.db"
    refused(
        podtide(*database_command(name, away), f"sqlite:///{database}"),
        f"--database sqlite:///{database} names no file: correct the path, or start `podtide allocator` on it",
    )
    assert not list(tmp_path.glob("slip.db*"))


@pytest.mark.parametrize("name", ["controller", "allocator"])
def test_a_database_in_a_directory_that_is_not_there(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str
) -> None:
    database = tmp_path / "none" / "subnets.db"
    refused(
        podtide(*database_command(name, away), f"sqlite:///{database}"),
        f"--database sqlite:///{database} is in {tmp_path / 'none'}, which is not a directory: make it",
    )


READING = ("check", "top", "why", "quarantine", "clusters")


def make_foreign(path: Path, journal: str) -> None:
    """A database of another program."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.commit()


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
@pytest.mark.parametrize("name", [*SUBNETS, *READING, "controller", "allocator"])
def test_a_database_of_another_program_stays_as_it_is(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str, journal: str
) -> None:
    foreign = tmp_path / "recipes.db"
    make_foreign(foreign, journal)
    before = foreign.read_bytes()
    refused(
        podtide(*database_command(name, away), f"sqlite:///{foreign}"),
        "has tables of something else (recipes): name one for podtide alone",
    )
    assert foreign.read_bytes() == before
    assert list(tmp_path.glob("recipes.db*")) == [foreign]


def test_a_database_that_another_program_has_not_finished_writing_stays_as_it_is(
    podtide: Run, tmp_path: Path
) -> None:
    foreign = tmp_path / "recipes.db"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.commit()
        log = tmp_path / "recipes.db-wal"
        before = foreign.read_bytes(), log.read_bytes()
        refused(podtide("subnet", "list", "--database", f"sqlite:///{foreign}"), "(recipes)")
        assert (foreign.read_bytes(), log.read_bytes()) == before


@pytest.mark.parametrize("name", [*SUBNETS, *READING])
def test_an_empty_file_stays_empty(podtide: Run, tmp_path: Path, away: tuple[str, str], name: str) -> None:
    empty = tmp_path / "zero.db"
    empty.touch()
    refused(
        podtide(*database_command(name, away), f"sqlite:///{empty}"), "start `podtide allocator` on it, which"
    )
    assert (empty.read_bytes(), list(tmp_path.glob("zero.db*"))) == (b"", [empty])


def database_command(name: str, away: tuple[str, str]) -> tuple[str, ...]:
    """A command that takes a database, up to its URL."""
    others = {
        "check": ("check", *away),
        "top": ("top", "--once", *away),
        "why": ("why", "pod-1", *away),
        "quarantine": ("quarantine", "list"),
        "clusters": ("allocator", "cluster", "list"),
        "controller": (*CONTROLLER, *away),
        "allocator": ("allocator", "--listen", "127.0.0.1:0"),
    }
    return (*(SUBNETS | others)[name], "--database")


@pytest.mark.parametrize("text", ["9391", "somewhere", "127.0.0.1:99999"])
@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("allocator", "--listen"),
        ("agent", "--listen"),
        ("agent", "--metrics-listen"),
        ("controller", "--metrics-listen"),
    ],
)
def test_an_address_that_nobody_can_listen_on(  # noqa: PLR0917 - fixtures and parameters
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str, option: str, text: str
) -> None:
    outcome = podtide(*command(name, tmp_path, away), option, text)
    refused(outcome, f"{option} '{text}' is not an address to listen on: give one such as 127.0.0.1:8001")


def test_a_port_that_is_taken(podtide: Run, tmp_path: Path, away: tuple[str, str]) -> None:
    with socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        outcome = podtide(*command("allocator", tmp_path, away), "--listen", where, "--log-level", "error")
    refused(
        outcome,
        f"cannot listen on {where} (Address already in use): name another address or port by --listen",
    )


@pytest.mark.parametrize("url", ["allocator:8080", "http://", "http://[::1", "http://allocator:99999"])
@pytest.mark.parametrize("name", [*SUBNETS, "controller"])
def test_a_url_that_is_no_allocators(podtide: Run, away: tuple[str, str], name: str, url: str) -> None:
    option = "--allocator"
    arguments = (*CONTROLLER, *away, "--log-level", "error") if name == "controller" else SUBNETS[name]
    refused(
        podtide(*arguments, option, url),
        f"{option} '{url}' is not a valid URL of an allocator: give one such as",
    )


@pytest.mark.parametrize("schedule", ["nightly", "* * * * * *", "0 0 30 2 *"])
def test_a_schedule_that_never_comes(
    podtide: Run, tmp_path: Path, away: tuple[str, str], schedule: str
) -> None:
    outcome = podtide(*command("controller", tmp_path, away), "--repair-schedule", schedule)
    refused(
        outcome, f"--repair-schedule '{schedule}' is not a cron expression that is ever due: write minute"
    )


@pytest.mark.parametrize("name", [*SUBNETS, *READING, "controller", "allocator"])
def test_a_database_is_refused_by_its_option(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str
) -> None:
    foreign, empty = tmp_path / "recipes.db", tmp_path / "zero.db"
    make_foreign(foreign, "DELETE")
    empty.touch()
    arguments = database_command(name, away)
    refused(
        podtide(*arguments, f"sqlite:///{foreign}"), f"--database sqlite:///{foreign} has tables of something"
    )
    refused(
        podtide(*arguments, "mysql://x"), "--database with a URL that begins with 'mysql' is refused: use"
    )
    refused(
        podtide(*arguments, "postgresql://[::x"),
        "--database postgresql://… is not a valid URL of a PostgreSQL",
    )
    if name not in {"controller", "allocator"}:
        refused(podtide(*arguments, f"sqlite:///{empty}"), f"--database sqlite:///{empty} has no schema yet")


def test_a_postgresql_that_is_down_was_asked_nothing(podtide: Run) -> None:
    with socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"postgresql://me:secret@127.0.0.1:{closed.getsockname()[1]}/subnets"
        outcome = podtide("subnet", "list", "--database", url)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (1, "", 1)
    assert "no request was sent to it yet: check that it runs, or correct --database" in outcome.err
    assert "unknown" not in outcome.err
    assert "secret" not in outcome.err


@pytest.mark.parametrize("number", ["-1", "12345678901234567890123", "some"])
def test_a_number_of_primaries_that_is_none(podtide: Run, number: str) -> None:
    outcome = podtide("explain", "request", "--demand", "5", f"--primaries={number}")
    refused(outcome, f"--primaries={number} is refused: give a whole number, at least 0 and at most 65536")


def test_a_node_name_that_is_empty_does_not_become_a_guess(
    podtide: Run, tmp_path: Path, away: tuple[str, str]
) -> None:
    outcome = podtide(*command("agent", tmp_path, away), "--node-name", "")
    refused(outcome, "--node-name is empty: give a name, or leave out the option")


@pytest.mark.parametrize("namespace", ["Bad_NS", "a.b", "n" * 64])
@pytest.mark.parametrize("name", ["agent", "controller", "check", "migrate"])
def test_a_namespace_that_is_none(
    podtide: Run, tmp_path: Path, away: tuple[str, str], name: str, namespace: str
) -> None:
    reading = {"check": ("check", *away), "migrate": ("migrate", "whereabouts", "--dry-run", *away)}
    arguments = reading[name] if name in reading else command(name, tmp_path, away)
    outcome = podtide(*arguments, "--networks-namespace", namespace)
    refused(
        outcome,
        "--networks-namespace '",
        "is not a valid name of a namespace: use lower-case letters, digits and '-'",
    )


@pytest.mark.parametrize("nodes", ["Bad Name", "a,node_1"])
def test_a_node_to_be_explained_that_is_none(podtide: Run, nodes: str) -> None:
    outcome = podtide("explain", "slices", "--range", "10.0.0.0/16", "--slice-size", "/24", "--nodes", nodes)
    refused(
        outcome,
        f"--nodes '{nodes.rsplit(',', maxsplit=1)[-1]}' is not a valid Kubernetes name: use lower-case letters",
    )
