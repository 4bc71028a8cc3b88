"""libassay-mpi: ranks, clocks, one file at MPI_Finalize, MPI calls as regions.

Jobs run on this machine; others are made of folders of their own, so that recordings are streamed, and of namespaces
with another boot and another clock."""
import json
import os
import shutil
import subprocess

import pytest

import conftest
from mpi_jobs import Regions, library, mpirun
from need import need

STEPS = 10
OWN_FOLDER = 'mkdir -p rec-$OMPI_COMM_WORLD_RANK; export ASSAY_DIR=$PWD/rec-$OMPI_COMM_WORLD_RANK; exec "$@"'


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "rec"
    path.mkdir()
    return path


def target(targets, name="mpi_job"):
    library()
    return targets(name)


def has_all_steps(regions, ranks):
    return regions.count("step") == dict.fromkeys(range(ranks), STEPS)


@pytest.mark.parametrize("ranks", [4, 16])
def test_all_ranks_are_in_one_file_after_finalize(targets, folder, tmp_path, ranks):
    got = mpirun(ranks, target(targets), cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == 0, got
    assert got.stderr == ""
    assert sorted(got.stdout.splitlines()) == sorted(f"rank {rank} of {ranks} done" for rank in range(ranks))
    regions = Regions(folder / "regions.h5")
    assert has_all_steps(regions, ranks)
    assert regions.ranks("before") == list(range(ranks))
    assert str(regions.metadata["mpi_size"]) == str(ranks)
    assert "MPI" in str(regions.metadata["mpi_library"])


def test_ranks_share_one_time(targets, folder, tmp_path):
    got = mpirun(4, target(targets), cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == 0, got
    regions = Regions(folder / "regions.h5")
    assert max(regions.ends("before")) <= min(regions.starts("after"))
    assert max(regions.ends("after")) - min(regions.starts("before")) < 3600e9


def test_a_program_that_does_not_link_it_is_preloaded(targets, folder, tmp_path):
    env = {"ASSAY_DIR": str(folder), "PRELOADED": str(library())}
    got = mpirun(4, "sh", "-c", 'LD_PRELOAD=$PRELOADED exec "$@"', "sh", target(targets, "mpi_unlinked"), cwd=tmp_path,
                 env=env)
    assert got.status == 0, got
    assert has_all_steps(Regions(folder / "regions.h5"), 4)


def test_folders_that_rank_0_does_not_see_are_streamed_to_it(targets, tmp_path):
    got = mpirun(4, "sh", "-c", OWN_FOLDER, "sh", target(targets), cwd=tmp_path)
    assert got.status == 0, got
    assert has_all_steps(Regions(tmp_path / "rec-0" / "regions.h5"), 4)
    assert not (tmp_path / "rec-1" / "regions.h5").exists()
    here = {path.name: path.read_bytes() for path in (tmp_path / "rec-0").glob("regions-*")}
    for rank in range(1, 4):
        there = {path.name: path.read_bytes() for path in (tmp_path / f"rec-{rank}").glob("regions-*")}
        assert there and there.items() <= here.items()
    assert not list((tmp_path / "rec-0").glob(".assay*"))


def test_a_folder_of_several_ranks_is_streamed_once_and_whole(targets, tmp_path):
    halves = OWN_FOLDER.replace("$OMPI_COMM_WORLD_RANK", "$((OMPI_COMM_WORLD_RANK / 2))")
    got = mpirun(4, "sh", "-c", halves, "sh", target(targets), cwd=tmp_path)
    assert got.status == 0, got
    assert has_all_steps(Regions(tmp_path / "rec-0" / "regions.h5"), 4)


def test_what_is_there_already_is_not_written_over(targets, tmp_path):
    (tmp_path / "rec-0").mkdir()
    kept = tmp_path / "rec-0" / "regions.txt"
    kept.write_text("mine")
    got = mpirun(2, "sh", "-c", OWN_FOLDER, "sh", target(targets), cwd=tmp_path)
    assert got.status == 0, got
    assert kept.read_text() == "mine"


def test_a_limit_on_file_sizes_stops_the_streaming_and_nothing_else(targets, tmp_path):
    got = mpirun(2, "sh", "-c", OWN_FOLDER, "sh", target(targets), "small", cwd=tmp_path)
    assert got.status == 0, got
    assert "rank 0 of 2 done" in got.stdout
    streamed = {path.name for path in (tmp_path / "rec-1").glob("regions-*")}
    assert streamed and not streamed & {path.name for path in (tmp_path / "rec-0").iterdir()}


def unshared(fake_boot, shift_s):
    """A command that runs another one, on ranks 2 and 3, as on a machine with another boot and another clock."""
    return ["sh", "-c",
            f'[ $OMPI_COMM_WORLD_RANK -lt 2 ] && exec "$@"; exec unshare -m -T --monotonic {shift_s} sh -c '
            f'\'mount --bind {fake_boot} /proc/sys/kernel/random/boot_id && exec "$@"\' sh "$@"', "sh"]


def test_clocks_of_other_machines_are_brought_to_that_of_rank_0(targets, folder, tmp_path):
    boot = tmp_path / "boot"
    boot.write_text("01234567-89ab-cdef-0123-456789abcdef\n")
    here = subprocess.run(["unshare", "-m", "-T", "--monotonic", "7", "mount", "--bind", boot,
                           "/proc/sys/kernel/random/boot_id"], capture_output=True, text=True)
    need("time-namespace", here.returncode == 0, f"unshare: {here.stderr.strip()}")
    got = mpirun(4, *unshared(boot, 5000), target(targets), cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == 0, got
    regions = Regions(folder / "regions.h5")
    assert has_all_steps(regions, 4)
    # Without the offset it would be 5000 s. A round trip of a busy machine is milliseconds at worst.
    assert max(regions.ends("before")) <= min(regions.starts("after")) + 50e6
    assert max(regions.ends("after")) - min(regions.starts("before")) < 600e9


@pytest.mark.parametrize("how", ["abort", "kill"])
def test_what_a_dying_job_had_recorded_is_kept(assay, targets, folder, tmp_path, how):
    got = mpirun(4, target(targets), how, cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status != 0
    assert not (folder / "regions.h5").exists()
    merged = assay("merge", folder, "-o", "out.h5")
    assert merged.status == 0, merged
    assert Regions(tmp_path / "out.h5").count("step")[1] == STEPS


def test_abort_passes_its_code_on(targets, folder, tmp_path):
    got = mpirun(4, target(targets), "abort", cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == 3, got


def test_a_rank_that_never_finalizes_ends_as_without_the_library(targets, folder, tmp_path):
    program = target(targets, "mpi_unlinked")
    plain = mpirun(2, program, "leave", cwd=tmp_path)
    got = mpirun(2, target(targets), "leave", cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == plain.status != 0


def test_threads_that_talk_at_once(targets, folder, tmp_path):
    env = {"ASSAY_DIR": str(folder), "ASSAY_MPI": "calls"}
    got = mpirun(4, target(targets), "threads", cwd=tmp_path, env=env)
    if got.status == 7:
        need("mpi-threads", False, "this MPI has no MPI_THREAD_MULTIPLE")
    assert got.status == 0, got
    regions = Regions(folder / "regions.h5")
    assert regions.count("talk") == dict.fromkeys(range(4), 4 * STEPS)
    assert regions.count("MPI_Sendrecv") == dict.fromkeys(range(4), 5 * STEPS)


def test_one_rank_without_a_folder_is_only_missing(targets, tmp_path):
    script = OWN_FOLDER.replace("exec", "[ $OMPI_COMM_WORLD_RANK = 2 ] && unset ASSAY_DIR; exec")
    got = mpirun(4, "sh", "-c", script, "sh", target(targets), cwd=tmp_path)
    assert got.status == 0, got
    assert Regions(tmp_path / "rec-0" / "regions.h5").ranks("step") == [0, 1, 3]


def test_without_a_folder_at_rank_0_nothing_is_merged(targets, tmp_path):
    script = OWN_FOLDER.replace("exec", "[ $OMPI_COMM_WORLD_RANK = 0 ] && unset ASSAY_DIR; exec")
    got = mpirun(4, "sh", "-c", script, "sh", target(targets), cwd=tmp_path)
    assert got.status == 0, got
    assert not list(tmp_path.rglob("*.h5"))
    assert len(list((tmp_path / "rec-3").glob("*.table"))) == 1


def test_without_any_folder_the_program_runs_as_ever(targets, tmp_path):
    got = mpirun(4, target(targets), cwd=tmp_path)
    assert (got.status, got.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_recording_that_begins_after_init_is_merged_too(targets, folder, tmp_path):
    got = mpirun(2, target(targets), "late", folder, cwd=tmp_path)
    assert got.status == 0, got
    assert has_all_steps(Regions(folder / "regions.h5"), 2)


def test_a_program_that_names_its_ranks_is_believed(targets, folder, tmp_path):
    got = mpirun(2, target(targets), "named", cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == 0, got
    assert Regions(folder / "regions.h5").ranks("step") == [100, 101]


def test_merge_off_leaves_the_recordings_alone(targets, tmp_path):
    got = mpirun(2, "sh", "-c", OWN_FOLDER, "sh", target(targets), cwd=tmp_path, env={"ASSAY_MERGE": "off"})
    assert got.status == 0, got
    assert not list(tmp_path.rglob("*.h5"))
    assert len(list((tmp_path / "rec-0").glob("*.table"))) == 1


def test_merge_names_the_file(targets, folder, tmp_path):
    env = {"ASSAY_DIR": str(folder), "ASSAY_MERGE": str(tmp_path / "job.h5")}
    got = mpirun(2, target(targets), cwd=tmp_path, env=env)
    assert got.status == 0, got
    assert has_all_steps(Regions(tmp_path / "job.h5"), 2)
    assert not (folder / "regions.h5").exists()


def test_a_program_that_cannot_be_started_leaves_the_recordings_to_be_merged(assay, targets, folder, tmp_path):
    env = {"ASSAY_DIR": str(folder), "ASSAY_PROGRAM": "/nowhere/assay"}
    got = mpirun(2, target(targets), cwd=tmp_path, env=env)
    assert (got.status, got.stderr) == (0, "")
    assert not (folder / "regions.h5").exists()
    assert assay("merge", folder, "-o", "out.h5").status == 0
    assert has_all_steps(Regions(tmp_path / "out.h5"), 2)


def test_alone_no_rank_speaks_to_another(targets, folder, tmp_path):
    got = mpirun(2, target(targets), cwd=tmp_path, env={"ASSAY_DIR": str(folder), "ASSAY_MPI": "alone"})
    assert got.status == 0, got
    assert not (folder / "regions.h5").exists()
    assert len(list(folder.glob("*.table"))) == 2


def calls_env(folder):
    return {"ASSAY_DIR": str(folder), "ASSAY_MPI": "calls"}


@pytest.fixture
def preloaded_calls(targets, folder, tmp_path):
    """A job of n ranks under ASSAY_MPI=calls; its merged file."""

    def run(ranks):
        got = mpirun(ranks, "sh", "-c", f'LD_PRELOAD={library()} exec "$@"', "sh", target(targets, "mpi_calls"),
                     cwd=tmp_path, env=calls_env(folder))
        assert got.status == 0, got
        return Regions(folder / "regions.h5")

    return run


def moved(regions, name):
    return json.loads(regions.metadata[f"mpi_bytes.{name}"])


def test_mpi_calls_are_regions_with_their_bytes(preloaded_calls):
    regions = preloaded_calls(4)
    # One is the send that fails: it is a call, and moves nothing.
    assert regions.count("MPI_Send") == dict.fromkeys(range(4), 2)
    assert moved(regions, "MPI_Send") == {"total": 1600, "min": 400, "max": 400, "ranks": [400] * 4}
    # What came, with a status of the program's own and without, and not the room for it.
    assert moved(regions, "MPI_Recv")["ranks"] == [400] * 4
    assert moved(regions, "MPI_Isend") == {"total": 800, "min": 200, "max": 200, "ranks": [200] * 4}
    assert moved(regions, "MPI_Allreduce")["ranks"] == [40] * 4
    assert moved(regions, "MPI_Gather")["ranks"] == [8] * 4
    assert moved(regions, "MPI_Scatter")["ranks"] == [4] * 4
    assert moved(regions, "MPI_Alltoall")["ranks"] == [8] * 4
    assert moved(regions, "MPI_Allgatherv")["ranks"] == [1, 2, 1, 2]
    # 80 among all; between groups only those who are told something count.
    assert moved(regions, "MPI_Bcast")["ranks"] == [80, 80, 96, 96]
    for name in ("MPI_Barrier", "MPI_Waitall", "MPI_Comm_split"):
        assert regions.count(name) == dict.fromkeys(range(4), 1)
        assert f"mpi_bytes.{name}" not in regions.metadata


def test_the_bytes_of_the_rank_that_aborts_are_kept(assay, targets, folder, tmp_path):
    got = mpirun(2, target(targets), "abort", cwd=tmp_path, env=calls_env(folder))
    assert got.status == 3, got
    assert assay("merge", folder, "-o", "out.h5").status == 0
    metadata = Regions(tmp_path / "out.h5").metadata
    kept = {key: int(metadata[key]) for key in metadata if key.startswith("mpi_bytes.")}
    assert kept and all(key.endswith(".rank1") and value > 0 for key, value in kept.items())


def test_mpi_calls_are_only_recorded_when_asked_for(targets, folder, tmp_path):
    got = mpirun(2, target(targets), cwd=tmp_path, env={"ASSAY_DIR": str(folder)})
    assert got.status == 0, got
    assert not [name for _, name in Regions(folder / "regions.h5").calls if name.startswith("MPI_")]


FORTRAN = """
program job
  use {module}
  implicit none
  integer :: ierror, rank, provided
  {init}
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  if (rank < 0) stop 3
  call MPI_Finalize({finalize})
end program
"""


@pytest.mark.parametrize("module, init, finalize", [
    ("mpi", "call MPI_Init(ierror)", "ierror"),
    ("mpi", "call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierror)", "ierror"),
    ("mpi_f08", "call MPI_Init()", ""),
    ("mpi_f08", "call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)", ""),
])
def test_a_program_in_fortran_is_recorded(assay, folder, tmp_path, module, init, finalize):
    need("fortran", shutil.which("mpif90") and shutil.which("gfortran"), "no mpif90 with gfortran")
    preload = library()
    (tmp_path / "job.f90").write_text(FORTRAN.format(module=module, init=init, finalize=finalize))
    built = subprocess.run(["mpif90", "job.f90", "-o", "job"], cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    env = {"ASSAY_DIR": str(folder)}
    if "ASAN" in subprocess.run(["nm", "-D", preload], capture_output=True, text=True).stdout.upper():
        pytest.skip("a program without the sanitizer cannot preload a library with it")
    got = mpirun(2, "sh", "-c", f'LD_PRELOAD={preload} exec "$@"', "sh", "./job", cwd=tmp_path, env=env)
    assert got.status == 0, got
    # Nothing is marked in it; that both ranks said who they are is all there is to see.
    assert len(list(folder.glob("regions-*.table"))) == 2
    merged = assay("merge", folder, "-o", "out.h5", "--json")
    assert json.loads(merged.stdout)["ranks"] == 2, merged


def test_only_what_mpi_names_is_exported():
    listed = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library()], capture_output=True, text=True)
    names = {line.split()[0] for line in listed.stdout.splitlines()}
    fortran = {"mpi_init", "mpi_init_thread", "mpi_finalize"}
    assert len(names) > 40
    assert not {name for name in names if not name.startswith("MPI_") and
                name.rstrip("_").removesuffix("_f08") not in fortran and not name.startswith("__")}


def test_pkg_config_names_both_libraries():
    library()
    text = (conftest.BUILD / "meson-private" / "assay-mpi.pc").read_text()
    assert "-lassay-mpi" in text
    assert "Requires: assay" in text
    assert os.path.exists(conftest.BUILD / "meson-private" / "assay.pc")
