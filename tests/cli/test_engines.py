"""Recorded engine logs, printed again at their own pace under assay run: the phases and speeds in run.json."""
import json
import pathlib
import sys

import pytest

from terminal import Terminal

LOGS = pathlib.Path(__file__).resolve().parents[1] / "data" / "engine"
REPLAY = pathlib.Path(__file__).with_name("replay.py")


def command(log, scale=1.0):
    return [sys.executable, str(REPLAY), str(LOGS / f"{log}.tsv"), str(scale)]


def groups(run):
    """The groups in the order in which they occurred, without what came before the engine spoke, and without the few
    moments between lines that the engine wrote in one piece."""
    found = []
    for phase in run["phases"]:
        told = phase["name"] != "start" and (phase["end_s"] - phase["start_s"] > 0.003 or phase is run["phases"][-1])
        if told and (not found or found[-1] != phase["group"]):
            found.append(phase["group"])
    return found


def speeds(run):
    throughput = run["throughput"]
    return {name: throughput[name]["tokens_per_s"] for name in ("prefill", "decode") if name in throughput}


@pytest.mark.parametrize("log, engine, prefill, decode", [
    ("new-bench-progress", "llama-bench", 422.62, 111.80),
    ("new-bench-o-jsonl", "llama-bench", 412.536019, 104.709997),
    ("new-bench-o-csv", "llama-bench", 422.215158, 114.441793),
    ("new-completion-default", "llama-cli", 410.30, 108.96),
    ("new-cli-single-turn", "llama-cli", 412.3, 101.3),
    ("old-cli-default", "llama-cli", 410.99, 82.46),
])
def test_speeds_are_those_that_were_printed(assay, log, engine, prefill, decode):
    run = assay("run", "--precheck", "off", "-q", "-o", "out", "--", *command(log, 0.3)).run_json
    assert run["engine"]["name"] == engine
    assert speeds(run) == {"prefill": pytest.approx(prefill), "decode": pytest.approx(decode)}


def test_phases_last_as_long_as_they_did(assay):
    run = assay("run", "--precheck", "off", "-q", "-o", "out", "--", *command("new-bench-progress")).run_json
    assert groups(run) == ["load", "warmup", "prefill", "load", "warmup", "decode", "shutdown"]
    by_name = {phase["name"]: phase["end_s"] - phase["start_s"] for phase in run["phases"]}
    assert by_name["pp64"] == pytest.approx(0.482 - 0.183, rel=0.3)
    assert by_name["tg16"] == pytest.approx(0.789 - 0.502, rel=0.3)
    assert [test["name"] for test in run["throughput"]["tests"]] == ["pp64", "tg16"]


def test_a_server_weighs_its_requests(assay):
    run = assay("run", "--precheck", "off", "-q", "-o", "out", "--", *command("new-server-default", 0.2)).run_json
    assert groups(run) == ["load", "warmup", "serving", "shutdown"]
    requests = run["throughput"]["requests"]
    assert len(requests) == 4
    counted = [r for r in requests if r["prompt_tokens"] > 1]  # one had its prompt in the cache
    assert len(counted) == 3
    for name, part, among in (("prefill", "prompt", counted), ("decode", "generated", requests)):
        weight = sum(r[f"{part}_ms"] for r in among)
        mean = sum(r[f"{part}_tokens_per_s"] * r[f"{part}_ms"] for r in among) / weight
        assert speeds(run)[name] == pytest.approx(mean)


def test_a_run_without_speeds_has_no_value(assay):
    for log in ("new-completion-noperf", "new-bench-missing-model", "new-bench-missing-model-json"):
        run = assay("run", "--precheck", "off", "-q", "-o", log, "--", *command(log, 0.1)).run_json
        assert speeds({"throughput": {}, **run}) == {}


def test_markers_are_trusted_more_than_the_output(assay):
    script = 'echo mine >> "$ASSAY_MARKERS"; exec "$@"'
    got = assay("run", "--precheck", "off", "-q", "-o", "out", "--", "sh", "-c", script, "sh",
                *command("new-bench-progress", 0.2))
    assert [phase["name"] for phase in got.run_json["phases"]] == ["start", "mine"]
    assert speeds(got.run_json)["decode"] == 111.80


def test_a_named_parser_that_finds_nothing_says_so_and_none_looks_at_nothing(assay):
    got = assay("run", "--precheck", "off", "--engine", "vllm", "-o", "a", "--", *command("new-bench-default", 0.1))
    assert "engine" not in got.run_json
    assert "Nothing in the output is known to the parser 'vllm'" in got.stderr
    assert "engine" not in assay("run", "--precheck", "off", "--engine", "none", "-o", "b", "--",
                                 *command("new-bench-default", 0.1)).run_json


def test_one_terminal_mixes_both_streams(program, tmp_path):
    terminal = Terminal([program, "run", "--precheck", "off", "-q", "-o", tmp_path / "out", "--",
                         *command("new-bench-progress", 0.3)], tmp_path)
    assert terminal.wait() == 0
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert speeds(run) == {"prefill": 422.62, "decode": 111.80}
    assert groups(run)[:3] == ["load", "warmup", "prefill"]
    assert (tmp_path / "out" / "terminal.log").exists()
