"""Download raw data files from their official addresses."""

import hashlib
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.files import atomic_path, sha256_of
from robust_fairness.core.raw_files import Files, default_root, member_of


@dataclass(frozen=True)
class Remote:
    """The official files of one dataset.

    Attributes:
        address: web folder that holds the files.
        folder: folder of the files below the data root.
        sha256: checksum of every file as it is served, by its name, or its path in the archive.
        archive: name of the zip file in which all files are served, if any.
        uncompressed: checksum of the content of every gzip file.
    """

    address: str
    folder: str
    sha256: dict[str, str]
    archive: str = ""
    uncompressed: dict[str, str] = field(default_factory=dict)


_WRITTEN = yaml.safe_load(Path(__file__).with_name("remotes.yml").read_text(encoding="utf-8"))
REMOTES = {name: Remote(**fields) for name, fields in _WRITTEN.items()}
# Checksums of files that are not downloaded, by the names of ``Files.sources``.
_OTHERS = yaml.safe_load(Path(__file__).with_name("checksums.yml").read_text(encoding="utf-8"))


DATA_PACKAGE = "robust_fairness_data"  # a distribution of its own, which the extra train installs


def dataset_files(root: Path | None = None) -> Files:
    """Raw files of datasets: those below ``root`` (``default_root`` if None), else bundled ones."""
    spec = find_spec(DATA_PACKAGE)
    bundled = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    root = default_root() if root is None else root
    return Files(root, bundled=tuple(bundled), download=command)


def command(path: str) -> str | None:
    """The command that downloads a raw file or folder; None if there is none.

    ``path`` is the path below the data root, for example ``adult/adult.data``.
    """
    for name, remote in REMOTES.items():
        names = [*remote.sha256, remote.archive]
        served = {f"{remote.folder}/{file.removesuffix('.gz')}" for file in names}
        if any(file == path or file.startswith(f"{path}/") for file in served):
            return f"robust-fairness fetch {name}"
    return None


def require_official(sources: Mapping[str, str], otherwise: str) -> None:
    """Require the official files; ``sources`` as of ``modified``.

    Args:
        sources: checksums of the content that was read.
        otherwise: how to use other files, for the message.

    Raises:
        InputError: a file differs from the official one.
    """
    differing = list(modified(sources))
    if differing:
        fetched = command(differing[0])
        again = f"download it again with `{fetched}`" if fetched else "replace it"
        raise InputError(
            f"{', '.join(differing)} differs from the official file; {again}, or {otherwise}"
        )


def official() -> dict[str, str]:
    """SHA-256 of all official files that are known, by the names of ``Files.sources``."""
    return dict(_OTHERS) | {
        f"{remote.folder}/{file.removesuffix('.gz')}": sha256
        for remote in REMOTES.values()
        for file, sha256 in (remote.sha256 | remote.uncompressed).items()
    }


def modified(sources: Mapping[str, str]) -> Iterator[str]:
    """Names of what was read that is not official, although its checksum is known.

    ``sources`` as ``Files.sources``.
    """
    return (name for name, sha256 in official().items() if sources.get(name, sha256) != sha256)


def fetch(
    name: str, root: Path, progress: bool = True, *, address: str | None = None
) -> list[Path]:
    """Download the raw files of a dataset that are missing or damaged; all files, in their order.

    A file appears under its name only when it is complete and its checksum right.

    Args:
        name: one of ``REMOTES``.
        root: the data root, see ``raw_files.default_root``.
        progress: show a progress bar where stderr is a terminal.
        address: web folder of a mirror.
    """
    if name not in REMOTES:
        raise unknown_name("dataset to fetch", name, REMOTES)
    remote = REMOTES[name]
    base = (address or remote.address).rstrip("/")
    if remote.archive:
        return _download_archive(f"{base}/{remote.archive}", root / remote.folder, remote, progress)
    return [
        _download(f"{base}/{file}", root / remote.folder / file, sha256, progress)
        for file, sha256 in remote.sha256.items()
    ]


def _download_archive(url: str, folder: Path, remote: Remote, progress: bool) -> list[Path]:
    """Download a zip file and unpack its files, unless all exist.

    Checksums are those of the files: a zip file that was packed anew is as good.
    """
    targets = {file: folder / file for file in remote.sha256}
    if all(
        target.is_file() and sha256_of(target) == remote.sha256[file]
        for file, target in targets.items()
    ):
        return list(targets.values())
    with TemporaryDirectory() as scratch:
        archive = _download(url, Path(scratch, remote.archive), None, progress)
        contents = {file: _unpacked(archive, file, url, remote) for file in targets}
    try:
        for file, target in targets.items():
            with atomic_path(target) as partial:
                partial.write_bytes(contents[file])
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    return list(targets.values())


def _unpacked(archive: Path, file: str, url: str, remote: Remote) -> bytes:
    try:
        with zipfile.ZipFile(archive) as members:
            content = member_of(members, file, url)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(
            f"cannot fetch {url}: the file received is not a valid zip file"
        ) from error
    except KeyError as error:
        raise InputError(f"cannot fetch {url}: the archive does not contain {file}") from error
    if hashlib.sha256(content).hexdigest() != remote.sha256[file]:
        raise InputError(
            f"cannot fetch {url}: the {file} received is not the official one "
            f"(expected SHA-256 {remote.sha256[file]}); nothing was kept"
        )
    return content


def _download(url: str, target: Path, sha256: str | None, progress: bool) -> Path:
    """Download one file unless it exists; ``sha256`` None accepts any."""
    import pooch
    import requests

    bar = progress and sys.stderr.isatty()
    try:
        pooch.retrieve(url, sha256, fname=target.name, path=target.parent, progressbar=bar)
    except requests.HTTPError as error:
        if error.response is not None:  # left open by pooch
            error.response.close()
        reason = str(error).partition(" for url")[0]
        raise InputError(f"cannot fetch {url}: {reason}") from error
    except requests.RequestException as error:
        raise InputError(f"cannot fetch {url}: {type(error).__name__}") from error
    except ValueError as error:
        raise InputError(
            f"cannot fetch {url}: the file received is not the official one "
            f"(expected SHA-256 {sha256}); nothing was kept"
        ) from error
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from error
    return target
