"""Planted truths of the sampler: programs that measure what each of their functions burns, and the hot spots beside it.

A target's own reading of its CPU clocks is the truth. Its functions work in pieces much longer than a tick, so that the
sampling error is well below what is asked for here. Names are checked against binutils.
"""
import json
import math
import os
import pathlib
import re

import pytest

from by_nm import entry_at, imported, inlined_at, names_at, plain, vdso_file
from conftest import BUILD
from need import need
from profiles import profile, truth_of

POINTS = 0.03


def points(seen):
    """3 points are four standard errors of a share at 4,000 samples; with fewer, chance alone needs more room."""
    return POINTS * max(1, math.sqrt(4000 / seen.shown["deliveries"]))


def check_shares(seen, truth, names=None):
    """Every share within 3 points of the truth, and nothing else is hot. names: how the profile calls a part."""
    whole = sum(truth.values())
    room = points(seen)
    for part, seconds in truth.items():
        name = (names or {}).get(part, part)
        assert seen.share(name) == pytest.approx(seconds / whole, abs=room), seen.rows()
    others = 1 - sum(seen.share((names or {}).get(part, part)) for part in truth)
    assert others < room, seen.rows()


def check_sound(seen, truth):
    """What holds for any profile of a program that burns in its own code: nothing lost, whole stacks, true names."""
    whole = sum(truth.values())
    assert seen.shown["dropped"] == 0
    assert seen.shown["samples"] * seen.shown["period_s"] == pytest.approx(whole, rel=0.05, abs=0.05)
    assert seen.complete >= 0.99
    for rows in seen.rows("inclusive").values():
        assert all(row["share"] <= 1 for row in rows)
    check_names(seen)


def places(seen):
    """(file or None, module, address, [(name, known)] from the innermost frame outwards) of all that was sampled."""
    stored = json.loads((seen.run_dir / "profile.json").read_text())
    flat = iter(stored["locations"])
    for number in flat:
        address = next(flat)
        address = int(address, 0) if isinstance(address, str) else address
        functions = [(stored["functions"][next(flat)], next(flat))[0] for _ in range(next(flat))]
        path, module = stored["modules"][number][:2]
        file = vdso_file(seen.run_dir) if module == "[vdso]" else pathlib.Path(path)
        yield file if file.is_file() else None, module, address, [(f[2], bool(f[1])) for f in functions]


def check_names(seen):
    """Every address has the name that binutils find there, or none where they find none. What has no name says in which
    module it lies and, where an entry of the unwind table holds it, where that begins."""
    for file, module, address, frames in places(seen):
        where = f"{address:#x} of {file or module}: {frames}"
        outermost, known = frames[-1]
        if outermost.endswith("@plt"):
            assert plain(outermost.removesuffix("@plt")) in imported(file), where
        elif known:
            assert file and plain(outermost) in names_at(file, address), where
        elif file:
            assert not names_at(file, address), where
            start = entry_at(file, address)
            assert outermost in (f"{module}!?" if start is None else f"{module}!?+{start:#x}", f"{module}!?plt"), where
        else:
            assert outermost.startswith(f"{module}!?"), where
        if len(frames) > 1:
            inlined = inlined_at(file, address)
            assert len(inlined) == len(frames), f"{where}: {inlined}"
            for (name, _), other in zip(frames[:-1], inlined):
                # Of some functions of C++ that are inlined, binutils give the name of the one around.
                around = other == inlined[-1] or bare(other) == bare(outermost)
                assert bare(name) in (bare(other), *(["cpu_ns"] if around else [])), f"{where}: {inlined}"


def bare(name):
    return plain(name).partition("(")[0]


def test_two_functions_at_70_and_30_on_two_threads(assay, targets):
    seen = profile(assay, targets("truth_two"), 8, 2)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_sound(seen, truth)
    assert {row["threads"] for name in truth for row in seen.rows()[name]} == {2}


