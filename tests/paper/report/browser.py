"""A real browser without a window, spoken to over a pipe: what a page does, loads and complains of."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.waiting import PATIENCE, until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic --disable-dev-shm-usage --remote-debugging-pipe"
)

# Chromium reads at 3 and writes at 4, which must be other places than those copied: a copy onto itself stays
# closed to what is executed. Of a process with threads, as this one is, no copy may run Python.
LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(place), fcntl.F_DUPFD, 10) for place in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of a headless Chromium; ``events`` is everything that it reported."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        command = [CHROMIUM, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        launch = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), *command]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(launch, pass_fds=(theirs_in, theirs_out), **quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self.events: list[dict[str, Any]] = []
        self.buffer, self.count, self.session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        os.close(self.out)
        os.close(self.into)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Say something to the browser and return its answer."""
        self.count += 1
        said: dict[str, Any] = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            said["sessionId"] = self.session
        os.write(self.out, json.dumps(said).encode() + b"\0")
        while True:
            heard = self._hear()
            if heard.get("id") == self.count:
                assert "error" not in heard, heard
                answer: dict[str, Any] = heard["result"]
                return answer
            self.events.append(heard)

    def _hear(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser is silent"
            part = os.read(self.into, 1 << 20)
            assert part, f"the browser ended, with exit code {self.process.wait(PATIENCE)}"
            self.buffer += part
        first, _, self.buffer = self.buffer.partition(b"\0")
        heard: dict[str, Any] = json.loads(first)
        return heard

    def open(self, path: Path, width: int = 1200, dark: bool = False) -> None:
        """Load a file from disk, in a window of that width, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.resolve().as_uri())
        until(lambda: bool(self.evaluate("document.readyState") == "complete"))

    def evaluate(self, expression: str) -> Any:
        """Return what an expression comes to in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def complaints(self) -> list[dict[str, Any]]:
        """Return everything the page said on its console, and every error."""
        methods = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event for event in self.events if event.get("method") in methods]

    def requests(self) -> list[str]:
        """Return every address that the page asked for, those that hold their own content left out."""
        asked = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith("data:")]
