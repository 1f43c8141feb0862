import hashlib
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import disk_usage
from typing import Any

import pytest

from pres.data.datasets import registry as registry_module
from pres.data.datasets.download import download
from pres.data.datasets.load import load
from pres.errors import ChecksumError, DownloadError, StorageError
from tests.data.datasets.toy import COUNTS, SRC, Publish, write_jodie
from tests.waiting import PATIENCE

CONTENT = bytes(k * 31 % 251 for k in range(1_000_000))


@dataclass
class Site:
    """A public server: what it offers, how it misbehaves, and what it was asked."""

    content: bytes = CONTENT
    tag: str = '"one"'
    cut_after: int | None = None  # bytes after which the connection breaks
    knows_ranges: bool = True
    says_length: bool = True
    status: int | None = None
    starts_at: int | None = None  # where every partial answer starts, whatever was asked for
    asked: list[str | None] = field(default_factory=list)  # the Range of every request
    url: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append(wanted)
        if self.status is not None:
            request.send_error(self.status)
            return
        if_range = request.headers.get("If-Range")
        start, partial = 0, False
        if wanted and self.knows_ranges and if_range in (None, self.tag):
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            partial = True
            if start >= len(self.content) and self.starts_at is None:
                request.send_response(416)
                request.send_header("Content-Range", f"bytes */{len(self.content)}")
                request.send_header("Content-Length", "0")
                request.end_headers()
                return
        if partial and self.starts_at is not None:
            start = self.starts_at
        body = self.content[start:]
        request.send_response(206 if partial else 200)
        if partial:
            request.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        if self.says_length:
            request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", self.tag)
        request.end_headers()
        request.wfile.write(body if self.cut_after is None else body[: self.cut_after])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    offered = Site()

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self) -> None:
            offered.answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False  # an answer that is still being given would be in the way of other tests

        def handle_error(self, request: Any, client_address: Any) -> None:
            assert isinstance(sys.exception(), ConnectionError)  # who asked has gone

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("pres.data.datasets.download._SECONDS_WITHOUT_AN_ANSWER", PATIENCE)
    server = Server(("127.0.0.1", 0), Handler)
    offered.url = f"http://127.0.0.1:{server.server_address[1]}/data.csv"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield offered
    server.shutdown()
    thread.join()
    server.server_close()


def beside(target: Path) -> set[str]:
    """Names of the files around the target."""
    return {path.name for path in target.parent.iterdir()}


