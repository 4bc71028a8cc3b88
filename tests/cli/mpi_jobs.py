"""Parallel jobs for tests, and what the files that come of them hold, read with h5py."""
import os
import shutil
import signal
import subprocess

import conftest
import pytest

from need import need

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")


def library():
    """build/libassay-mpi.so.0: the name that its users look for."""
    need("mpi", shutil.which("mpirun"), "no mpirun")
    path = conftest.BUILD / "libassay-mpi.so.0"
    need("mpi", path.exists(), "libassay-mpi was not built: no MPI when the build was set up")
    return path


def mpirun(ranks, *argv, cwd, env=None, timeout=300):
    """Runs a job to its end; what all ranks printed is in one text each. The timeout only guards against a hang."""
    library()
    ours = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "ASSAY_PROGRAM": str(conftest.BUILD / "assay"),
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", **(env or {})}
    process = subprocess.Popen(
        ["mpirun", "--oversubscribe", "-n", str(ranks), *map(str, argv)], cwd=cwd, env=conftest.environment(ours),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        out, err = process.communicate()
        pytest.fail(f"it hangs: {out.decode()[-2000:]}\n{err.decode()[-4000:]}")
    return conftest.Result([str(arg) for arg in argv], cwd, process.returncode, out, err)


class Regions:
    """A file of regions of layout 2 or 3: calls by (rank, name), each a list of (start, end) in ns."""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.metadata = dict(file["metadata"].attrs)
            names = [name.decode() if isinstance(name, bytes) else name for name in file["region_table/names"][()]]
            index, events = file["rank_region_index"], file["events"]
            if "start_times" in events:
                starts, ends = events["start_times"][()], events["end_times"][()]
            else:
                starts, ends = None, events["durations"][()]
                deltas = events["start_deltas"][()]
            self.calls = {}
            for i in range(len(index["ranks"])):
                first, count = int(index["event_offsets"][i]), int(index["event_counts"][i])
                here = slice(first, first + count)
                begun = deltas[here].cumsum() if starts is None else starts[here]
                ended = begun + ends[here] if starts is None else ends[here]
                key = (int(index["ranks"][i]), names[int(index["region_ids"][i])])
                self.calls[key] = list(zip(begun.tolist(), ended.tolist()))

    def ranks(self, name):
        return sorted(rank for rank, region in self.calls if region == name)

    def count(self, name):
        return {rank: len(self.calls[rank, name]) for rank in self.ranks(name)}

    def starts(self, name):
        return [start for (_, region), calls in self.calls.items() if region == name for start, _ in calls]

    def ends(self, name):
        return [end for (_, region), calls in self.calls.items() if region == name for _, end in calls]
