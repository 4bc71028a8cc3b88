"""The program as a whole: help, errors on one line, exit status, man pages, doctor."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import BUILD, ROOT
from need import need


def command_names():
    return re.findall(r"^COMMAND\((\w+)\)", (ROOT / "src/cmd/list.def").read_text(), re.M)


def test_the_version_is_one_line(assay):
    got = assay("--version")
    assert (got.status, got.stdout, got.stderr) == (0, "assay 0.1.0\n", "")


def test_without_arguments_it_says_how_to_use_it(assay):
    got = assay()
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == "Usage: assay COMMAND [options] ...; 'assay --help' lists the commands\n"


@pytest.mark.parametrize("words", (["--help"], ["-h"], ["help"]))
def test_the_overview_names_every_command_and_exit_status(assay, golden, words):
    got = assay(*words)
    assert (got.status, got.stderr) == (0, "")
    lines = got.stdout.splitlines()
    listed = lines[lines.index("Commands:") + 1:lines.index("Exit status:")]
    assert [line.split()[0] for line in listed if re.match(r"  \w", line)] == command_names()
    assert all(len(line) < 80 for line in lines[:-1]), "wider than a terminal"
    golden("help.txt", re.sub(r"\n\S+/share/doc/assay", "\nPREFIX/share/doc/assay", got.stdout))


@pytest.mark.parametrize("name", command_names())
def test_each_command_has_the_same_help_by_any_way(assay, golden, name):
    got = assay("help", name)
    assert (got.status, got.stderr) == (0, "")
    assert got.stdout == assay(name, "--help").stdout == assay(name, "-h").stdout == assay("--help", name).stdout
    assert got.stdout.startswith(f"Usage: assay {name} ")
    assert len(re.findall(r"^  assay ", got.stdout.partition("\nExamples:\n")[2], re.M)) >= 2
    golden(f"help-{name}.txt", got.stdout)


@pytest.mark.parametrize("words, error", (
    (["rnu"], "assay: unknown command 'rnu'; did you mean 'run'?"),
    (["frobnicate"], "assay: unknown command 'frobnicate'; 'assay --help' lists them"),
    ([""], "assay: unknown command ''; 'assay --help' lists them"),
    (["run\n\x1b[31m"], "assay: unknown command 'run??[31m'; 'assay --help' lists them"),
    (["--versoin"], "assay: unknown option '--versoin'; did you mean '--version'?"),
    (["-x"], "assay: unknown option '-x'; a command comes first, 'assay --help' lists them"),
    (["help", "docter"], "assay help: unknown command 'docter'; did you mean 'doctor'?"),
    (["help", "run", "doctor"], "assay help: one command at a time; 'doctor' is one too many"),
    (["run", "--tiemout", "3", "true"], "assay run: unknown option '--tiemout'; did you mean '--timeout'?"),
    (["run", "--time=3", "true"], "assay run: unknown option '--time'; did you mean '--timeout'?"),
    (["run", "--interval", "0", "true"], "assay run: option '--interval': '0' is not a number from 1 to 60000"),
    (["run", "--out"], "assay run: option '--out' needs a value: --out DIR"),
    (["doctor", "--json=yes"], "assay doctor: option '--json' takes no value, but 'yes' was given"),
    (["doctor", "now"], "assay doctor: 'now' is one word too many"),
))
def test_wrong_usage_is_one_line_and_status_2(assay, tmp_path, words, error):
    got = assay(*words)
    assert (got.status, got.stdout, got.stderr) == (2, "", error + "\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", (
    ["--help"], ["--version"], ["help", "run"], ["run", "--help"], ["doctor"], ["doctor", "--json"]))
def test_a_full_disk_is_trouble(assay, words):
    need("fulldisk", os.path.exists("/dev/full"), "there is no /dev/full")
    with open("/dev/full", "w") as full:
        got = assay(*words, stdout=full)
    assert got.status == 3
    assert got.stderr == "assay: the output cannot be written: No space left on device\n"


def test_a_closed_standard_output_is_trouble(program, tmp_path):
    got = subprocess.run(["sh", "-c", '"$0" --help >&-', str(program)], cwd=tmp_path, capture_output=True, text=True)
    assert (got.returncode, got.stderr) == (3, "assay: the output cannot be written: Bad file descriptor\n")


def test_a_reader_that_has_seen_enough_is_no_error(program, tmp_path):
    got = subprocess.run(["sh", "-c", '"$0" --help | head -n 1', str(program)], cwd=tmp_path, capture_output=True,
                         text=True)
    assert (got.returncode, got.stderr) == (0, "")


def test_the_program_links_nothing_heavy(program):
    need("readelf", shutil.which("readelf"), "binutils is not installed")
    got = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True, check=True)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", got.stdout)
    assert needed
    assert not [name for name in needed if re.match(r"lib(hdf5|cairo|dw|elf|unwind|stdc|curl|ssl|crypto)", name)]


def test_man_pages_come_from_the_same_tables(assay, tmp_path):
    need("mandoc", shutil.which("mandoc"), "mandoc is not installed")
    for name in [None, *command_names()]:
        page = tmp_path / "page.1"
        page.write_text(assay("help", "--man", *([name] if name else [])).stdout)
        lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(page)], capture_output=True, text=True)
        complaints = [line for line in lint.stdout.splitlines() if "missing date" not in line]
        assert not complaints
        shown = subprocess.run(["mandoc", "-Tascii", "-Owidth=1000", str(page)], capture_output=True, text=True,
                               check=True)
        text = re.sub(r".\x08", "", shown.stdout)
        if name:
            options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", assay("help", name).stdout, re.M)
            assert options
            assert not [option for option in options if option not in text]
        else:
            assert not [command for command in command_names() if f"assay-{command}(1)" not in text]


def test_man_pages_are_built(program):
    for name in ["", *(f"-{name}" for name in command_names())]:
        assert (BUILD / f"assay{name}.1").read_text().startswith(".TH ASSAY")


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_links_between_documents_lead_somewhere():
    pages = {path: path.read_text() for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]}
    anchors = {path: {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)}
               for path, text in pages.items()}
    links = [(path, link) for path, text in pages.items() for link in re.findall(r"\]\(([^)\s]+)\)", text)
             if not re.match(r"\w+:", link)]
    assert len(links) > 50
    for path, link in links:
        name, _, to = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), f"{path.name}: {link}"
        assert not to or to in anchors[target], f"{path.name}: {link}"


def check_doctor(report):
    """Every row says whether it is there; a missing one says why. Returns the rows by group and name."""
    rows = {}
    for row in report["checks"]:
        assert isinstance(row["available"], bool)
        assert row["available"] != bool(row.get("why_not")), row
        assert row["about"] or not row["available"], row
        assert (row["group"], row["name"]) not in rows
        rows[row["group"], row["name"]] = row
    return rows


def listed(folder, macro):
    return re.findall(rf"^{macro}\((\w+)\)", (ROOT / folder / "list.def").read_text(), re.M)


def test_doctor_knows_every_source_and_engine(assay):
    got = assay("doctor", "--json")
    assert (got.status, got.stderr) == (0, "")
    rows = check_doctor(json.loads(got.stdout))
    groups = {}
    for group, name in rows:
        groups.setdefault(group, []).append(name)
    assert groups["sources"] == listed("src/source", "SOURCE")
    assert len(groups["engines"]) == len(listed("src/engine", "ENGINE"))
    assert {"forks", "terminal", "cgroup", "timeline"} <= set(groups["recording"])
    assert groups["regions"] == ["files", "figures", "libassay", "libassay-mpi"]
    assert all(rows["sources", name]["available"] for name in ("cpu", "memory")), "no run could be measured here"


def test_doctor_says_what_regions_need(assay):
    rows = check_doctor(json.loads(assay("doctor", "--json").stdout))
    there = {"files": "assay-hdf5.so", "figures": "assay-cairo.so", "libassay": "libassay.so.0",
             "libassay-mpi": "libassay-mpi.so.0"}
    assert {name: rows["regions", name]["available"] for name in there} == {
        name: (BUILD / file).exists() for name, file in there.items()}
    if rows["regions", "libassay-mpi"]["available"]:
        assert re.search(r"built for \S.* \d+(\.\d+)*$", rows["regions", "libassay-mpi"]["about"])


def test_doctor_says_what_regions_lack(program, tmp_path):
    copy = shutil.copy(program, tmp_path)
    got = subprocess.run([copy, "doctor", "--json"], cwd=tmp_path, capture_output=True, text=True)
    rows = check_doctor(json.loads(got.stdout))
    for name, file in (("files", "assay-hdf5.so"), ("figures", "assay-cairo.so"), ("libassay", "libassay.so.0")):
        row = rows["regions", name]
        assert row["available"] or file in row["why_not"], row


def test_doctor_prints_a_line_for_each_thing(assay):
    got = assay("doctor")
    assert (got.status, got.stderr) == (0, "")
    report = json.loads(assay("doctor", "--json").stdout)
    assert got.stdout.startswith(f"assay 0.1.0 on {report['machine']['system']}, Linux ")
    lines = re.findall(r"^  (\S+) +(yes|no) ", got.stdout, re.M)
    assert [name for name, _ in lines] == [row["name"] for row in report["checks"]]
    here = sum(state == "yes" for _, state in lines)
    assert got.stdout.endswith(f"\n{here} of {len(lines)} are here.\n")


def test_doctor_needs_no_rights_and_writes_nothing(program):
    need("root", os.geteuid() == 0, "only root can become nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = shutil.copy(program, folder)
        got = subprocess.run([copy, "doctor", "--json"], user=65534, group=65534, extra_groups=[], cwd=folder,
                             capture_output=True, text=True)
        assert os.listdir(folder) == ["assay"]
    assert (got.returncode, got.stderr) == (0, "")
    check_doctor(json.loads(got.stdout))


def test_doctor_copes_with_an_empty_environment(program, tmp_path):
    got = subprocess.run([str(program), "doctor", "--json"], cwd=tmp_path, env={}, stdin=subprocess.DEVNULL,
                         capture_output=True, text=True)
    assert (got.returncode, got.stderr) == (0, "")
    rows = check_doctor(json.loads(got.stdout))
    assert rows["tools", "xz"]["why_not"] == "xz is not in $PATH; ./dev demo needs it: apt-get install xz-utils"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("script, error", (
    ("echo v18.19.0", "this is v18.19.0; ./dev demo --llm needs Node.js 20 or newer"),
    ("echo what?", "this is what?; ./dev demo --llm needs Node.js 20 or newer"),
    ("exit 1", "./dev demo --llm needs Node.js 20 or newer: {}/node does not say its version"),
    ("echo v20.11.1; exec sleep 1000", None),
    ("echo v22.0.0; exec yes", None),
))
def test_doctor_asks_node_for_its_version(assay, tmp_path, script, error):
    node = tmp_path / "node"
    node.write_text(f"#!/bin/sh\n{script}\n")
    node.chmod(0o755)
    got = assay("doctor", "--json", env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    row = check_doctor(json.loads(got.stdout))["tools", "node"]
    assert row.get("why_not") == (error.format(tmp_path) if error else None)
