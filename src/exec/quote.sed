# Makes lines of C string literals of a text, without its includes of our own headers.
/^#include "exec\//d
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
