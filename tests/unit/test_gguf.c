#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "ingest/gguf.h"
#include "scratch.h"

enum { U32 = 4, I32 = 5, F32 = 6, BOOL = 7, STRING = 8, ARRAY = 9, U64 = 10 };
enum { TENSOR_F32 = 0, TENSOR_F16 = 1, TENSOR_Q8_0 = 8, TENSOR_Q4_K = 12, TENSOR_MXFP4 = 39, TENSOR_NEWER = 900 };

#define ALIGNMENT 32

/* A model that is put together piece by piece. */
struct model {
	struct buf keys, tensors;
	uint64_t key_count, tensor_count, data; /* bytes of tensors so far */
	uint32_t version;
};

static void model_init(struct model *m)
{
	*m = (struct model){.version = 3};
	buf_init(&m->keys);
	buf_init(&m->tensors);
}

static void model_release(struct model *m)
{
	buf_release(&m->keys);
	buf_release(&m->tensors);
}

static void put(struct buf *b, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_putc(b, (char)(value >> 8 * i));
}

static void put_text(struct buf *b, const char *text)
{
	put(b, strlen(text), 8);
	buf_puts(b, text);
}

static void key(struct model *m, const char *name, uint32_t type, uint64_t value, size_t bytes)
{
	put_text(&m->keys, name);
	put(&m->keys, type, 4);
	put(&m->keys, value, bytes);
	m->key_count++;
}

static void key_u32(struct model *m, const char *name, uint32_t value)
{
	key(m, name, U32, value, 4);
}

static void key_text(struct model *m, const char *name, const char *value)
{
	put_text(&m->keys, name);
	put(&m->keys, STRING, 4);
	put_text(&m->keys, value);
	m->key_count++;
}

static void key_list(struct model *m, const char *name, uint32_t type, uint64_t count)
{
	put_text(&m->keys, name);
	put(&m->keys, ARRAY, 4);
	put(&m->keys, type, 4);
	put(&m->keys, count, 8);
	m->key_count++;
}

static void tensor_at(struct model *m, const char *name, uint32_t type, uint64_t columns, uint64_t rows,
		      uint64_t offset)
{
	put_text(&m->tensors, name);
	put(&m->tensors, 2, 4);
	put(&m->tensors, columns, 8);
	put(&m->tensors, rows, 8);
	put(&m->tensors, type, 4);
	put(&m->tensors, offset, 8);
	m->tensor_count++;
}

