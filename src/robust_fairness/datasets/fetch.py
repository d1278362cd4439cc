"""Download raw data files from their official addresses."""

import hashlib
import sys
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from robust_fairness.core.errors import InputError, unknown_name

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class Remote:
    """The official files of one dataset.

    Attributes:
        address: web folder that holds the files.
        folder: folder of the files below the data root.
        sha256: checksum of every file as it is served, by file name; of a file in a zip file, as
            it is there, by its path there.
        archive: name of the zip file in which all files are served; empty where each is by itself.
    """

    address: str
    folder: str
    sha256: dict[str, str]
    archive: str = ""


REMOTES = {
    # the states whose checksum we could note, from one copy of the archives
    "acs": Remote(
        address="https://www2.census.gov/programs-surveys/acs/data/pums/2018/1-Year",
        folder="acs_2018",
        sha256={
            "csv_phi.zip": ("574166f4fc904c90e9f38f8a00238fa52d613bce4494d570c18ec60174324088"),
            "csv_pme.zip": ("2a718c75dc732d2b4ca823bd0aee12c940b087494ef3b7a0caef0534165b7cc7"),
            "csv_pmt.zip": ("f20f67ad53ea1d9d17c9b1c7f1a3fe70ddbb84b96044b7c98f445e868989437e"),
            "csv_pne.zip": ("f1f5a56c7bec8de9ef2b1d98fbc9ba6afd3f7ed936c959d6d3392c899fe2db7d"),
            "csv_pnm.zip": ("b4f0a7190a5a4a1e6102d1e3fef13d723cbd93bea46e2420ada5c70b593c9629"),
            "csv_pri.zip": ("c5a7155543b1e4296420955714e3160563c4bbe9682299c2761434e4007bd331"),
            "csv_psd.zip": ("14a45f25ae73f68f3ab01307b111a3650cd997c0a93de174fe488de4b56c30a9"),
            "csv_pwv.zip": ("f1a39b7be0b01aef6033ca6f3f32d954d3df07c8de12dd35da8d55be65c7cef8"),
        },
    ),
    # the binary version; the page of the dataset gives its MD5, c32a1d4ab5d03f1284b67883e8d87530
    "cifar10": Remote(
        address="https://www.cs.toronto.edu/~kriz",
        folder="cifar10",
        sha256={
            "cifar-10-binary.tar.gz": (
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
            ),
        },
    ),
    "adult": Remote(
        address=f"{UCI}/adult",
        folder="adult",
        sha256={
            "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
            "adult.names": "c248284c0b5de30c9e1958d6cdd168a34a654758b620e68f46aefa83fc0a576a",
        },
    ),
    "communities": Remote(
        address=f"{UCI}/communities",
        folder="communities_crime",
        sha256={
            "communities.data": "09e0b5c07eae24c1efab19b2edee05e160e7f5743b6f31e31eec3d73624da2ea",
        },
    ),
    # the authors' repository, at a fixed commit
    "compas": Remote(
        address="https://raw.githubusercontent.com/propublica/compas-analysis/"
        "bafff5da3f2e45eca6c2d5055faad269defd135a",
        folder="compas",
        sha256={
            "compas-scores-two-years.csv": (
                "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
            ),
        },
    ),
    # the authors' repository, at a fixed commit; of its files those whose checksum we could note
    "gqa_ood": Remote(
        address="https://raw.githubusercontent.com/gqa-ood/GQA-OOD/"
        "3853e118dc096e0551cb5792da135967cb7a312b/data",
        folder="gqa_ood",
        sha256={
            "ood_testdev_head.json": (
                "0ecf2818e374aca2d34743a03416b926ace0a7f18ab4fcca6cfb356f44e7a665"
            ),
            "ood_testdev_tail.json": (
                "4730b5daccc02058e652c7a129a42341a929aaeab048c16e855828d98a1e3674"
            ),
        },
    ),
    "drugs": Remote(
        address=f"{UCI}/00373",
        folder="drug_consumption",
        sha256={
            "drug_consumption.data": (
                "37333e8db8a5529906b3729e5131d41313b5fa3f50dc3afeb4add892108be213"
            ),
        },
    ),
    "german_statlog": Remote(
        address=f"{UCI}/statlog/german",
        folder="german_credit",
        sha256={
            "german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
        },
    ),
    "readmission": Remote(
        address=f"{UCI}/00296",
        folder="diabetes_130",
        archive="dataset_diabetes.zip",
        sha256={
            "dataset_diabetes/diabetic_data.csv": (
                "0689e7ec031237dc63031b938805c48377748761a3b26acab621567afa24df97"
            ),
        },
    ),
    "students": Remote(
        address=f"{UCI}/00320",
        folder="student",
        archive="student.zip",
        sha256={
            "student-por.csv": "a7594a11d7771c0efe1a740824e0e833da9c4cad07c39a9766a874575563fb3f",
            "student-mat.csv": "e47f9ee225e1ee6e69b7564e6dac7123e80b8486677fe111f351964cef5dec80",
        },
    ),
    # a mirror that torchvision uses as well; the authors' own page is often closed
    "mnist": Remote(
        address="https://ossci-datasets.s3.amazonaws.com/mnist",
        folder="mnist",
        sha256={
            "train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
            ),
            "train-labels-idx1-ubyte.gz": (
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
            ),
            "t10k-images-idx3-ubyte.gz": (
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
            ),
            "t10k-labels-idx1-ubyte.gz": (
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
            ),
        },
    ),
}


