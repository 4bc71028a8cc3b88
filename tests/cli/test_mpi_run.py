"""mpirun -n N assay run -- CMD: a run directory per rank, and one result of all that the last one makes."""
import json
import re
import signal

import pytest

from mpi_jobs import Regions, library, mpirun

QUIET = ("--precheck", "off", "--no-probe")


@pytest.fixture
def run_job(program, tmp_path):
    """run_job(4, "-o", "out", "--", "true"): all that the ranks' recorders are given."""

    def run(ranks, *args, **how):
        return mpirun(ranks, program, "run", *QUIET, *args, cwd=how.pop("cwd", tmp_path), **how)

    return run


def result(path):
    return json.loads((path / "run.json").read_text())


def by_hand(rank, size, job="job-1"):
    """What mpirun sets, for a rank that a test starts by itself."""
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(size), "PMIX_NAMESPACE": job}


def test_the_last_rank_makes_one_result_of_all(run_job, tmp_path):
    got = run_job(4, "-o", "out", "--", "sh", "-c", "sleep 0.2; echo hello")
    assert got.status == 0, got
    assert got.stdout == "hello\n" * 4
    assert got.stderr.count("assay: ok") == 1
    assert got.stderr.rstrip().endswith(f"results: {tmp_path / 'out'}")
    run = result(tmp_path / "out")
    assert (run["schema"], run["status"], run["exit_code"]) == (1, "ok", 0)
    assert run["job"]["size"] == run["job"]["ended"] == 4
    assert [row["rank"] for row in run["ranks"]] == [0, 1, 2, 3]
    own = [result(tmp_path / "out" / f"rank-{rank}") for rank in range(4)]
    assert run["cpu_s"] == pytest.approx(sum(one["cpu_s"] for one in own), abs=1e-5)
    assert run["memory"]["host"]["rss_peak_mib"] == pytest.approx(
        sum(one["memory"]["host"]["rss_peak_mib"] for one in own), abs=1e-3)
    assert run["wall_s"] >= max(one["wall_s"] for one in own) - 1e-3
    assert run["processes"]["count"] == sum(one["processes"]["count"] for one in own)
    assert run["phases"][0]["end_s"] == pytest.approx(run["wall_s"])
    assert [one["status"] for one in own] == ["ok"] * 4


def test_without_a_name_all_ranks_find_one_folder(run_job, tmp_path):
    for runs in (1, 2):
        got = run_job(4, "--", "true")
        assert got.status == 0, got
        made = [path for path in (tmp_path / "assay-runs").iterdir() if path.is_dir()]
        assert len(made) == runs
    for path in made:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-true(-2)?", path.name)
        assert len(result(path)["ranks"]) == 4
    assert not list((tmp_path / "assay-runs").glob(".job*"))


def test_sixteen_ranks(run_job, tmp_path):
    got = run_job(16, "-q", "-o", "out", "--", "true")
    assert (got.status, got.stdout, got.stderr) == (0, "", "")
    assert len(result(tmp_path / "out")["ranks"]) == 16


def test_the_regions_of_all_ranks_are_merged(assay, run_job, targets, tmp_path):
    library()
    got = run_job(4, "-o", "out", "--", targets("mpi_job"))
    assert got.status == 0, got
    regions = Regions(tmp_path / "out" / "regions.h5")
    assert regions.count("step") == dict.fromkeys(range(4), 10)
    run = result(tmp_path / "out")
    assert run["regions"]["ranks"] == 4
    assert "step" in [row["name"] for row in run["regions"]["top"]]
    assert not list((tmp_path / "out").rglob("regions-*"))
    shown = assay("inspect", "out", "--json")
    assert shown.status == 0, shown
    assert "step" in [row["name"] for row in json.loads(shown.stdout)["regions"]]


def test_diff_takes_jobs_as_runs(assay, run_job):
    for name in ("a", "b"):
        assert run_job(2, "-q", "-o", name, "--", "true").status == 0
    got = assay("diff", "a", "--vs", "b", "--json")
    assert got.status in (0, 4), got
    assert "wall_s" in got.stdout


def test_json_is_that_of_the_job(run_job, tmp_path):
    got = run_job(3, "-q", "-o", "out", "--json=job.json", "--", "true")
    assert got.status == 0, got
    assert json.loads((tmp_path / "job.json").read_text()) == result(tmp_path / "out")


