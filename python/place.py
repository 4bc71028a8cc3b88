"""Prints where a prefix keeps packages of this Python, the way from there to a library, and whether this Python looks
there: for meson.build.

Debian's Python looks in /usr/local/lib/python3.N/dist-packages, others in site-packages: it knows best itself.
"""
import os
import site
import sys

prefix, library = sys.argv[1:]
own = [path for path in site.getsitepackages() if path.startswith(os.path.join(prefix, "lib"))]
folder = own[0] if own else os.path.join(prefix, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
print(folder)
print(os.path.relpath(library, os.path.join(folder, "assay")))
print("seen" if own else "unseen")
