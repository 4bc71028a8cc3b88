"""Files of regions as the Python package writes them (layout 1), made here so that the truth is known."""
import h5py
import numpy as np


def write(path, regions, timestamp=None):
    """regions: {name: [duration, ...]} of rank 0, or {rank: {name: [duration, ...]}}; calls follow each other."""
    ranks = regions if all(isinstance(key, int) for key in regions) else {0: regions}
    with h5py.File(path, "w") as file:
        file.create_group("metadata").attrs["mpi_size"] = len(ranks)
        if timestamp:
            file["metadata"].attrs["timestamp"] = timestamp
        for rank, named in ranks.items():
            group = file.create_group(f"rank{rank}/regions")
            for name, durations in named.items():
                ends = 1_000_000 + np.cumsum(np.asarray(durations, dtype=np.int64))
                one = group.create_group(name)
                one["start_times"] = ends - np.asarray(durations, dtype=np.int64)
                one["end_times"] = ends
    return path


def read(path):
    """{name: {rank: durations}}"""
    found = {}
    with h5py.File(path) as file:
        for rank in (key for key in file if key.startswith("rank")):
            def visit(name, thing, rank=int(rank[4:])):
                if isinstance(thing, h5py.Dataset) and name.endswith("/start_times"):
                    region = name[:-len("/start_times")]
                    ends = file[f"rank{rank}/regions/{region}/end_times"][:]
                    found.setdefault(region, {})[rank] = ends - thing[:]
            file[rank]["regions"].visititems(visit)
    return found