def test_a_rank_that_fails_makes_the_job_fail(run_job, tmp_path):
    got = run_job(4, "-o", "out", "--", "sh", "-c", "sleep 0.3; [ $OMPI_COMM_WORLD_RANK != 2 ] || exit 7")
    assert got.status == 7, got
    run = result(tmp_path / "out")
    assert (run["status"], run["exit_code"]) == ("failed", 7)
    assert {row["rank"]: row["status"] for row in run["ranks"]}[2] == "failed"


def test_a_rank_whose_recorder_is_killed_is_named(assay, tmp_path):
    # The command's parent is the helper, whose parent is the recorder.
    killed = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", "kill -9 $(ps -o ppid= -p $PPID)", env=by_hand(1, 2))
    assert killed.status == -signal.SIGKILL
    assert (tmp_path / "out" / "rank-1").is_dir()
    got = assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(0, 2))
    assert got.status == 0, got
    run = result(tmp_path / "out")
    assert (run["status"], run["job"]["missing"]) == ("partial", "1")
    assert "Of the job's 2 ranks 1 left no result: 1." in run["warnings"][0]["text"]
    assert [row["rank"] for row in run["ranks"]] == [0]


def test_a_rank_still_to_come_is_waited_for(assay, tmp_path):
    first = assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(0, 2))
    assert (first.status, first.stderr) == (0, "")
    assert not (tmp_path / "out" / "run.json").exists()
    assert assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(1, 2)).status == 0
    assert result(tmp_path / "out")["status"] == "ok"


def test_a_failing_job_does_not_wait_for_ranks_that_never_came(assay, tmp_path):
    got = assay("run", *QUIET, "-o", "out", "--", "false", env=by_hand(0, 3))
    assert got.status == 1
    run = result(tmp_path / "out")
    assert (run["status"], run["job"]["missing"]) == ("partial", "1, 2")


def test_a_folder_of_another_job_is_never_written_to(assay, tmp_path):
    assert assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(0, 2)).status == 0
    for env in (by_hand(0, 2), by_hand(1, 2, "job-2"), by_hand(1, 3)):
        got = assay("run", *QUIET, "-o", "out", "--", "true", env=env)
        assert got.status == 2
        assert got.stderr == "assay run: out: exists and is not empty; a run directory is never overwritten\n"
    assert not (tmp_path / "out" / "rank-1").exists()


def test_a_folder_that_holds_anything_gets_nothing(assay, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    got = assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(0, 2))
    assert got.status == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_command_that_cannot_be_started_leaves_no_folder(assay, tmp_path):
    for args in (("-o", "out"), ()):
        got = assay("run", *QUIET, *args, "--", "./no-such-command", env=by_hand(0, 2))
        assert got.status == 127
        assert not (tmp_path / "out").exists()
    assert list((tmp_path / "assay-runs").iterdir()) == []


def test_one_rank_alone_is_a_plain_run(assay, tmp_path):
    got = assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(0, 1))
    assert got.status == 0
    assert "job" not in result(tmp_path / "out")


@pytest.mark.parametrize("rank, size", [("2", "2"), ("-1", "2"), ("x", "2"), ("0", ""), ("0", "99999999999999999999")])
def test_what_is_no_rank_is_a_plain_run(assay, tmp_path, rank, size):
    env = {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": size}
    assert assay("run", *QUIET, "-o", "out", "--", "true", env=env).status == 0
    assert "job" not in result(tmp_path / "out")


def test_a_batch_script_of_many_tasks_is_a_plain_run(assay, tmp_path):
    env = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}
    assert assay("run", *QUIET, "-o", "out", "--", "true", env=env).status == 0
    assert "job" not in result(tmp_path / "out")


def test_damage_in_a_rank_is_named(assay, tmp_path):
    assert assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(0, 2)).status == 0
    (tmp_path / "out" / "rank-0" / "run.json").write_text('{"wall_s": -1}')
    assert assay("run", *QUIET, "-o", "out", "--", "true", env=by_hand(1, 2)).status == 0
    run = result(tmp_path / "out")
    assert run["status"] == "partial"
    assert run["warnings"][0]["text"].startswith("Rank 0 is not counted: ")
