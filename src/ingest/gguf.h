/* The header of a GGUF model file (llama.cpp's format, versions 2 and 3): how large its tensors are, and what of them
 * one generated token reads. Never the weights themselves.
 *
 * It must cope with any bytes: nothing of the file is trusted, and memory stays bounded. Reading puts the header into
 * the page cache, so a run's own files are to be read after it. */
#ifndef ASSAY_INGEST_GGUF_H
#define ASSAY_INGEST_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct gguf {
	char architecture[64];	  /* general.architecture, "" where absent; "clip" is what goes with a model, not one */
	uint64_t file_bytes;	  /* of this file */
	uint64_t tensors;	  /* in this file */
	uint64_t tensor_bytes;	  /* of all of them, the ones below included */
	uint64_t embedding_bytes; /* token_embd.weight: one row per token is read, unless it is the output too */
	uint64_t lookup_bytes;	  /* other tables of which a token takes one row */
	uint64_t expert_bytes;	  /* tensors of experts (..._exps.weight) */
	uint64_t prediction_bytes; /* of the last layers, which only guess further tokens: engines that do not draft
				      with them leave them alone. Of a split model seen in its first file only. */
	bool has_output;	   /* output.weight is there, so that the embedding is not read for it */
	/* 0: absent. */
	uint64_t vocabulary, layers, heads, kv_heads, embedding_length, key_length, value_length;
	uint64_t kv_heads_sum;	    /* over the layers, where the header has one number for each */
	uint64_t prediction_layers; /* how many of `layers` belong to prediction_bytes */
	uint64_t experts, experts_used;
	uint64_t split_count, split_number; /* of a model in several files; 0: one file */
	bool partial_cache;		    /* some layers keep or read less than a key and a value of each position */
	bool recurrent; /* some layers keep a state instead; where kv_heads_sum is known it has them as 0 */
};

/* 1 where the file begins with GGUF's magic, 0 where not or it cannot be read. */
int gguf_is(const char *path);

/* Reads the header. Fails with a sentence that names the file and the byte where it is not as it must be. */
int gguf_read(const char *path, struct gguf *ret, struct error *err);

/* Adds one file's part of a split model to another's. */
void gguf_add(struct gguf *to, const struct gguf *part);

/* Bytes of weights that one token of one sequence reads: all tensors less the embedding (but for a row; not where it is
 * the output as well), experts in the share that is used. */
double gguf_bytes_per_token(const struct gguf *g);

/* Bytes of keys and values (16 bits each, the engines' default) read for each position of the context; NaN where the
 * header does not say enough, or layers differ in ways that it does not count. */
double gguf_kv_bytes_per_position(const struct gguf *g);

#endif
