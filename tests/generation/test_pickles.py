"""Hostile pickles: each does harm where Python reads it, and none does here."""

import builtins
import functools
import io
import operator
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from robust_fairness.core.errors import InputError
from robust_fairness.generation import _pickles
from robust_fairness.generation.conversion import convert


class Call:
    """Pickles as a call."""

    def __init__(self, function, *arguments, state=None) -> None:
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


def harms(marker: Path) -> dict[str, object]:
    """Objects whose reading leaves a file behind."""
    shell, python = f"touch '{marker}'", f"open({str(marker)!r}, 'w').close()"
    legacy = io.BytesIO()
    torch.save(Call(os.system, shell), legacy, _use_new_zipfile_serialization=False)
    zipped = io.BytesIO()
    torch.save(Call(os.system, shell), zipped)
    nested = functools.partial(Call, torch.storage._load_from_bytes)
    return {
        "system": Call(os.system, shell),
        "eval": Call(builtins.eval, python),
        "exec": Call(builtins.exec, python),
        "partial": Call(functools.partial(os.system, shell)),
        "within": {"ema": [1, (2, OrderedDict(a=Call(os.system, shell)))]},
        "map": Call(list, Call(map, eval, [python])),
        "method": Call(operator.methodcaller("__call__", shell), os.system),
        "storage, legacy": nested(legacy.getvalue()),
        "storage, zipped": nested(zipped.getvalue()),
        "state": Call(dict, state=Call(os.system, shell)),
    }


NAMES = sorted(harms(Path("unused")))


def tensor_around(harm: object) -> object:
    """A network whose tensor has a harmful storage."""
    rebuilt = Call(torch._utils._rebuild_tensor_v2, harm, 0, (1,), (1,), False, OrderedDict())
    return {"ema": rebuilt}


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize("name", NAMES)
def test_harm_is_done_by_python_and_not_here(tmp_path, name, protocol) -> None:
    marker, folder = tmp_path / "marker", tmp_path / "folder"
    folder.mkdir()
    content = pickle.dumps(harms(marker)[name], protocol)
    with pytest.MonkeyPatch.context() as patched:
        # as it once was: storages within pickles are read without restraint
        patched.setattr(torch, "load", functools.partial(torch.load, weights_only=False))
        try:
            # of our own making: shows that the same bytes do harm where Python reads them
            pickle.loads(content)
        except Exception as error:
            assert marker.exists(), error
    assert marker.exists()
    marker.unlink()
    for suffix in ("pkl", "pt", "safetensors"):
        path = folder / f"network.{suffix}"
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"network.{suffix}") as error:
            convert(path, folder / "out.safetensors")
        assert "\n" not in str(error.value)
        path.unlink()
    assert not marker.exists()
    assert not list(folder.iterdir())


@pytest.mark.parametrize("zipped", [True, False])
def test_files_of_pytorch_with_harm_are_refused_by_name(tmp_path, zipped) -> None:
    marker, path = tmp_path / "marker", tmp_path / "network.pt"
    content = {"weight": torch.zeros(2), "harm": Call(os.system, f"touch '{marker}'")}
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    # of our own making: shows that the same file does harm where PyTorch reads it unrestrained
    torch.load(path, weights_only=False)
    assert marker.exists()
    marker.unlink()
    with pytest.raises(InputError, match=r"network.pt: names '(os|posix).system'.*executed"):
        convert(path, tmp_path / "out.safetensors")
    assert not marker.exists()
    assert [found.name for found in tmp_path.iterdir()] == ["network.pt"]


@pytest.mark.parametrize("zipped", [True, False])
def test_storage_with_harm_among_allowed_names_is_not_executed(tmp_path, zipped) -> None:
    marker, path = tmp_path / "marker", tmp_path / "network.pkl"
    inner = io.BytesIO()
    torch.save(Call(os.system, f"touch '{marker}'"), inner, _use_new_zipfile_serialization=zipped)
    harm = Call(torch.storage._load_from_bytes, inner.getvalue())
    path.write_bytes(pickle.dumps(tensor_around(harm)))
    value = _pickles.read(path)["ema"]
    with pytest.raises(InputError, match="corrupted or missing tensor"):
        _pickles._tensor_of(value, path)
    assert not marker.exists()


