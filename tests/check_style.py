"""What can be checked of the style: tabs, columns, trailing blanks, file-top comments, lengths of file and function."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("src", "include", "tests", "bench")
COLUMNS = 120
TAB = 8
FILE_LINES = 600
FUNCTION_LINES = 75  # about 60 is meant; this is where it is certainly too long


def width(line):
    return len(line.expandtabs(TAB))


def needs_top_comment(path):
    """A .c file is explained by the header of its name; a test by the names of its tests."""
    if path.suffix == ".c":
        return not path.with_suffix(".h").exists() and path.parts[len(ROOT.parts)] == "src"
    return path.suffix in (".h", ".def")


def has_header_elsewhere(text):
    """The first include names the header that explains this file, also where several files share one."""
    return re.match(r'#include "[a-z_]+/[a-z_0-9]+\.h"\n', text) is not None


def functions(lines):
    """(first line, length) of each function: from a '{' in column 1 to the '}' in column 1."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start:
            yield start, number - start + 1
            start = None


def problems_of(path):
    text = path.read_text()
    lines = text.split("\n")
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if width(line) > COLUMNS:
            yield number, f"{width(line)} columns"
        if path.suffix in (".c", ".h") and re.match(r" {2,}\S", line) and not re.match(r" +\*", line):
            yield number, "indented with blanks"
    if needs_top_comment(path) and not text.startswith("/*") and not has_header_elsewhere(text):
        yield 1, "begins with no comment that says what the file is for"
    if path.suffix in (".c", ".h"):
        if len(lines) > FILE_LINES:
            yield 1, f"{len(lines)} lines; split it at {FILE_LINES}"
        for start, length in functions(lines):
            if length > FUNCTION_LINES:
                yield start, f"a function of {length} lines"


def main():
    files = sorted(path for folder in FOLDERS for ending in ("*.c", "*.h", "*.def", "*.py", "*.sh")
                   for path in (ROOT / folder).rglob(ending) if "data" not in path.parts)
    found = [f"{path.relative_to(ROOT)}:{line}: {sentence}" for path in files for line, sentence in problems_of(path)]
    print("\n".join(found) if found else f"style: {len(files)} files")
    return 1 if found or not files else 0


sys.exit(main())
