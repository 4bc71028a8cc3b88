"""Reads numbers from text, then works on them as a matrix: two phases that use the CPU in different ways.

    assay profile -- python3 examples/fit.py
"""
import os
import random

import numpy


def phase(name):
    if "ASSAY_MARKERS" in os.environ:
        with open(os.environ["ASSAY_MARKERS"], "a") as markers:
            markers.write(name + "\n")


SIZE = 1200
lines = [str(random.random()) for _ in range(SIZE * SIZE)]
phase("load")
numbers = [float(line) for line in lines]
phase("solve")
matrix = numpy.array(numbers).reshape(SIZE, SIZE)
for _ in range(4):
    print(numpy.linalg.svd(matrix, compute_uv=False)[0])