def sources() -> list[str]:
    """Names of the datasets that can be fetched, sorted."""
    return sorted(REMOTES)


def command(file: str) -> str | None:
    """The command that brings a raw file, None where no command does.

    Args:
        file: path below the data root, for example ``adult/adult.data``.
    """
    for name, remote in REMOTES.items():
        served = [*remote.sha256, remote.archive]
        names = {f"{remote.folder}/{basename.removesuffix('.gz')}" for basename in served}
        if file in names:
            return f"robust-fairness fetch {name}"
    return None


def fetch(
    name: str, root: Path, progress: bool = True, *, address: str | None = None
) -> list[Path]:
    """Download the raw files of a dataset; files that are there and sound are left alone.

    A file appears under its name only when it is complete and its checksum right.

    Args:
        name: one of ``sources()``.
        root: the data root, see ``_files.default_root``.
        progress: show a progress bar on stderr where that is a terminal; elsewhere a line a file.
        address: web folder to take the files from in place of the official one (a mirror).
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
    """Download a zip file and unpack the files named, unless all are there already.

    The checksums are those of the files: a zip file that was packed anew is as good.
    """
    targets = {file: folder / file for file in remote.sha256}
    if all(_is_sound(targets[file], sha256) for file, sha256 in remote.sha256.items()):
        return list(targets.values())
    with TemporaryDirectory() as scratch:
        archive = _download(url, Path(scratch, remote.archive), None, progress)
        contents = {file: _unpacked(archive, file, url, remote) for file in targets}
    try:
        for file, target in targets.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f"{target.name}.part")
            partial.write_bytes(contents[file])
            partial.replace(target)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error
    return list(targets.values())


def _is_sound(target: Path, sha256: str) -> bool:
    """Whether a file is there and the official one."""
    return target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256


def _unpacked(archive: Path, file: str, url: str, remote: Remote) -> bytes:
    """Content of a file in a zip file, checked."""
    try:
        with zipfile.ZipFile(archive) as members:
            content = members.read(file)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"cannot fetch {url}: the file received is no sound zip file") from error
    except KeyError as error:
        raise InputError(f"cannot fetch {url}: it holds no file {file}") from error
    if hashlib.sha256(content).hexdigest() != remote.sha256[file]:
        raise InputError(
            f"cannot fetch {url}: the {file} received is not the official one "
            f"(expected SHA-256 {remote.sha256[file]}); nothing was kept"
        )
    return content


def _download(url: str, target: Path, sha256: str | None, progress: bool) -> Path:
    """Download one file unless it is there already; without a checksum, whatever comes."""
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