def test_tensors_come_as_they_were(tmp_path) -> None:
    path = tmp_path / "network.pkl"
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "plain": base,
        "view": base[1:3, ::2].T,
        "parameter": torch.nn.Parameter(base.double()),
        "half": base.half(),
        "whole": torch.arange(5),
        "scalar": torch.tensor(3.5),
    }
    path.write_bytes(pickle.dumps(tensors))
    for name, value in _pickles.read(path).items():
        found = _pickles._tensor_of(value, path)
        assert found.dtype == tensors[name].dtype
        assert torch.equal(found, tensors[name])


def test_tensors_that_claim_more_than_is_stored_are_refused(tmp_path) -> None:
    path, storage = tmp_path / "network.pkl", torch.zeros(4).untyped_storage()
    typed = torch.storage.TypedStorage(wrap_storage=storage, dtype=torch.float32, _internal=True)
    for size, stride, offset in (((10**6,), (0,), 0), ((8,), (1,), 0), ((2,), (1,), 3)):
        claim = Call(
            torch._utils._rebuild_tensor_v2, typed, offset, size, stride, False, OrderedDict()
        )
        path.write_bytes(pickle.dumps(claim))
        with pytest.raises(InputError, match="corrupted or missing tensor|4 are stored"):
            _pickles._tensor_of(_pickles.read(path), path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x80\x04N", "truncated or corrupted"),  # no end
        (b"\x80\x04.", "truncated or corrupted"),  # nothing on the stack
        (b"\x80\x04NN.", "truncated or corrupted"),  # two values
        (b"\x80\x04h\x05.", "truncated or corrupted"),  # memory that was never written
        (b"\x80\x04(.", "truncated or corrupted"),  # a mark
        (b"\x80\x04]}a(u.", "truncated or corrupted"),
        (b"\x80\x04NNb.", "truncated or corrupted"),  # a state for None
        (b"\x80\x04NN\x93.", "truncated or corrupted"),  # a name of None
        (b"\x80\x04]]K\x01s.", "truncated or corrupted"),  # an item of a list
        (b"\x80\x04}]K\x01s.", "truncated or corrupted"),  # a list as a key
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\x00\x00abc.", "truncated or corrupted"),
        (b"\x80\x04\x8b\xff\xff\xff\x7f1.", "truncated or corrupted"),  # a number of 2 GiB
        (b"\x80\x02cos\nsystem\n.", "names 'os.system'"),
        (b"\x80\x02ccollections\nOrderedDict\n}b.", "truncated or corrupted"),  # state of a name
        (b"I1\n.", "is no pickle"),
        (b"(ios\nsystem\n.", "is no pickle"),
        (b"\x80\x02I1\n.", "instruction INT"),
        (b"\x80\x02(ios\nsystem\n.", "instruction INST"),
        (b"\x80\x02\x82\x01.", "instruction EXT1"),
        (b"\x80\x02K\x01Q.", "instruction BINPERSID"),
        (b"\x80\x02K\x012.", "instruction DUP"),
    ],
)
def test_broken_and_odd_pickles_are_one_line(tmp_path, content, words) -> None:
    path = tmp_path / "network.pkl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        convert(path, tmp_path / "out.safetensors")
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_modules_that_hold_themselves_or_each_other_end(tmp_path) -> None:
    path = tmp_path / "network.pkl"
    path.write_bytes(b"N.")

    def module(**parts) -> _pickles.Made:
        state = {"_modules": parts, "_parameters": {}, "_buffers": {}}
        return _pickles.Made(_pickles.MODULE_DICT, (), state)

    circle = module()
    circle.state["_modules"]["again"] = circle
    doubled = module()
    for _ in range(60):
        doubled = module(a=doubled, b=doubled)
    for root in (circle, doubled):
        with pytest.raises(InputError, match="is there twice"):
            _pickles.weights_of(root, path)


def test_compressed_and_lying_archives_are_refused_before_they_are_read(tmp_path) -> None:
    path = tmp_path / "network.pt"
    torch.save({"weight": torch.zeros(1000)}, path)
    again = tmp_path / "packed.pt"
    with (
        zipfile.ZipFile(path) as whole,
        zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in whole.namelist():
            packed.writestr(name, whole.read(name))
    with pytest.raises(InputError, match="packed.pt: has compressed members"):
        convert(again, tmp_path / "out.safetensors")