def test_the_file_arrives_whole_and_is_pinned(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "new" / "data.csv"
    assert download(site.url, target) == target
    assert target.read_bytes() == CONTENT
    assert beside(target) == {"data.csv", "data.csv.sha256"}
    assert Path(f"{target}.sha256").read_text() == f"{site.sha256}  data.csv\n"


def test_what_is_there_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    download(site.url, tmp_path / "data.csv")
    download(site.url, tmp_path / "data.csv")
    assert site.asked == [None]


def test_an_interrupted_download_goes_on_where_it_stopped(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    site.cut_after = 300_000
    with pytest.raises(DownloadError, match=r"0\.3 MB of 1\.0 MB are kept; run again"):
        download(site.url, target)
    assert not target.exists()
    with pytest.raises(DownloadError, match=r"0\.6 MB of 1\.0 MB are kept"):
        download(site.url, target)
    site.cut_after = None
    download(site.url, target, sha256=site.sha256)
    assert target.read_bytes() == CONTENT
    assert site.asked == [None, "bytes=300000-", "bytes=600000-"]
    assert beside(target) == {"data.csv"}


@pytest.mark.parametrize("change", ["knows_ranges", "tag"])
def test_it_starts_over_when_the_rest_cannot_be_had(site: Site, tmp_path: Path, change: str) -> None:
    target = tmp_path / "data.csv"
    site.cut_after = 300_000
    with pytest.raises(DownloadError):
        download(site.url, target)
    site.cut_after = None
    if change == "knows_ranges":
        site.knows_ranges = False
    else:
        site.tag, site.content = '"two"', CONTENT[::-1]
    download(site.url, target)
    assert target.read_bytes() == site.content


@pytest.mark.parametrize(("starts_at", "size"), [(0, 1_000_000), (200_000, 1_000_000), (200_000, 250_000)])
def test_what_is_sent_again_is_put_in_its_place(
    site: Site, tmp_path: Path, starts_at: int, size: int
) -> None:
    site.cut_after = 300_000
    with pytest.raises(DownloadError):
        download(site.url, tmp_path / "data.csv")
    site.cut_after, site.starts_at, site.content = None, starts_at, CONTENT[:size]
    download(site.url, tmp_path / "data.csv")
    assert (tmp_path / "data.csv").read_bytes() == CONTENT[:size]


def test_an_answer_that_would_leave_a_hole_is_refused(site: Site, tmp_path: Path) -> None:
    site.cut_after = 300_000
    with pytest.raises(DownloadError):
        download(site.url, tmp_path / "data.csv")
    site.cut_after, site.starts_at = None, 400_000
    with pytest.raises(DownloadError, match="another part of the file than it was asked for"):
        download(site.url, tmp_path / "data.csv")
    assert beside(tmp_path / "data.csv") == set()


def test_everything_had_arrived_but_the_renaming(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    Path(f"{target}.part").write_bytes(CONTENT)
    download(site.url, target, sha256=site.sha256)
    assert target.read_bytes() == CONTENT


def test_more_than_everything_starts_over(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    Path(f"{target}.part").write_bytes(CONTENT + b"of another file")
    download(site.url, target)
    assert target.read_bytes() == CONTENT
    assert site.asked == [f"bytes={len(CONTENT) + 15}-", None]


def test_a_server_that_does_not_say_how_much_it_sends(site: Site, tmp_path: Path) -> None:
    site.says_length = False
    download(site.url, tmp_path / "data.csv", sha256=site.sha256)
    assert (tmp_path / "data.csv").read_bytes() == CONTENT


def test_a_wrong_published_checksum_keeps_nothing(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    with pytest.raises(ChecksumError, match=f"sha256 {'0' * 64} published, {site.sha256} downloaded"):
        download(site.url, target, sha256="0" * 64)
    assert beside(target) == set()


def test_a_file_that_changed_since_the_first_download(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    download(site.url, target)
    first = site.sha256
    target.unlink()
    site.content = b"something else"
    with pytest.raises(ChecksumError, match=rf"{first} then, {site.sha256} now.*delete .*data\.csv\.sha256"):
        download(site.url, target)
    assert beside(target) == {"data.csv.sha256"}
    Path(f"{target}.sha256").unlink()
    download(site.url, target)
    assert target.read_bytes() == b"something else"


def test_no_such_file(site: Site, tmp_path: Path) -> None:
    site.status = 404
    with pytest.raises(DownloadError, match="answers 404 Not Found"):
        download(site.url, tmp_path / "data.csv")
    assert beside(tmp_path / "data.csv") == set()


def test_a_failed_download_leaves_nothing_behind(site: Site, tmp_path: Path) -> None:
    site.status = 404
    (tmp_path / "old").mkdir()
    for folder in (tmp_path / "new" / "deeper", tmp_path / "old"):
        with pytest.raises(DownloadError):
            download(site.url, folder / "data.csv")
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]  # it was there before


def test_what_is_kept_keeps_its_folder(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "new" / "data.csv"
    site.cut_after = 300_000
    with pytest.raises(DownloadError, match="are kept"):
        download(site.url, target)
    assert beside(target) == {"data.csv.part", "data.csv.part.version"}


def test_failures_at_once_do_not_pull_the_folder_from_under_each_other(site: Site, tmp_path: Path) -> None:
    site.status = 404
    met: list[Exception] = []

    def attempt() -> None:
        for _ in range(5):
            try:
                download(site.url, tmp_path / "new" / "data.csv")
            except Exception as error:
                met.append(error)

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [type(error) for error in met] == [DownloadError] * 20
    assert not list(tmp_path.glob("new/*"))


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # nobody else can have the port, but nobody listens there
        with pytest.raises(DownloadError, match="Connection refused"):
            download(f"http://127.0.0.1:{deaf.getsockname()[1]}/data.csv", tmp_path / "data.csv")


def test_no_folder_can_be_made(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="set PRES_CACHE to another folder"):
        download(site.url, tmp_path / "cache" / "data.csv")
    assert site.asked == []


def test_too_little_space_is_seen_before_anything_is_written(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = disk_usage(tmp_path)._replace(free=400_000)
    monkeypatch.setattr("pres.data.datasets.download.shutil.disk_usage", lambda _: little)
    with pytest.raises(StorageError, match=r"needs 1\.0 MB, but only 0\.4 MB are free"):
        download(site.url, tmp_path / "data.csv")
    assert beside(tmp_path / "data.csv") == set()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_disk_that_fills_up_is_not_left_full(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    Path(f"{target}.part").symlink_to("/dev/full")
    with pytest.raises(StorageError, match="no space left on device"):
        download(site.url, target)
    assert beside(target) == set()


def test_two_downloads_at_once_ask_once(site: Site, tmp_path: Path) -> None:
    target = tmp_path / "data.csv"
    threads = [threading.Thread(target=download, args=(site.url, target)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert target.read_bytes() == CONTENT
    assert site.asked == [None]


def test_load_downloads_what_is_not_there(site: Site, data: Path, cache: Path, publish: Publish) -> None:
    site.content = write_jodie(data / "aside" / "source.csv").read_bytes()
    source = registry_module.Download(site.url.replace("data.csv", "reddit.csv"))
    publish("reddit", COUNTS, downloads=(source,))
    assert load("reddit").src.tolist() == SRC
    assert (cache / "reddit" / "reddit.csv").read_bytes() == site.content
    assert load("reddit").src.tolist() == SRC
    assert site.asked == [None]


def test_load_says_what_to_do_when_the_download_fails(site: Site, data: Path, publish: Publish) -> None:
    site.status = 503
    publish("gdelt", COUNTS, downloads=(registry_module.Download(site.url),))
    with pytest.raises(DownloadError, match=r"'gdelt' is not on this machine.*503.*PRES_DATA.*42 GiB"):
        load("gdelt")
