/* What is odd about a command's runs, in words, with the next step that helps and is not already taken. Pure. */
#ifndef ASSAY_JUDGE_BENCH_NOTES_H
#define ASSAY_JUDGE_BENCH_NOTES_H

#include "judge/bench.h"

/* Fills the notes of command `index`; its figures and its comparison are there. */
void bench_notes(const struct bench *b, struct bench_answer *a, size_t index);

#endif
