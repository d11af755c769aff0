"""What a page's scripts cost a browser, by Chromium's own trace: in processor time of the page's main thread.

Processor time, because the clock runs on while a browser waits for a core: on a busy machine a frame of 2 ms of script may take
50 ms from begin to end, and that says nothing of the page. Nothing that is traced may ask Playwright for anything in
the page, since that would be run as a script there too: `is_there` looks at the document from outside.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct
from playwright.sync_api import CDPSession, Error, Page

_CATEGORIES = "toplevel,v8,devtools.timeline"
_TASK = "ThreadControllerImpl::RunTask"
_FRAME = "FireAnimationFrame"
_SCRIPTS = frozenset(
    {
        *("FunctionCall", "EvaluateScript", "EventDispatch", "FireAnimationFrame", "TimerFire"),
        *(
            "v8.callFunction",
            "v8.compile",
            "v8.compileModule",
            "v8.evaluateModule",
            "v8.run",
            "v8.produceCache",
        ),
        *("RunMicrotasks", "BlinkScheduler_PerformMicrotaskCheckpoint", "MinorGC", "MajorGC"),
    }
)
_PAUSE_SECONDS = 0.05


class ScriptTimes(Struct, frozen=True, kw_only=True):
    """Processor time of scripts on the main thread, in milliseconds; the collection of garbage counts."""

    longest_frame: float
    """Of the tasks that draw a frame, the one with the most."""
    longest_task: float
    """Of all tasks: no frame can be drawn while one runs."""
    frames: int
    total: float


class TracedPage:
    """A page in a browser, whose scripts are measured while `tracing` is open."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._events: list[dict[str, Any]] = []
        self._is_complete = False
        self._session.on("Tracing.dataCollected", lambda answer: self._events.extend(answer["value"]))
        self._session.on("Tracing.tracingComplete", self._complete)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """Trace what is done meanwhile."""
        self._events, self._is_complete = [], False
        self._session.send("Tracing.start", {"categories": _CATEGORIES, "transferMode": "ReportEvents"})
        yield
        self._session.send("Tracing.end")
        while not self._is_complete:
            self._page.wait_for_timeout(1_000 * _PAUSE_SECONDS)

    def times(self) -> ScriptTimes:
        """What was traced last."""
        return script_times(self._events)

    def until(self, selector: str, *, within: float = 120.0) -> None:
        """Wait until the document has such an element, without a script in the page."""
        last = time.monotonic() + within
        while not self.is_there(selector):
            assert time.monotonic() < last, f"the page shows no {selector}"
            time.sleep(_PAUSE_SECONDS)

    def is_there(self, selector: str) -> bool:
        """Whether the document has such an element."""
        root = self._session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
        try:
            found = self._session.send("DOM.querySelector", {"nodeId": root, "selector": selector})
        except Error:
            return False  # another document has come meanwhile
        return bool(found["nodeId"])

    def move(self, x: float, y: float) -> None:
        """Move the pointer."""
        self._mouse("mouseMoved", x, y)

    def click(self, x: float, y: float) -> None:
        """Press and release the first button."""
        for kind in ("mousePressed", "mouseReleased"):
            self._mouse(kind, x, y, button="left", clickCount=1)

    def _mouse(self, kind: str, x: float, y: float, **more: object) -> None:
        self._session.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **more})

    def _complete(self, _answer: object) -> None:
        self._is_complete = True


def script_times(events: Iterable[dict[str, Any]]) -> ScriptTimes:
    """The scripts of the thread that draws frames."""
    whole = [each for each in events if each.get("ph") == "X" and "tdur" in each]
    drawing = Counter(_thread(each) for each in whole if each["name"] == _FRAME)
    main = drawing.most_common(1)[0][0] if drawing else None
    ours = sorted(
        (each for each in whole if _thread(each) == main), key=lambda each: (each["ts"], -each["dur"])
    )
    frames, tasks = [0.0], [0.0]
    task_end, script_end = -1, -1
    for each in ours:
        end = each["ts"] + each["dur"]
        if each["name"] == _TASK and each["ts"] >= task_end:
            task_end = end
            tasks.append(0.0)
            frames.append(0.0)
        elif each["name"] in _SCRIPTS and each["ts"] < task_end:
            if each["ts"] >= script_end:  # not within one that is counted
                script_end = end
                tasks[-1] += each["tdur"] / 1_000
            if each["name"] == _FRAME:
                frames[-1] = 1.0
    drawn = [spent for spent, is_frame in zip(tasks, frames, strict=True) if is_frame]
    return ScriptTimes(
        longest_frame=max(drawn, default=0.0),
        longest_task=max(tasks),
        frames=len(drawn),
        total=sum(tasks),
    )


def _thread(event: dict[str, Any]) -> tuple[int, int]:
    return event["pid"], event["tid"]
