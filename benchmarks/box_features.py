"""Features of boxes made into a mapped array: pictures and megabytes a second, and peak memory.

The files are written first, in a temporary folder, with random boxes of the official width; the
rows that are converted are a random choice of them, as the pictures of the balanced questions are.
Files are written and converted by processes of their own, and the peak is that of the second one
alone, libraries included. Reads may be served from memory that the system keeps of what was just
written.

    python benchmarks/box_features.py --pictures 10000
"""

import argparse
import json
import multiprocessing
import platform
import resource
import shutil
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np

from robust_fairness.datasets.questions._boxes import convert

STORED = 100  # boxes of a picture in the official files
BLOCK = 64


def write(folder: Path, rows: int, files: int, width: int, chunk: int) -> None:
    """Write files in the official form; only boxes that are there take room on most disks."""
    rng = np.random.default_rng(0)
    values = np.maximum(rng.normal(0, 2, (BLOCK, STORED, width)), 0).astype(np.float32)
    info = {}
    for number in range(files):
        with h5py.File(folder / f"gqa_objects_{number}.h5", "w") as file:
            shape = (len(range(number, rows, files)), STORED, width)
            chunks = (min(chunk, shape[0]), 10, width) if chunk else None
            features = file.create_dataset("features", shape, dtype="f4", chunks=chunks)
            for start in range(0, shape[0], BLOCK):
                count = min(BLOCK, shape[0] - start)
                promised = rng.integers(10, STORED + 1, count)
                block = np.zeros((count, STORED, width), dtype=np.float32)
                for row, boxes in enumerate(promised):
                    block[row, :boxes] = values[rng.integers(BLOCK), :boxes]
                    picture = f"{number}_{start + row}"
                    info[picture] = {"file": number, "idx": start + row, "objectsNum": int(boxes)}
                features[start : start + count] = block
    (folder / "gqa_objects_info.json").write_text(json.dumps(info))


def measure(folder: Path, pictures: int, boxes: int, answers: multiprocessing.Queue) -> None:
    """Convert once, ask again, read bare; seconds of each, size and peak memory go back."""
    info = json.loads((folder / "gqa_objects_info.json").read_bytes())
    names = np.random.default_rng(1).permutation(sorted(info))[:pictures].tolist()
    del info
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, processor = time.perf_counter(), time.process_time()
    found = convert(folder, names, boxes, folder / "kept")
    first, processor = time.perf_counter() - start, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    assert convert(folder, names, boxes, folder / "kept") == found
    second = time.perf_counter() - start
    size = found.features.nbytes / 1e6
    answers.put((first, processor, second, size, before / 1024, peak / 1024))


def main() -> None:
    """Print rates and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=0.55, help="of the rows of the files")
    parser.add_argument("--boxes", type=int, default=36)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--files", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=0, help="rows stored together; 0: none are")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    options = parser.parse_args()
    rows = round(options.pictures / options.share)
    room = 4 * rows * STORED * options.width + 2 * options.pictures * options.boxes * options.width
    with TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        free = shutil.disk_usage(folder).free
        if free < room:
            parser.error(f"{room / 1e9:.0f} GB are needed, {free / 1e9:.0f} are free in {folder}")
        start = time.perf_counter()
        context = multiprocessing.get_context("spawn")
        form = (folder, rows, options.files, options.width, options.chunk)
        writer = context.Process(target=write, args=form)
        writer.start()
        writer.join()
        print(
            f"{platform.processor() or platform.machine()}, {options.pictures:,} of {rows:,} "
            f"pictures, {options.boxes} of {STORED} boxes x {options.width}; files written in "
            f"{time.perf_counter() - start:.0f} s"
        )
        answers = context.Queue()
        child = context.Process(
            target=measure, args=(folder, options.pictures, options.boxes, answers)
        )
        child.start()
        first, processor, second, size, before, peak = answers.get()
        child.join()
    print(
        f"converted in {first:.1f} s, {processor:.1f} s of the processor: "
        f"{options.pictures / first:,.0f} pictures/s, {size / first:,.0f} MB/s of {size:,.0f} MB; "
        f"memory {before:,.0f} MiB before, at most {peak:,.0f} MiB; asked again {second:.2f} s"
    )


if __name__ == "__main__":
    main()
