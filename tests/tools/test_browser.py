"""The browser of tests and pictures: nothing but this machine can be asked for, and words where there is none."""

import asyncio
from pathlib import Path

import pytest
from playwright.sync_api import Error

import browser
from browser import NoBrowser, chromium
from left_out import leave_out


@pytest.mark.slow
def test_it_reaches_this_machine_alone_and_leaves_the_thread_to_other_loops() -> None:
    try:
        with chromium() as opened:
            page = opened.new_page()
            with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
                page.goto("http://example.com/")
    except NoBrowser as reason:
        leave_out("Chromium", reason)
    asyncio.run(asyncio.sleep(0))


def test_a_machine_without_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(browser, "CHROMIUM", tmp_path / "none")
    with pytest.raises(NoBrowser, match="make chromium-if-possible"), chromium():
        pass