static void tensor(struct model *m, const char *name, uint32_t type, uint64_t columns, uint64_t rows, uint64_t bytes)
{
	tensor_at(m, name, type, columns, rows, m->data);
	m->data += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void build(const struct model *m, struct buf *file)
{
	buf_puts(file, "GGUF");
	put(file, m->version, 4);
	put(file, m->tensor_count, 8);
	put(file, m->key_count, 8);
	buf_append(file, m->keys.text, m->keys.length);
	buf_append(file, m->tensors.text, m->tensors.length);
}

/* The header, padding, and tensors that are a hole. */
static const char *save(const struct model *m)
{
	const char *path = scratch_path("model.gguf");
	struct buf file;

	buf_init(&file);
	build(m, &file);
	while (file.length % ALIGNMENT)
		buf_putc(&file, 0);
	assert_int_equal(fs_write_file(path, file.text, file.length, NULL), 0);
	assert_int_equal(truncate(path, (off_t)(file.length + m->data)), 0);
	buf_release(&file);
	return path;
}

static struct gguf read_model(const struct model *m)
{
	struct gguf g;
	struct error err;

	if (gguf_read(save(m), &g, &err) < 0)
		fail_msg("%s", err.text);
	return g;
}

static void assert_refused(const char *path, const char *sentence)
{
	struct gguf g = {.layers = 77};
	struct error err;

	assert_int_equal(gguf_read(path, &g, &err), -1);
	if (!strstr(err.text, sentence))
		fail_msg("it says \"%s\", not \"%s\"", err.text, sentence);
	assert_ptr_equal(strstr(err.text, path), err.text);
	assert_int_equal(g.layers, 77);
}

static void put_dense(struct model *m)
{
	key_text(m, "general.architecture", "llama");
	key_u32(m, "llama.block_count", 2);
	key_u32(m, "llama.embedding_length", 64);
	key_u32(m, "llama.attention.head_count", 8);
	key_u32(m, "llama.attention.head_count_kv", 2);
	key_list(m, "tokenizer.ggml.tokens", STRING, 3);
	put_text(&m->keys, "<s>");
	put_text(&m->keys, "");
	put_text(&m->keys, "word");
	tensor(m, "token_embd.weight", TENSOR_F16, 64, 3, 384);
	tensor(m, "blk.0.attn_norm.weight", TENSOR_F32, 64, 1, 256);
	tensor(m, "blk.0.ffn_up.weight", TENSOR_Q8_0, 64, 4, 272);
	tensor(m, "blk.1.ffn_up.weight", TENSOR_Q4_K, 256, 2, 288);
}

static void a_dense_models_token_reads_all_but_the_embedding(void **state)
{
	struct model m;
	struct gguf g;

	(void)state;
	model_init(&m);
	put_dense(&m);
	tensor(&m, "output.weight", TENSOR_MXFP4, 64, 3, 102);
	g = read_model(&m);
	assert_string_equal(g.architecture, "llama");
	assert_int_equal(g.tensors, 5);
	assert_int_equal(g.tensor_bytes, 384 + 256 + 272 + 288 + 102);
	assert_int_equal(g.embedding_bytes, 384);
	assert_true(g.has_output);
	assert_int_equal(g.vocabulary, 3);
	assert_true(gguf_bytes_per_token(&g) == 256 + 272 + 288 + 102 + 384 / 3);
	/* 2 layers, 2 heads, a key and a value of 64 / 8 numbers each, 2 bytes a number */
	assert_true(gguf_kv_bytes_per_position(&g) == 2 * 2 * 2 * 8 * 2);
	model_release(&m);
}

static void an_embedding_that_is_the_output_is_read_whole(void **state)
{
	struct model m;
	struct gguf g;

	(void)state;
	model_init(&m);
	m.version = 2;
	put_dense(&m);
	key_u32(&m, "llama.attention.key_length", 16);
	key_u32(&m, "llama.attention.value_length", 4);
	g = read_model(&m);
	assert_false(g.has_output);
	assert_true(gguf_bytes_per_token(&g) == 384 + 256 + 272 + 288);
	assert_true(gguf_kv_bytes_per_position(&g) == 2 * 2 * (16 + 4) * 2);
	model_release(&m);
}

static void of_experts_the_share_that_is_used_is_read(void **state)
{
	struct model m;
	struct gguf g;

	(void)state;
	model_init(&m);
	key_text(&m, "general.architecture", "qwen3moe");
	key_u32(&m, "qwen3moe.block_count", 3);
	key_u32(&m, "qwen3moe.nextn_predict_layers", 1);
	key_u32(&m, "qwen3moe.expert_count", 8);
	key_u32(&m, "qwen3moe.expert_used_count", 2);
	tensor(&m, "blk.0.attn_q.weight", TENSOR_F32, 8, 1, 32);
	tensor(&m, "blk.0.ffn_gate_exps.weight", TENSOR_F32, 8, 100, 3200);
	tensor(&m, "blk.1.ffn_gate_up_exps.weight", TENSOR_F32, 8, 100, 3200);
	tensor(&m, "blk.1.ffn_down.7.weight", TENSOR_F32, 8, 50, 1600);
	tensor(&m, "blk.1.ffn_down_shexp.weight", TENSOR_F32, 8, 2, 64);
	tensor(&m, "blk.1.ffn_gate_exps.bias", TENSOR_F32, 8, 1, 32);
	tensor(&m, "blk.2.ffn_gate_exps.weight", TENSOR_F32, 8, 100, 3200);
	tensor(&m, "per_layer_token_embd.weight", TENSOR_F32, 8, 1, 32);
	g = read_model(&m);
	assert_int_equal(g.expert_bytes, 8000);
	assert_int_equal(g.prediction_bytes, 3200);
	assert_int_equal(g.lookup_bytes, 32);
	assert_true(gguf_bytes_per_token(&g) == 32 + 64 + 32 + 8000 / 4 + 32);
	model_release(&m);
}

static void heads_may_be_given_for_each_layer(void **state)
{
	struct model m;
	struct gguf g;

	(void)state;
	model_init(&m);
	key_text(&m, "general.architecture", "jamba");
	key_u32(&m, "jamba.block_count", 4);
	key_u32(&m, "jamba.attention.key_length", 10);
	key_u32(&m, "jamba.attention.value_length", 10);
	key_u32(&m, "jamba.ssm.state_size", 16);
	key_list(&m, "jamba.attention.head_count_kv", I32, 4);
	for (int i = 0; i < 4; i++)
		put(&m.keys, i == 1 || i == 3 ? 8 : 0, 4);
	g = read_model(&m);
	assert_int_equal(g.kv_heads, 8);
	assert_int_equal(g.kv_heads_sum, 16);
	assert_true(gguf_kv_bytes_per_position(&g) == 16 * 20 * 2);
	key_u32(&m, "jamba.attention.sliding_window", 1024);
	g = read_model(&m);
	assert_true(isnan(gguf_kv_bytes_per_position(&g)));
	model_release(&m);
}

static void what_a_header_does_not_say_is_not_made_up(void **state)
{
	struct model m;
	struct gguf g;

	(void)state;
	model_init(&m);
	g = read_model(&m);
	assert_string_equal(g.architecture, "");
	assert_true(gguf_bytes_per_token(&g) == 0);
	assert_true(isnan(gguf_kv_bytes_per_position(&g)));
	key_text(&m, "general.architecture", "llama");
	key_u32(&m, "clip.block_count", 5);
	key(&m, "llama.block_count", I32, UINT32_MAX, 4); /* -1 */
	key(&m, "llama.rope.freq_base", F32, 0x3f800000, 4);
	key(&m, "tokenizer.ggml.add_bos_token", BOOL, 1, 1);
	g = read_model(&m);
	assert_int_equal(g.layers, 0);
	key(&m, "llama.block_count", U64, 6, 8);
	g = read_model(&m);
	assert_int_equal(g.layers, 6);
	model_release(&m);
}

static void a_tensor_of_a_newer_type_reaches_to_the_next_one(void **state)
{
	struct model m;
	struct gguf g;

	(void)state;
	model_init(&m);
	tensor(&m, "a", TENSOR_NEWER, 100, 100, 640);
	tensor(&m, "b", TENSOR_F32, 8, 1, 32);
	tensor(&m, "c", TENSOR_NEWER, 100, 100, 960);
	g = read_model(&m);
	assert_int_equal(g.tensor_bytes, 640 + 32 + 960);
	tensor_at(&m, "d", TENSOR_F32, 8, 1, 0);
	assert_refused(save(&m), "the size of tensor c cannot be told: its type 900 is unknown");
	model_release(&m);
}

static void parts_of_a_split_model_add_up(void **state)
{
	struct model m, second;
	struct gguf whole, part;

	(void)state;
	model_init(&m);
	model_init(&second);
	put_dense(&m);
	key(&m, "split.count", 2, 2, 2); /* 16 bits wide */
	key(&m, "split.no", 2, 0, 2);
	key(&second, "split.count", 2, 2, 2);
	key(&second, "split.no", 2, 1, 2);
	tensor(&second, "output.weight", TENSOR_F32, 64, 3, 768);
	tensor(&second, "blk.1.ffn_down_exps.weight", TENSOR_F32, 64, 3, 768);
	whole = read_model(&m);
	part = read_model(&second);
	assert_int_equal(whole.split_count, 2);
	assert_int_equal(part.split_number, 1);
	gguf_add(&whole, &part);
	assert_int_equal(whole.tensors, 6);
	assert_int_equal(whole.layers, 2);
	assert_int_equal(whole.expert_bytes, 768);
	assert_true(whole.has_output);
	assert_true(gguf_bytes_per_token(&whole) == 256 + 272 + 288 + 768 + 768 + 384 / 3);
	model_release(&m);
	model_release(&second);
}

static void every_cut_header_is_refused_and_names_the_byte(void **state)
{
	const char *path = scratch_path("cut");
	struct model m;
	struct buf file;
	struct gguf g;
	struct error err;

	(void)state;
	model_init(&m);
	buf_init(&file);
	put_dense(&m);
	build(&m, &file);
	for (size_t length = 0; length <= file.length; length++) {
		assert_int_equal(fs_write_file(path, file.text, length, NULL), 0);
		assert_int_equal(gguf_read(path, &g, &err), -1);
		assert_true(strstr(err.text, "byte") || strstr(err.text, "GGUF"));
		assert_int_equal(gguf_is(path), length >= 4);
	}
	assert_non_null(strstr(err.text, "it is cut short"));
	buf_release(&file);
	model_release(&m);
}

static void other_versions_and_byte_orders_are_refused(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	m.version = 1;
	assert_refused(save(&m), "it is GGUF version 1; versions 2 and 3 are read");
	m.version = 4;
	assert_refused(save(&m), "it is GGUF version 4");
	m.version = 0;
	assert_refused(save(&m), "it is GGUF version 0");
	m.version = 3 << 24;
	assert_refused(save(&m), "it is big-endian, which is not read");
	model_release(&m);
}

static void refuse_keys(void (*damage)(struct model *m), const char *sentence)
{
	struct model m;

	model_init(&m);
	damage(&m);
	m.data = 4096;
	assert_refused(save(&m), sentence);
	model_release(&m);
}

static void claim_many_keys(struct model *m)
{
	m->key_count = UINT64_MAX;
}

static void claim_many_tensors(struct model *m)
{
	m->tensor_count = UINT64_MAX / 8;
}

static void write_long_text(struct model *m)
{
	key(m, "a", STRING, UINT64_MAX - 3, 8);
}

static void write_unknown_type(struct model *m)
{
	key(m, "a", 13, 0, 4);
}

static void write_unknown_list(struct model *m)
{
	key_list(m, "a", 99, 1);
}

static void write_long_list(struct model *m)
{
	key_list(m, "a", U64, UINT64_MAX / 8 + 2);
}

static void write_long_texts(struct model *m)
{
	key_list(m, "a", STRING, UINT64_C(1) << 61);
}

static void write_deep_lists(struct model *m)
{
	key_list(m, "a", ARRAY, 1);
	for (int i = 0; i < 100; i++) {
		put(&m->keys, ARRAY, 4);
		put(&m->keys, 1, 8);
	}
}

static void write_odd_alignment(struct model *m)
{
	key_u32(m, "general.alignment", 24);
}

static void write_five_dimensions(struct model *m)
{
	put_text(&m->tensors, "a");
	put(&m->tensors, 5, 4);
	for (int i = 0; i < 5; i++)
		put(&m->tensors, 1, 8);
	put(&m->tensors, 0, 4);
	put(&m->tensors, 0, 8);
	m->tensor_count++;
}

static void write_huge_tensor(struct model *m)
{
	tensor_at(m, "a", TENSOR_F32, UINT64_C(1) << 32, UINT64_C(1) << 32, 0);
}

static void write_far_tensor(struct model *m)
{
	tensor_at(m, "a", TENSOR_F32, 8, 8, UINT64_MAX - 8);
}

static void write_half_block(struct model *m)
{
	tensor_at(m, "a", TENSOR_Q8_0, 33, 1, 0);
}

static void write_overlapping_tensors(struct model *m)
{
	for (int i = 0; i < 9; i++)
		tensor_at(m, "a", TENSOR_F32, 1024, 1, 0);
}

static void hostile_headers_are_refused(void **state)
{
	(void)state;
	refuse_keys(claim_many_keys, "there are more keys than the file has room for");
	refuse_keys(claim_many_tensors, "there are more tensors than the file has room for");
	refuse_keys(write_long_text, "18446744073709551612 bytes are to follow, but the file ends");
	refuse_keys(write_unknown_type, "byte 37: a value is of an unknown type");
	refuse_keys(write_unknown_list, "a list is of an unknown type");
	refuse_keys(write_long_list, "a list is longer than the rest of the file");
	refuse_keys(write_long_texts, "a list is longer than the rest of the file");
	refuse_keys(write_deep_lists, "lists stand in lists too deep");
	refuse_keys(write_odd_alignment, "general.alignment is not a power of two");
	refuse_keys(write_five_dimensions, "a tensor has more than 4 dimensions");
	refuse_keys(write_huge_tensor, "a tensor has more weights than can be counted");
	refuse_keys(write_far_tensor, "tensor a would be larger than any file");
	refuse_keys(write_half_block, "the rows of tensor a are no whole blocks of its type");
	refuse_keys(write_overlapping_tensors, "its tensors lie over one another");
}

/* A vocabulary of a terabyte, in a file that has it: a hole. */
static void an_endless_header_is_given_up(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	key_list(&m, "tokenizer.ggml.tokens", STRING, UINT64_C(1) << 36);
	m.data = UINT64_C(1) << 40;
	assert_refused(save(&m), "the header goes on beyond 256 MiB");
	model_release(&m);
}

static void what_is_no_file_is_refused(void **state)
{
	const char *fifo = scratch_path("fifo");

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_refused(fifo, "it is not a regular file");
	assert_refused(scratch_dir, "it is not a regular file");
	assert_refused("/nonexistent.gguf", "No such file or directory");
	assert_int_equal(gguf_is(fifo), 0);
	assert_int_equal(gguf_is("/nonexistent.gguf"), 0);
	assert_int_equal(fs_write_file(scratch_path("text"), "GGML and more", 13, NULL), 0);
	assert_int_equal(gguf_is(scratch_path("text")), 0);
	assert_refused(scratch_path("text"), "it does not begin with GGUF");
}

#define SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH(a_dense_models_token_reads_all_but_the_embedding),
		SCRATCH(an_embedding_that_is_the_output_is_read_whole),
		SCRATCH(of_experts_the_share_that_is_used_is_read),
		SCRATCH(heads_may_be_given_for_each_layer),
		SCRATCH(what_a_header_does_not_say_is_not_made_up),
		SCRATCH(a_tensor_of_a_newer_type_reaches_to_the_next_one),
		SCRATCH(parts_of_a_split_model_add_up),
		SCRATCH(every_cut_header_is_refused_and_names_the_byte),
		SCRATCH(other_versions_and_byte_orders_are_refused),
		SCRATCH(hostile_headers_are_refused),
		SCRATCH(an_endless_header_is_given_up),
		SCRATCH(what_is_no_file_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
