"""Files on which the HDF5 library crashes, or reads for ever: every command that reads files of regions says so in a
sentence. They were found by flipping bytes; a library that copes with one of them refuses it for another reason."""
import concurrent.futures
import re
import shutil

import pytest
from conftest import BUILD, ROOT
from need import need

CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "region_file"
CRASHING = ("crashes_hdf5_layout1.h5", "crashes_hdf5_layout2.h5", "crashes_hdf5_2.h5", "crashes_hdf5_texts.h5")
HANGING = "hangs_hdf5.h5"
GOOD = ROOT / "tests" / "data" / "regions" / "before.h5"
COMMANDS = {
    "inspect": ["inspect", "BAD"],
    "diff, the first": ["regions", "diff", "BAD", "GOOD"],
    "diff, the second": ["regions", "diff", "GOOD", "BAD"],
    "check": ["check", "GOOD", "BAD"],
    "gantt": ["plot", "--kind", "gantt", "BAD", "-o", "out.svg"],
    "durations": ["plot", "--kind", "durations", "BAD", "-o", "out.svg"],
    "export": ["export", "BAD", "-o", "out.trace.json"],
    "export as CSV": ["export", "BAD", "-f", "csv", "-o", "out.csv"],
}


@pytest.fixture(autouse=True)
def with_hdf5():
    need("hdf5", (BUILD / "assay-hdf5.so").exists(), "assay was built without HDF5")


def asked(assay, command, bad):
    return assay(*[{"BAD": bad, "GOOD": str(GOOD)}.get(word, word) for word in COMMANDS[command]])


def refused(got, bad):
    assert got.status == 2, got
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1 and bad in got.stderr, got.stderr
    assert "HDF5-DIAG" not in got.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", CRASHING)
def test_a_crash_of_the_library_is_one_sentence(assay, tmp_path, command, name):
    shutil.copy(CORPUS / name, tmp_path / "bad.h5")
    got = asked(assay, command, "bad.h5")
    refused(got, "bad.h5")
    assert not (tmp_path / "out.svg").exists() and not (tmp_path / "out.trace.json").exists()


def test_a_library_that_reads_for_ever_is_ended(assay, tmp_path):
    shutil.copy(CORPUS / HANGING, tmp_path / "bad.h5")
    with concurrent.futures.ThreadPoolExecutor(2) as several:
        for got in several.map(lambda command: asked(assay, command, "bad.h5"), COMMANDS):
            refused(got, "bad.h5")
            said = re.search(r"bad\.h5: (.*)\n", got.stderr).group(1)
            assert re.fullmatch(r"damaged: the HDF5 library took longer than \d+ s of CPU time reading it"
                                r"|damaged: the HDF5 library crashed reading it|HDF5 cannot .*", said), said
