"""Names of code: what binutils say about every instruction of planted programs, in every layout; and no name at all
where nothing is certain. target_name_places asks the library; addr2line, nm and objdump are the independent readers."""
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

from by_nm import output_of, plain
from conftest import BUILD, ROOT
from need import need

SOURCES = ROOT / "tests" / "targets"
PLUGIN = BUILD / "assay-elf.so"


def compiled(folder, compiler, source, *flags, name="program"):
    need(compiler, shutil.which(compiler), f"{compiler} is not installed")
    out = folder / name
    done = subprocess.run([compiler, *flags, str(SOURCES / source), "-o", str(out)], cwd=folder, capture_output=True,
                          text=True)
    need(f"{compiler}-layout", done.returncode == 0, f"{compiler} {' '.join(flags)}: {done.stderr[-300:]}")
    return out


def build_id(path):
    found = re.search(r"Build ID: (\w+)", output_of("readelf", "-nW", path))
    return found[1] if found else None


def instructions(path):
    """Addresses by section."""
    found, section = {}, None
    for line in output_of("objdump", "-dw", "--no-show-raw-insn", path).splitlines():
        if line.startswith("Disassembly of section "):
            section = found.setdefault(line.split()[-1][:-1], [])
        elif match := re.match(r" *([0-9a-f]+):\t", line):
            section.append(int(match[1], 16))
    return found


class Names:
    def __init__(self, text):
        lines = text.splitlines()
        self.note = lines[0].removeprefix("note: ")
        self.warnings = [line for line in lines if line.startswith("warning: ")]
        self.at = {}
        for line in lines[1 + len(self.warnings):]:
            address, *frames = line.split("\t")
            self.at[int(address, 16)] = [Frame(*frame.rsplit("|", 4)) for frame in frames]

    def rows(self):
        return {frames[-1].name for frames in self.at.values()}


class Frame:
    def __init__(self, name, known, file, first, line):
        self.name, self.known, self.file, self.first, self.line = name, known == "1", file, int(first), int(line)

    def __repr__(self):
        return f"{self.name} {self.file}:{self.line}"


