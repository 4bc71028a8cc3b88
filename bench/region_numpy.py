"""The statistics of a columnar file of regions by h5py and numpy: prints them as JSON by name."""
import json
import sys

import h5py
import numpy as np


def rows(path):
    with h5py.File(path) as file:
        names = file["region_table/names"].asstr()[:]
        index = file["rank_region_index"]
        parts = np.stack([index[key][:].astype("i8") for key in ("region_ids", "event_offsets", "event_counts")], 1)
        durations = file["events/end_times"][:]
        durations -= file["events/start_times"][:]
    for region, name in enumerate(names):
        slices = [durations[first:first + count] for _, first, count in parts[parts[:, 0] == region] if count]
        if not slices:
            continue
        pooled = slices[0] if len(slices) == 1 else np.concatenate(slices)
        p50, p95, p99 = np.percentile(pooled, (50, 95, 99))
        yield name, {"calls": len(pooled), "total": int(pooled.sum()), "avg": pooled.mean(), "min": int(pooled.min()),
                     "max": int(pooled.max()), "std": pooled.std(), "p50": p50, "p95": p95, "p99": p99}


print(json.dumps(dict(rows(sys.argv[1]))))
