"""mpirun -n N assay run -- CMD: a run directory per rank, and one result of all that the last one makes."""
import json
import re
import signal
import subprocess

import pytest

import conftest
from mpi_jobs import Regions, library, mpirun

QUIET = ("--precheck", "off", "--no-probe")
# The command's parent is the helper, whose parent is the recorder.
KILL_RECORDER = "kill -9 $(ps -o ppid= -p $PPID)"


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
    killed = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", KILL_RECORDER, env=by_hand(1, 2))
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


def leave_no_result(assay, tmp_path, targets):
    """A job of two whose rank 1 loses its recorder, after the other has ended: nobody is left to make the result."""
    marked = targets("marked")
    for rank in (0, 1):
        then = KILL_RECORDER if rank == 1 else "true"
        assay("run", *QUIET, "-q", "-o", "out", "--", "sh", "-c", f"{marked} nest 3 1; {then}", env=by_hand(rank, 2))
    assert not (tmp_path / "out" / "run.json").exists()


def test_recover_makes_the_result_that_the_last_rank_could_not(assay, targets, tmp_path):
    leave_no_result(assay, tmp_path, targets)
    got = assay("recover", "out")
    assert got.status == 0, got
    assert got.stderr.rstrip().endswith(f"results: {tmp_path / 'out'}")
    run = result(tmp_path / "out")
    assert run["status"] == "partial" and "missing" not in run["job"]
    assert [(row["rank"], row["status"]) for row in run["ranks"]] == [(0, "ok"), (1, "partial")]
    assert run["regions"]["ranks"] == 2
    counted = Regions(tmp_path / "out" / "regions.h5").count("inner")
    assert len(set(counted.values())) == 1 and sorted(counted) == [0, 1]
    assert not list((tmp_path / "out").rglob("regions-*"))
    assert not (tmp_path / "out" / "job.present").exists()
    assert not (tmp_path / "out" / "rank-1" / "regions.h5").exists()


def test_recover_of_a_whole_job_is_refused_and_with_force_keeps_its_regions(assay, targets, tmp_path):
    leave_no_result(assay, tmp_path, targets)
    assert assay("recover", "-q", "out").status == 0
    before = (tmp_path / "out" / "regions.h5").read_bytes()
    got = assay("recover", "out")
    assert got.status == 2 and "nothing is missing (--force makes it anew" in got.stderr
    assert assay("recover", "-q", "--force", "out").status == 0
    assert (tmp_path / "out" / "regions.h5").read_bytes() == before
    assert result(tmp_path / "out")["regions"]["ranks"] == 2


def test_recover_adds_a_rank_that_was_missing(assay, targets, tmp_path):
    leave_no_result(assay, tmp_path, targets)
    (tmp_path / "out" / "rank-1").rename(tmp_path / "away")
    got = assay("recover", "-q", "--json", "out")
    assert got.status == 0, got
    assert json.loads(got.stdout)["job"]["missing"] == "1"
    (tmp_path / "away").rename(tmp_path / "out" / "rank-1")
    assert assay("recover", "-q", "out").status == 0
    assert result(tmp_path / "out")["job"]["ended"] == 2
    assert sorted(Regions(tmp_path / "out" / "regions.h5").count("inner")) == [0, 1]


def test_recover_of_one_rank_leaves_its_regions_to_the_job(assay, targets, tmp_path):
    leave_no_result(assay, tmp_path, targets)
    assert assay("recover", "-q", "out/rank-1").status == 0
    got = assay("recover", "-q", "rank-1", cwd=tmp_path / "out")
    assert got.status == 2 and "nothing is missing" in got.stderr
    assert assay("recover", "-q", "out").status == 0
    assert sorted(Regions(tmp_path / "out" / "regions.h5").count("inner")) == [0, 1]


def test_a_job_whose_result_failed_is_made_from_its_ranks(assay, targets, tmp_path):
    for rank in (0, 1):
        assay("run", *QUIET, "-q", "-o", "out", "--", targets("marked"), "nest", "3", "1", env=by_hand(rank, 2))
    (tmp_path / "out" / "run.json").unlink()
    got = assay("recover", "-q", "out")
    assert got.status == 0, got
    assert result(tmp_path / "out")["status"] == "ok"
    assert assay("inspect", "out").status == 0


def test_a_rank_that_is_being_recorded_is_left_alone(assay, program, tmp_path):
    process = subprocess.Popen([program, "run", *QUIET, "-q", "-o", "out", "--", "sh", "-c", "echo on; read line"],
                               cwd=tmp_path, env=conftest.environment(by_hand(0, 2)), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"on\n"
        got = assay("recover", "out")
    finally:
        process.communicate(b"\n")
    assert got.status == 2
    assert got.stderr == (f"assay recover: {tmp_path / 'out'}: rank 0 is still being recorded (--force makes results "
                          "from what is there now)\n")


@pytest.mark.parametrize("text", ["", "{}", '{"size": 1}', '{"size": 1e300}', '{"size": "4"}'])
def test_a_job_that_does_not_say_what_it_was_is_refused(assay, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "job.json").write_text(text)
    got = assay("recover", "out")
    assert got.status == 2 and got.stderr.startswith(f"assay recover: {tmp_path / 'out' / 'job.json'}: "), got


def test_the_regions_of_a_job_are_exported(assay, run_job, targets, tmp_path):
    library()
    assert run_job(2, "-q", "-o", "out", "--", targets("mpi_job")).status == 0
    got = assay("export", "out", "--format", "csv")
    assert got.status == 0, got
    lines = got.stdout.splitlines()
    assert {line.split(",")[0] for line in lines[1:]} == {"0", "1"}
    assert sum(",step," in line for line in lines) == 20
    trace = json.loads(assay("export", "out", "--format", "chrome").stdout)
    assert len([event for event in trace["traceEvents"] if event["ph"] in "XB"]) == len(lines) - 1


def test_cpu_samples_of_a_job_are_its_ranks(assay, run_job, tmp_path):
    assert run_job(2, "-q", "-o", "out", "--cpu-profile", "--", "true").status == 0
    got = assay("export", "out", "--format", "folded")
    assert got.status == 2
    assert got.stderr == ("assay export: out is a job of several ranks: CPU samples are exported rank by rank, as "
                          "those of out/rank-0\n")