@pytest.fixture
def ask(targets, tmp_path):
    """ask(PATH, ADDRESSES, ...): Names. The plug-in is looked for beside the program that asks."""
    need("elfutils", PLUGIN.is_file(), "assay-elf.so is not built")
    program = tmp_path / "asking" / "name_places"
    program.parent.mkdir()
    shutil.copy(targets("name_places"), program)
    (program.parent / PLUGIN.name).symlink_to(PLUGIN)

    def asks(path, addresses, *options, same=True):
        identity = build_id(path) if same else None
        argv = [program, *(("--build-id", identity) if identity else ()), *options, path]
        done = subprocess.run(argv, input="\n".join(f"{a:x}" for a in addresses), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return Names(done.stdout)

    return asks


def by_addr2line(path, addresses):
    found, here = {}, None
    lines = iter(subprocess.run(["addr2line", "-aifC", "-e", str(path)], input="\n".join(f"{a:x}" for a in addresses),
                                capture_output=True, text=True, check=True).stdout.splitlines())
    for line in lines:
        if re.fullmatch(r"0x[0-9a-f]{16}", line):
            here = found.setdefault(int(line, 16), [])
        else:
            place = re.match(r".*:(\d+)", next(lines))
            here.append((line, int(place[1]) if place else 0))
    return found


def same_function(ours, theirs, outermost, innermost):
    """addr2line gives only the last part of a name that was not mangled, and to an innermost function without a mangled
    name that of the symbol around it."""
    if plain(ours.name) == plain(theirs) or ours.name.endswith(f"::{theirs}"):
        return True
    if f"::{theirs}(" in ours.name or f"::{theirs.partition('<')[0]}<" in ours.name:  # arguments spelt otherwise
        return True
    was_mangled = re.search(r"\)( const)?$", plain(ours.name).removesuffix("operator()"))
    return innermost and not was_mangled and plain(theirs) == plain(outermost.name)


def check_against_addr2line(names, reference, code):
    """Each instruction has the same frames; a line may be missing where it is not in the function's own file."""
    wrong, lines, missing = [], 0, 0
    for address in code:
        ours, theirs = names.at[address], reference[address]
        if not ours[-1].known:
            continue
        same = len(ours) == len(theirs) and all(
            same_function(a, b, ours[-1], i == 0) for i, (a, (b, _)) in enumerate(zip(ours, theirs)))
        for a, (_, line) in zip(ours, theirs):
            lines += 1
            missing += a.line == 0 and line != 0
            same = same and a.line in (0, line)
        if not same:
            wrong.append((hex(address), ours, theirs))
    assert not wrong, wrong[:5]
    assert lines and missing <= lines / 20


LAYOUTS = {
    "pie": ["-O2"],
    "unoptimised": ["-O0"],
    "at-fixed-addresses": ["-O2", "-no-pie"],
    "prelinked": ["-O2", "-pie", "-Wl,-Ttext-segment=0x10000000"],
    "one-segment": ["-O2", "-Wl,-z,noseparate-code"],
    "static-pie": ["-O2", "-static-pie"],
    "static": ["-O2", "-static"],
    "lld": ["-O2", "-fuse-ld=lld"],
    "several-code-segments": ["-O2", "-no-pie", "-Wl,--section-start=.text_apart=0x900000"],
    "without-build-id": ["-O2", "-Wl,--build-id=none"],
    "dwarf-4": ["-O2", "-gdwarf-4"],
    "lto": ["-O2", "-flto"],
    "bnd-stubs": ["-O2", "-fcf-protection=full", "-Wl,-z,ibtplt"],
    "lazy-stubs": ["-O2", "-Wl,-z,lazy"],
}


def planted(path):
    """Instructions of the functions that the source has."""
    spans = []
    for line in output_of("nm", "-S", "--defined-only", path).splitlines():
        words = line.split()
        if len(words) == 4 and plain(words[3]).lstrip("_") in (
                "main", "hidden_hot", "complain", "exported_neighbour", "far_away", "innermost", "between"):
            spans.append((int(words[0], 16), int(words[0], 16) + int(words[1], 16)))
    code = [a for part in instructions(path).values() for a in part if any(b <= a < e for b, e in spans)]
    assert len(code) > 40
    return code


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_instruction_has_the_frames_that_addr2line_gives(ask, tmp_path, layout):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-g", "-Wl,--build-id", *LAYOUTS[layout])
    code = planted(path)
    names = ask(path, code)
    assert all(frames[-1].known for frames in names.at.values())
    check_against_addr2line(names, by_addr2line(path, code), code)
    assert "__exported_neighbour" not in names.rows(), "of two names of one place the one that people know is shown"


def stripped_with(tmp_path, *copy_options, link=True, flags=()):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-g", "-O2", *flags)
    whole = tmp_path / "whole"
    shutil.copy(path, whole)
    output_of("objcopy", "--only-keep-debug", *copy_options, path, tmp_path / "program.debug")
    output_of("strip", path)
    if link:
        subprocess.run(["objcopy", "--add-gnu-debuglink=program.debug", "program"], cwd=tmp_path, check=True)
    return path, whole


@pytest.mark.parametrize("flags", [("-Wl,--build-id",), ("-Wl,--build-id=none",)])
@pytest.mark.parametrize("compression", [(), ("--compress-debug-sections",), ("--compress-debug-sections=zlib-gnu",)])
def test_a_stripped_program_is_named_by_its_debug_file(ask, tmp_path, flags, compression):
    path, whole = stripped_with(tmp_path, *compression, flags=flags)
    code = planted(whole)
    names = ask(path, code)
    check_against_addr2line(names, by_addr2line(whole, code), code)
    assert "program.debug" in names.note


def test_a_debug_file_is_found_by_its_build_id(ask, tmp_path):
    path, whole = stripped_with(tmp_path, link=False, flags=("-Wl,--build-id",))
    identity = build_id(path)
    folder = tmp_path / "debug" / ".build-id" / identity[:2]
    folder.mkdir(parents=True)
    (tmp_path / "program.debug").rename(folder / f"{identity[2:]}.debug")
    code = planted(whole)
    names = ask(path, code, "--debug", str(tmp_path / "debug"))
    check_against_addr2line(names, by_addr2line(whole, code), code)


@pytest.mark.parametrize("flags", [("-Wl,--build-id",), ("-Wl,--build-id=none",)])
def test_another_programs_debug_file_is_not_believed(ask, tmp_path, flags):
    path, whole = stripped_with(tmp_path, flags=flags)
    other = compiled(tmp_path, "gcc", "named_layout.c", "-g", "-O1", *flags, name="other")
    output_of("objcopy", "--only-keep-debug", other, tmp_path / "program.debug")
    assert not any(f.known for frames in ask(path, planted(whole)).at.values() for f in frames)


def test_a_stripped_static_function_is_one_row_and_its_neighbours_name_is_nowhere(ask, tmp_path):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-O2", "-shared", "-fPIC", "-Wl,--build-id", name="lib.so")
    starts = {w[2]: int(w[0], 16) for w in map(str.split, output_of("nm", "--defined-only", path).splitlines())}
    sizes = {w[3]: int(w[1], 16) for w in map(str.split, output_of("nm", "-S", path).splitlines()) if len(w) == 4}
    output_of("strip", path)
    hot = next(name for name in starts if plain(name) == "hidden_hot")
    names = ask(path, range(starts[hot], starts[hot] + sizes[hot]))
    assert names.rows() == {f"lib.so!?+0x{starts[hot]:x}"}
    assert "exported symbols only" in names.note
    around = ask(path, range(starts["exported_neighbour"], starts["exported_neighbour"] + sizes["exported_neighbour"]))
    assert around.rows() == {"exported_neighbour"}


def test_without_section_headers_the_unwind_entries_still_tell_functions_apart(ask, tmp_path):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-O2", "-Wl,--build-id")
    starts = {w[2]: int(w[0], 16) for w in map(str.split, output_of("nm", "--defined-only", path).splitlines())}
    data = bytearray(path.read_bytes())
    data[0x28:0x30] = bytes(8)   # e_shoff
    data[0x3a:0x40] = bytes(6)   # e_shentsize, e_shnum, e_shstrndx
    identity = build_id(path)
    path.write_bytes(data)
    hot = starts["exported_neighbour"]
    names = ask(path, [hot, hot + 4], "--build-id", identity, same=False)
    assert names.rows() == {f"program!?+0x{hot:x}"}


def test_labels_count_as_far_as_is_known_and_no_further(ask, tmp_path):
    path = compiled(tmp_path, "gcc", "named_labels.S", "-shared", "-nostdlib", "-Wl,--build-id", name="labels.so")
    starts = {w[2]: int(w[0], 16) for w in map(str.split, output_of("nm", "--defined-only", path).splitlines())}
    sized, bare, naked = starts["sized_label"], starts["bare_label"], starts["naked_label"]
    at = ask(path, range(sized, naked + 18)).at
    assert [at[sized + i][0].name for i in range(8)] == ["sized_label"] * 3 + ["labels.so!?"] * 5
    assert [at[bare + i][0].name for i in range(8)] == ["bare_label"] * 3 + ["labels.so!?"] * 5
    assert [at[naked + i][0].name for i in range(2)] == ["labels.so!?"] * 2
    assert [at[naked + 16 + i][0].name for i in range(2)] == [f"labels.so!?+0x{naked + 16:x}"] * 2


@pytest.mark.parametrize("flags", [(), ("-Wl,-z,lazy",), ("-fcf-protection=full", "-Wl,-z,ibtplt"), ("-fuse-ld=lld",),
                                   ("-fno-plt",), ("-Wl,-z,now",)])
def test_stubs_are_named_as_objdump_does(ask, tmp_path, flags):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-O2", "-Wl,--build-id", *flags)
    code = [a for name, part in instructions(path).items() if name.startswith(".plt") for a in part]
    expected, here = {}, None
    for line in output_of("objdump", "-dw", "--no-show-raw-insn", path).splitlines():
        if match := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            here = match[1]
        elif match := re.match(r" *([0-9a-f]+):\t", line):
            expected[int(match[1], 16)] = here
    for address, frames in ask(path, code).at.items():
        name, theirs = frames[0].name, re.sub(r"@.*@plt|@@?[A-Z].*", "", expected[address])
        assert not frames[0].known and name == "program!?plt" or name == theirs.split("@")[0] + "@plt" or (
            "@plt" not in theirs), (hex(address), name, theirs)
    if "-fno-plt" not in flags:
        assert "strlen@plt" in {f[0].name for f in ask(path, code).at.values()}


@pytest.mark.parametrize("flags", [("-O2",), ("-O0",), ("-O2", "-gdwarf-4"), ("-O1", "-flto"), ("-O0", "-fuse-ld=lld")])
def test_cxx_names_are_those_of_addr2line(ask, tmp_path, flags):
    path = compiled(tmp_path, "g++", "named_shapes.cc", "-g", "-std=c++17", "-Wl,--build-id", *flags)
    code = instructions(path)[".text"]
    names = ask(path, code)
    check_against_addr2line(names, by_addr2line(path, code), code)
    rows = {re.sub(r" \[clone .*", "", f.name) for frames in names.at.values() for f in frames}
    assert {"work(int)", "(anonymous namespace)::Hidden::f(int) const", "outer::inner::Box<long>::get(long)"} <= rows
    assert not any(name.startswith("_Z") for name in rows)


def test_an_inlined_lambda_is_called_one(ask, tmp_path):
    path = compiled(tmp_path, "g++", "named_lambda.cc", "-O2", "-g")
    names = ask(path, instructions(path)[".text"])
    inlined = {frame.name for frames in names.at.values() for frame in frames[:-1]}
    assert any(name.startswith("main::{lambda at line 16}::operator()") for name in inlined)
    assert not any("unnamed" in name for name in inlined)


def test_with_less_detail_the_outermost_names_stay(ask, tmp_path):
    path = compiled(tmp_path, "g++", "named_shapes.cc", "-g", "-O2", "-std=c++17", "-Wl,--build-id")
    code = instructions(path)[".text"]
    full, without_inlines, bare = (ask(path, code, *options).at for options in ((), ("--no-inlines",), ("--no-dwarf",)))
    assert any(len(frames) > 1 for frames in full.values())
    for address, frames in full.items():
        (one,), (other,) = without_inlines[address], bare[address]
        assert frames[-1].name == one.name == other.name
        assert (one.file, one.first) == (frames[-1].file, frames[-1].first)
        assert not other.file and not other.line


@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5"])
def test_split_debug_information_gives_the_same_as_whole(ask, tmp_path, dwarf):
    found = []
    for split in ((), ("-gsplit-dwarf",)):
        path = compiled(tmp_path, "g++", "named_shapes.cc", "-g", dwarf, *split, "-O2", "-std=c++17", "-Wl,--build-id",
                        name="split" if split else "whole")
        names = ask(path, instructions(path)[".text"])
        found.append([[(f.name, f.line) for f in frames] for frames in names.at.values() if frames[-1].known])
    assert any(len(frames) > 2 for frames in found[1])
    assert found[0] == found[1]


@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_rust_names_have_neither_hash_nor_mangling(ask, tmp_path, monkeypatch, mangling):
    need("rustc", shutil.which("rustc"), "rustc is not installed")
    flags = ["-g", "-O", "-C", f"symbol-mangling-version={mangling}"]
    if mangling == "legacy":  # a choice that newer compilers count as unstable
        flags += ["-Z", "unstable-options"]
        monkeypatch.setenv("RUSTC_BOOTSTRAP", "1")
    path = compiled(tmp_path, "rustc", "named_rust.rs", *flags)
    code = random.Random(1).sample(instructions(path)[".text"], 4000)
    spans = [(int(w[0], 16), int(w[1], 16)) for w in map(str.split, output_of("nm", "-S", path).splitlines())
             if len(w) == 4 and "named_rust" in w[3] or w[-1].endswith("program3hot")]
    names = ask(path, sorted(set(code) | {start for start, _ in spans}))
    rows = {f.name for frames in names.at.values() for f in frames if f.known}
    assert not any(re.search(r"^_R|^_ZN|::h[0-9a-f]{16}$", name) for name in rows)
    assert any(re.fullmatch(r"(program|named_rust)(\[\w+\])?::hot", name) for name in rows)


def test_a_file_that_changed_gives_no_names(ask, tmp_path):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-O2", "-g", "-Wl,--build-id")
    names = ask(path, planted(path), "--build-id", "00" * 20, same=False)
    assert names.rows() == {"program!?"}
    assert names.note.startswith("No names: changed since the run")
    assert len(names.warnings) == 1


def test_a_file_of_another_machine_is_refused(ask, tmp_path):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-O2", "-g", "-Wl,--build-id=none")
    code, data = planted(path), bytearray(path.read_bytes())
    for offset, value in ((4, 1), (5, 2), (18, 8)):  # 32 bits, big-endian, MIPS
        other = bytearray(data)
        other[offset] = value
        path.write_bytes(other)
        names = ask(path, code, same=False)
        assert names.rows() == {"program!?"} and names.note.startswith("No names: ")


def test_damaged_files_cost_names_and_nothing_else(ask, tmp_path):
    path = compiled(tmp_path, "gcc", "named_layout.c", "-O2", "-g", "-Wl,--build-id=none")
    code, data, dice = planted(path), path.read_bytes(), random.Random(7)
    for attempt in range(120):
        hurt = bytearray(data)
        if attempt % 3 == 0:
            del hurt[dice.randrange(len(hurt)):]
        else:
            for _ in range(1 << dice.randrange(10)):
                hurt[dice.randrange(64 if attempt % 3 == 1 and attempt < 20 else 0, len(hurt))] = dice.randrange(256)
        path.write_bytes(hurt)
        names = ask(path, code, same=False)
        assert len(names.at) == len(set(code)) and all(names.at.values())


def test_libc_is_named_as_nm_does(ask):
    path = pathlib.Path("/lib/x86_64-linux-gnu/libc.so.6")
    need("debian-libc", path.is_file() and build_id(path), "no libc of this name")
    spans = {}
    for line in output_of("nm", "-DS", "--defined-only", path).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "TtWw":
            spans.setdefault(int(words[0], 16), set()).add(words[3].partition("@")[0])
    names = ask(path, spans)
    for address, theirs in spans.items():
        name = names.at[address][-1].name
        assert name in theirs or theirs & {name.lstrip("_"), "__" + name, "_" + name, "__libc_" + name}, (name, theirs)
    assert {"malloc", "free", "read", "puts"} <= names.rows()