def test_a_serial_function_is_told_from_a_loop_on_two_threads(assay, targets):
    seen = profile(assay, targets("truth_serial"), 4)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_sound(seen, truth)
    (serial,), (parallel,) = seen.rows()["prepare_alone"], seen.rows()["loop_together"]
    assert (serial["threads"], parallel["threads"]) == (1, 2)
    assert serial["busiest_thread_s"] == pytest.approx(serial["cpu_s"])
    assert parallel["busiest_thread_s"] == pytest.approx(parallel["cpu_s"] / 2, rel=0.1)
    wall = seen.got.run_json["phases"][0]["end_s"] - seen.got.run_json["phases"][0]["start_s"]
    assert serial["pct_of_wall_on_busiest_thread"] == pytest.approx(100 * truth["prepare_alone"] / wall, abs=3)
    text = seen.text()
    assert text.index("prepare_alone") < text.index("loop_together"), text


def test_a_hot_static_function_of_a_stripped_library_is_one_row_without_a_name(assay, targets):
    seen = profile(assay, targets("truth_hidden"), 2)
    truth = truth_of(seen.got.stdout)
    name = seen.named_like("libtruth-hidden.so!?+0x")
    check_shares(seen, truth, {"hidden": name})
    check_sound(seen, truth)
    assert "exported_" not in str(seen.shown) + seen.text() + str(seen.json("--by", "line"))


def test_a_function_that_calls_itself_is_counted_once_per_sample(assay, targets):
    seen = profile(assay, targets("truth_recursion"), 3)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_sound(seen, truth)
    halves = {"call_itself": truth["call_itself"], "even_level": truth["even_level"] + truth["odd_level"],
              "odd_level": truth["even_level"] + truth["odd_level"], "main": sum(truth.values())}
    for name, seconds in halves.items():
        assert seen.share(name, "inclusive") == pytest.approx(seconds / sum(truth.values()), abs=points(seen))


def test_names_of_templates_methods_and_lambdas_are_for_people(assay, targets):
    path = BUILD / "tests" / "targets" / "target_truth_templates"
    need("c++", path.exists(), "there was no compiler for C++")
    seen = profile(assay, targets("truth_templates"), 3)
    truth = truth_of(seen.got.stdout)
    names = {"burn_times<3>": "burn_times<3>(", "burn_times<4>": "burn_times<4>(",
             "area": "planted::Shape<double>::area(", "lambda": "{lambda(long)#1}::operator()"}
    check_shares(seen, truth, {part: seen.named_like(like) for part, like in names.items()})
    check_sound(seen, truth)


def test_an_inlined_leaf_has_its_own_row_and_its_caller_the_whole(assay, targets):
    seen = profile(assay, targets("truth_inline"), 2)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_sound(seen, truth)
    assert seen.share("outer_function", "inclusive") > 0.97
    assert seen.share("outer_function") < POINTS
    lines = seen.json("--by", "line")["groups"]
    source = (pathlib.Path(__file__).parents[1] / "targets" / "truth_inline.c").read_text().splitlines()
    burning = next(i for i, line in enumerate(source, 1) if "BURN(ns, &leaf_ns)" in line)
    hottest = next(iter(lines.values()))["self"][0]["name"]
    assert f"truth_inline.c:{burning}" in hottest and "inlined_leaf" in hottest


def test_a_program_full_of_signals_keeps_its_shares(assay, targets):
    # Each sample meets the handler or not by chance alone, so it takes many for 3 points to be four standard errors.
    seen = profile(assay, targets("truth_signals"), 12)
    truth = truth_of(seen.got.stdout)
    share = truth["burn_in_handler"] / sum(truth.values())
    # With the clock that it calls, which is a larger part of its short work than of the other targets'.
    assert seen.share("burn_in_handler", "inclusive") == pytest.approx(share, abs=points(seen)), seen.rows()
    assert seen.share("burn_in_loop") == pytest.approx(1 - share, abs=points(seen)), seen.rows()
    # A handler runs on top of what it interrupted: its stacks go down through the loop.
    assert seen.share("burn_in_loop", "inclusive") > 0.97
    check_sound(seen, truth)


def test_children_of_a_fork_server_are_sampled_as_it_is_itself(assay, targets):
    seen = profile(assay, targets("truth_forks"), 4)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_sound(seen, truth)
    assert seen.rows()["serve_request"][0]["threads"] == 20


