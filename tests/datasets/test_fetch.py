"""Fetching: complete and right files only, from a server on this machine."""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from robust_fairness.bench.datasets import fetch as _fetch
from robust_fairness.bench.datasets.fetch import REMOTES, Remote, dataset_files, fetch
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from tests.datasets import images
from tests.datasets.loading import one_line

CONTENT = b"1,2,3\n" * 1000
A, B = CONTENT + b"a", CONTENT + b"b"


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder and counts what it is asked for."""

    requests: list[str]

    def log_message(self, format: str, *args: object) -> None:
        self.requests.append(self.path)


@pytest.fixture
def web(tmp_path: Path) -> Path:
    folder = tmp_path / "web"
    folder.mkdir()
    return folder


@pytest.fixture
def requests() -> list[str]:
    return []


@pytest.fixture
def address(web: Path, requests: list[str]) -> Iterator[str]:
    handler = type("CountingHandler", (Handler,), {"requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(web))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = {"toy.data": hashlib.sha256(CONTENT).hexdigest()}
    monkeypatch.setitem(REMOTES, "toy", Remote("http://127.0.0.1:9", "toy_folder", sha256))


def files_below(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("toy")
def test_fetched_file_is_the_one_that_is_read(address: str, web: Path, tmp_path: Path) -> None:
    (web / "toy.data").write_bytes(CONTENT)
    root = tmp_path / "raw"
    assert fetch("toy", root, address=address) == [root / "toy_folder" / "toy.data"]
    files = Files(root)
    assert files.text("toy_folder/toy.data").encode() == CONTENT
    assert files.sources == {"toy_folder/toy.data": REMOTES["toy"].sha256["toy.data"]}


@pytest.mark.usefixtures("toy")
def test_sound_file_is_not_fetched_again_and_a_damaged_one_is(
    address: str, web: Path, tmp_path: Path, requests: list[str]
) -> None:
    (web / "toy.data").write_bytes(CONTENT)
    (target,) = fetch("toy", tmp_path, address=address)
    fetch("toy", tmp_path, address=address)
    assert len(requests) == 1
    target.write_bytes(CONTENT[:-1])
    fetch("toy", tmp_path, address=address)
    assert target.read_bytes() == CONTENT


@pytest.mark.usefixtures("toy")
def test_root_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file where the folder should be")
    with one_line(r"cannot write .*toy\.data"):
        fetch("toy", tmp_path / "raw")


def test_unknown_dataset_gives_the_nearest_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"did you mean 'adult'\? Allowed: acs, adult, cifar10"):
        fetch("adlut", tmp_path)


def test_checksums_are_those_of_the_official_files(shared_data: Path) -> None:
    # MNIST is served compressed; its copy here was compressed anew. The copy of german.data here
    # has commas and a header: see below. Of CIFAR-10 there are other files here.
    for name in REMOTES.keys() - {"cifar10", "mnist", "german_statlog", "readmission"}:
        remote = REMOTES[name]
        files = Files(shared_data)
        for file in remote.sha256:
            files.content(f"{remote.folder}/{file}")
        assert list(files.sources.values()) == list(remote.sha256.values())


def test_checksum_of_german_data_is_that_of_its_rows(shared_data: Path) -> None:
    _, _, rows = Files(shared_data).text("german_credit/german.csv").partition("\n")
    content = rows.replace(",", " ").encode()
    expected = REMOTES["german_statlog"].sha256["german.data"]
    assert hashlib.sha256(content).hexdigest() == expected


def test_checksum_of_readmission_is_that_of_the_file_in_the_archive(shared_data: Path) -> None:
    (member,) = REMOTES["readmission"].sha256
    with zipfile.ZipFile(shared_data / "diabetes_130" / "dataset_diabetes.zip") as members:
        content = members.read(member)
    assert hashlib.sha256(content).hexdigest() == REMOTES["readmission"].sha256[member]


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = {
        f"{name}.csv": hashlib.sha256(CONTENT + name.encode()).hexdigest() for name in ("a", "b")
    }
    remote = Remote("http://127.0.0.1:9", "toy_folder", sha256, archive="toy.zip")
    monkeypatch.setitem(REMOTES, "toy", remote)


@pytest.mark.usefixtures("packed")
def test_files_of_an_archive_are_unpacked_and_it_is_not_kept(
    address: str, web: Path, tmp_path: Path, requests: list[str]
) -> None:
    contents = {"other.csv": b"more", "b.csv": B, "a.csv": A}
    (web / "toy.zip").write_bytes(images.packed(contents))
    root = tmp_path / "raw"
    targets = [root / "toy_folder" / "a.csv", root / "toy_folder" / "b.csv"]
    assert fetch("toy", root, address=address) == targets
    assert sorted(files_below(root)) == targets
    assert [target.read_bytes() for target in targets] == [A, B]
    fetch("toy", root, address=address)
    assert requests == ["/toy.zip"]
    targets[0].write_bytes(b"damaged")
    fetch("toy", root, address=address)
    assert targets[0].read_bytes() == A


def test_file_in_a_folder_of_an_archive_keeps_its_folder(
    address: str, web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = {"inner/a.csv": hashlib.sha256(CONTENT).hexdigest()}
    remote = Remote(address, "toy_folder", sha256, archive="toy.zip")
    monkeypatch.setitem(REMOTES, "toy", remote)
    (web / "toy.zip").write_bytes(images.packed({"inner/a.csv": CONTENT}))
    assert fetch("toy", tmp_path) == [tmp_path / "toy_folder" / "inner" / "a.csv"]
    for missing in ("toy_folder/inner/a.csv", "toy_folder/toy.zip"):
        with pytest.raises(InputError, match=r"robust-fairness fetch toy"):
            dataset_files(tmp_path / "empty").content(missing)


@pytest.mark.parametrize(
    ("remote", "served", "message"),
    [
        ("toy", {"toy.data": CONTENT + b"tampered"}, r"toy\.data: .*not the official one"),
        ("toy", {}, r"toy\.data: 404"),
        ("toy", None, r"toy\.data: ConnectionError"),
        ("packed", {"toy.zip": images.packed({"a.csv": A, "b.csv": CONTENT})},
         r"toy\.zip: the b\.csv received is not the official"),
        ("packed", {"toy.zip": images.packed({"a.csv": A})},
         r"toy\.zip: the archive does not contain b\.csv"),
        ("packed", {"toy.zip": CONTENT}, r"toy\.zip: the file received is not a valid zip file"),
    ],
)  # fmt: skip
def test_failed_download_is_one_line_and_keeps_nothing(
    request, address: str, web: Path, tmp_path: Path, remote: str, served, message: str
) -> None:
    request.getfixturevalue(remote)
    images.write(web, served or {})
    root = tmp_path / "raw"
    with one_line(message):
        fetch("toy", root, address=None if served is None else address)
    assert files_below(root) == []


def test_download_library_is_imported_only_to_fetch() -> None:
    code = f"import sys, {_fetch.__name__}; assert not {{'pooch', 'requests'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
