"""replay.py LOG [SCALE]: prints a recorded log on both standard streams as its engine did, SCALE times as slowly."""
import os
import sys
import time


def lines(path):
    """(seconds since the start, descriptor, bytes) of each line. Lines of one read share a time."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as log:
        for row in log:
            fields = row.rstrip("\n").split("\t", 2)
            if len(fields) == 3 and fields[1] in ("o", "e"):
                text = fields[2].replace("\\r", "\r").replace("\\e", "\x1b").replace("\\t", "\t")
                yield float(fields[0]), 1 if fields[1] == "o" else 2, (text + "\n").encode("utf-8", "surrogateescape")


def main():
    start, scale = time.monotonic(), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    for t, descriptor, text in lines(sys.argv[1]):
        time.sleep(max(0.0, start + scale * t - time.monotonic()))
        os.write(descriptor, text)


if __name__ == "__main__":
    main()