def test_two_libraries_that_were_at_one_address_are_told_apart(assay, targets):
    library = {which: BUILD / "tests" / "targets" / f"libtruth-{which}.so" for which in ("first", "other")}
    seen = profile(assay, targets("truth_unload"), 3, library["first"], "work_of_first", library["other"],
                   "work_of_other")
    truth = truth_of(seen.got.stdout)
    same = re.search(r"same address: (\d+) of (\d+)", seen.got.stdout)
    need("same address", int(same[1]) > int(same[2]) // 2, "the loader puts each library to another address")
    check_shares(seen, truth)
    check_sound(seen, truth)
    for group in seen.groups.values():
        modules = {row["name"]: row["share"] for row in group["modules"]}
        assert modules["libtruth-other.so"] == pytest.approx(2 * modules["libtruth-first.so"], rel=0.2)


def test_threads_of_one_kind_are_one_row_and_the_busiest_is_named(assay, targets):
    seen = profile(assay, targets("truth_workers"), 4)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, {"do_work": sum(truth.values())})
    check_sound(seen, truth)
    (kind,) = seen.rows("threads")["worker-#"]
    assert kind["share"] > 0.97
    (group,) = seen.groups.values()
    busiest = group["busiest_threads"][0]
    tid = re.search(r"^worker-8 has the tid (\d+)$", seen.got.stdout, re.M)
    assert (busiest["name"], busiest["tid"]) == ("worker-8", int(tid[1]))
    assert busiest["cpu_s"] == pytest.approx(truth["worker-8"], rel=0.1)
    assert seen.rows()["do_work"][0]["threads"] == 8


def test_each_phase_has_hot_functions_of_its_own(assay, targets):
    seen = profile(assay, targets("truth_phases"), 4)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_sound(seen, truth)
    for group, name in (("load", "read_weights"), ("prefill", "many_tokens"), ("decode", "one_token")):
        rows = {row["name"]: row["share"] for row in seen.groups[group]["self"]}
        assert rows[name] == pytest.approx(0.8, abs=0.05)
        assert rows["called_by_all"] == pytest.approx(0.2, abs=0.05)
        assert seen.groups[group]["cpu_s"] == pytest.approx(truth[name] / 0.8, rel=0.1)
        assert not any(other in rows and rows[other] > 0.02 for other in truth if other not in (name, "called_by_all"))
    assert list(seen.groups)[-3:] == ["load", "prefill", "decode"]


def test_a_target_that_is_killed_keeps_its_samples(assay, targets):
    seen = profile(assay, targets("truth_two"), 2, 2, "kill", status=128 + 9)
    truth = truth_of(seen.got.stdout)
    assert seen.got.run_json["status"] == "signal"
    check_shares(seen, truth)
    check_sound(seen, truth)


def test_a_process_that_becomes_other_programs_is_followed(assay, targets):
    seen = profile(assay, targets("truth_exec"), 0.4, 5)
    truth = truth_of(seen.got.stdout)
    check_shares(seen, truth)
    check_names(seen)
    assert seen.complete >= 0.99


def test_the_default_rate_gives_the_same_shares(assay, targets):
    seen = profile(assay, targets("truth_two"), 4, 2, hz=199)
    truth = truth_of(seen.got.stdout)
    assert seen.shown["period_s"] == pytest.approx(1 / 199)
    check_shares(seen, truth)
    check_sound(seen, truth)


def test_run_takes_samples_when_asked_to_and_only_then(assay, targets):
    got = assay("run", "--precheck", "off", "-q", "-o", "with", "--cpu-profile", "--", targets("truth_two"), "0.5", "1")
    assert got.status == 0, got
    assert (got.cwd / "with" / "profile.json").is_file()
    self_rows = next(iter(got.run_json["profile"]["groups"].values()))["self"]
    assert [row["name"] for row in self_rows][:2] == ["burn_seventy", "burn_thirty"]
    bare = assay("run", "--precheck", "off", "-q", "-o", "without", "--", targets("truth_two"), "0.1", "1")
    assert "profile" not in bare.run_json
    assert not os.path.exists(got.cwd / "without" / "profile.json")
