"""The page's files: all modules are named by the page itself, and what can be compressed is."""

import gzip
import re
from pathlib import Path

from podtide.dashboard.page_files import read_page_files


def test_the_page_names_every_module_so_that_none_is_found_only_by_an_import() -> None:
    files = read_page_files()
    named = re.findall(r'rel="modulepreload" href="static/([^"]+)"', files[""].body.decode())
    assert sorted(named) == sorted(path for path in files if path.endswith(".js"))


def test_the_page_shows_that_it_loads_before_any_script_has_run() -> None:
    page = read_page_files()[""].body.decode()
    assert "Loading the cluster" in page.partition('id="root"')[2]


def test_files_are_compressed_once_where_that_saves_anything(tmp_path: Path) -> None:
    (tmp_path / "long.css").write_text("a { color: red; }\n" * 500)
    (tmp_path / "short.css").write_text("a {}")
    files = read_page_files(tmp_path)
    packed = files["long.css"].gzipped
    assert packed is not None
    assert gzip.decompress(packed) == files["long.css"].body
    assert files["short.css"].gzipped is None
