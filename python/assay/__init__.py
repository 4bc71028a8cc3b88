"""Times, memory and regions of a Python program, by libassay.

    assay.measure_time("sorted(values)", context={"values": values})
    with assay.region("solve"): ...
    spy = assay.start_spying_on(); ...; spy.stop()["cpu"].max_peak

docs/python.md has it all, with examples.
"""
from ._library import Error, version as _version
from .measure import measure_time
from .regions import (directory, finalize, flush, get_mode, init, mark, region, set_metadata, set_mode, set_rank)
from .spy import start_spying_on

__version__ = _version().decode()
__all__ = ["Error", "directory", "finalize", "flush", "get_mode", "init", "mark", "measure_time", "region",
           "set_metadata", "set_mode", "set_rank", "start_spying_on"]
