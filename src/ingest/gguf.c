#include "ingest/gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ingest/gguf_values.h"

#define DIMENSIONS_MAX 4 /* GGML_MAX_DIMS */
#define TENSOR_LEAST 24	 /* bytes of a tensor's entry without name and dimensions ... */
#define ENTRY_LEAST 13	 /* ... and of a key with its value */
#define ALIGNMENT_DEFAULT 32
#define ALIGNMENT_MAX (UINT64_C(1) << 30)

/* How tensors of each type are stored: so many weights in so many bytes. By the number in the file (enum ggml_type);
 * those that are left out were withdrawn before any file had them, or came later than this table. */
static const struct {
	uint16_t weights, bytes;
} blocks[] = {
	[0] = {1, 4},	   /* F32 */
	[1] = {1, 2},	   /* F16 */
	[2] = {32, 18},	   /* Q4_0 */
	[3] = {32, 20},	   /* Q4_1 */
	[6] = {32, 22},	   /* Q5_0 */
	[7] = {32, 24},	   /* Q5_1 */
	[8] = {32, 34},	   /* Q8_0 */
	[9] = {32, 36},	   /* Q8_1 */
	[10] = {256, 84},  /* Q2_K */
	[11] = {256, 110}, /* Q3_K */
	[12] = {256, 144}, /* Q4_K */
	[13] = {256, 176}, /* Q5_K */
	[14] = {256, 210}, /* Q6_K */
	[15] = {256, 292}, /* Q8_K */
	[16] = {256, 66},  /* IQ2_XXS */
	[17] = {256, 74},  /* IQ2_XS */
	[18] = {256, 98},  /* IQ3_XXS */
	[19] = {256, 50},  /* IQ1_S */
	[20] = {32, 18},   /* IQ4_NL */
	[21] = {256, 110}, /* IQ3_S */
	[22] = {256, 82},  /* IQ2_S */
	[23] = {256, 136}, /* IQ4_XS */
	[24] = {1, 1},	   /* I8 */
	[25] = {1, 2},	   /* I16 */
	[26] = {1, 4},	   /* I32 */
	[27] = {1, 8},	   /* I64 */
	[28] = {1, 8},	   /* F64 */
	[29] = {256, 56},  /* IQ1_M */
	[30] = {1, 2},	   /* BF16 */
	[31] = {32, 18},   /* Q4_0_4_4 */
	[32] = {32, 18},   /* Q4_0_4_8 */
	[33] = {32, 18},   /* Q4_0_8_8 */
	[34] = {256, 54},  /* TQ1_0 */
	[35] = {256, 66},  /* TQ2_0 */
	[36] = {32, 18},   /* IQ4_NL_4_4 */
	[37] = {32, 18},   /* IQ4_NL_4_8 */
	[38] = {32, 18},   /* IQ4_NL_8_8 */
	[39] = {32, 17},   /* MXFP4 */
	[40] = {64, 36},   /* NVFP4 */
	[41] = {128, 18},  /* Q1_0 */
	[42] = {64, 18},   /* Q2_0 */
};

/* Keys behind "ARCHITECTURE.", and where their number goes. */
static const struct {
	const char *key;
	size_t place;
} numbers[] = {
	{"vocab_size", offsetof(struct gguf, vocabulary)},
	{"block_count", offsetof(struct gguf, layers)},
	{"nextn_predict_layers", offsetof(struct gguf, prediction_layers)},
	{"embedding_length", offsetof(struct gguf, embedding_length)},
	{"attention.head_count", offsetof(struct gguf, heads)},
	{"attention.head_count_kv", offsetof(struct gguf, kv_heads)},
	{"attention.key_length", offsetof(struct gguf, key_length)},
	{"attention.value_length", offsetof(struct gguf, value_length)},
	{"expert_count", offsetof(struct gguf, experts)},
	{"expert_used_count", offsetof(struct gguf, experts_used)},
};

static bool is_one_of(const char *key, const char *const *of)
{
	for (; *of; of++)
		if (strcmp(key, *of) == 0)
			return true;
	return false;
}

static void take_model_key(struct gguf *g, const char *key, const struct gguf_value *v)
{
	static const char *const partial[] = {"attention.sliding_window", "attention.kv_lora_rank",
					      "attention.shared_kv_layers", NULL};
	static const char *const recurrent[] = {"ssm.state_size",
						"ssm.conv_kernel",
						"wkv.head_size",
						"shortconv.l_cache",
						"kda.head_dim",
						"full_attention_interval",
						NULL};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (strcmp(key, numbers[i].key) == 0)
			memcpy((char *)g + numbers[i].place, &v->first, sizeof v->first);
	if (v->count && v->count <= GGUF_LIST_MAX && strcmp(key, "attention.head_count_kv") == 0)
		g->kv_heads_sum = v->sum;
	if (v->first && is_one_of(key, partial))
		g->partial_cache = true;
	if (v->first && is_one_of(key, recurrent))
		g->recurrent = true;
}

/* What is known while the file is read, beyond what it gives. */
struct progress {
	uint64_t alignment, tokens;
	uint64_t embedding_rows;
	uint64_t end; /* of the last tensor, from where their data begins */
	/* A tensor of a type that is not known reaches to the next one. */
	bool open;
	uint32_t open_type;
	uint64_t open_offset;
	char open_name[GGUF_NAME_ROOM];
};

static void take_key(struct gguf *g, struct progress *p, const char *key, const struct gguf_value *v)
{
	size_t length = strlen(g->architecture), prefix = strcspn(key, ".");

	if (strcmp(key, "general.architecture") == 0)
		snprintf(g->architecture, sizeof g->architecture, "%.*s", (int)sizeof g->architecture - 1, v->text);
	else if (strcmp(key, "general.alignment") == 0)
		p->alignment = v->first;
	else if (strcmp(key, "split.count") == 0)
		g->split_count = v->first;
	else if (strcmp(key, "split.no") == 0)
		g->split_number = v->first;
	else if (strcmp(key, "tokenizer.ggml.tokens") == 0)
		p->tokens = v->count;
	else if (key[prefix] && (length == 0 || (length == prefix && memcmp(g->architecture, key, length) == 0)))
		take_model_key(g, key + prefix + 1, v);
}

static int take_keys(struct gguf_reader *r, uint64_t count, struct gguf *g, struct progress *p, struct error *err)
{
	char key[GGUF_NAME_ROOM];
	struct gguf_value v;

	if (count > (r->size - r->at) / ENTRY_LEAST)
		return gguf_wrong(r, err, "there are more keys than the file has room for");
	for (uint64_t i = 0; i < count; i++) {
		if (gguf_take_string(r, key, sizeof key, err) < 0 || gguf_take_value(r, &v, err) < 0)
			return -1;
		take_key(g, p, key, &v);
	}
	if (p->alignment == 0 || (p->alignment & (p->alignment - 1)) || p->alignment > ALIGNMENT_MAX)
		return gguf_wrong(r, err, "general.alignment is not a power of two");
	return 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* blk.N.ffn_gate_exps.weight; in old files blk.N.ffn_gate.EXPERT.weight. */
static bool is_of_experts(const char *name)
{
	const char *at = strstr(name, ".ffn_");
	size_t digits;

	if (ends_with(name, "_exps.weight"))
		return true;
	at = at ? strchr(at + 1, '.') : NULL;
	digits = at ? strspn(at + 1, "0123456789") : 0;
	return digits > 0 && strcmp(at + 1 + digits, ".weight") == 0;
}

static bool is_for_prediction(const struct gguf *g, const char *name)
{
	char *end;
	unsigned long long layer;

	if (!g->prediction_layers || g->prediction_layers >= g->layers || strncmp(name, "blk.", 4) != 0)
		return false;
	layer = strtoull(name + 4, &end, 10);
	return *end == '.' && layer >= g->layers - g->prediction_layers;
}

static int count_tensor(const struct gguf_reader *r, struct gguf *g, struct progress *p, const char *name,
			uint64_t offset, uint64_t bytes, struct error *err)
{
	uint64_t end;

	if (__builtin_add_overflow(offset, bytes, &end) ||
	    __builtin_add_overflow(g->tensor_bytes, bytes, &g->tensor_bytes))
		return error_set(err, "%s: byte %" PRIu64 ": tensor %s would be larger than any file", r->path, r->at,
				 name);
	if (end > p->end)
		p->end = end;
	if (is_for_prediction(g, name))
		g->prediction_bytes += bytes;
	else if (strcmp(name, "token_embd.weight") == 0)
		g->embedding_bytes += bytes;
	else if (strcmp(name, "per_layer_token_embd.weight") == 0 || strcmp(name, "position_embd.weight") == 0)
		g->lookup_bytes += bytes;
	else if (is_of_experts(name))
		g->expert_bytes += bytes;
	return 0;
}

/* The tensor before it was of an unknown type, and ends where this one begins. */
static int close_open_tensor(const struct gguf_reader *r, struct gguf *g, struct progress *p, uint64_t end,
			     struct error *err)
{
	if (!p->open)
		return 0;
	p->open = false;
	if (end < p->open_offset)
		return error_set(err,
				 "%s: byte %" PRIu64 ": the size of tensor %s cannot be told: its type %" PRIu32
				 " is unknown",
				 r->path, r->at, p->open_name, p->open_type);
	return count_tensor(r, g, p, p->open_name, p->open_offset, end - p->open_offset, err);
}

static int take_shape(struct gguf_reader *r, uint64_t shape[DIMENSIONS_MAX], uint64_t *ret_weights, struct error *err)
{
	uint32_t dimensions;
	uint64_t weights = 1;

	if (gguf_take_u32(r, &dimensions, err) < 0)
		return -1;
	if (dimensions > DIMENSIONS_MAX)
		return gguf_wrong(r, err, "a tensor has more than 4 dimensions");
	for (uint32_t i = 0; i < DIMENSIONS_MAX; i++) {
		shape[i] = 1;
		if (i < dimensions && gguf_take_u64(r, &shape[i], err) < 0)
			return -1;
		if (__builtin_mul_overflow(weights, shape[i], &weights))
			return gguf_wrong(r, err, "a tensor has more weights than can be counted");
	}
	*ret_weights = weights;
	return 0;
}

static int take_tensor(struct gguf_reader *r, struct gguf *g, struct progress *p, struct error *err)
{
	char name[GGUF_NAME_ROOM];
	uint64_t shape[DIMENSIONS_MAX] = {0}, weights = 0, offset, bytes;
	uint32_t type;

	if (gguf_take_string(r, name, sizeof name, err) < 0 || take_shape(r, shape, &weights, err) < 0 ||
	    gguf_take_u32(r, &type, err) < 0 || gguf_take_u64(r, &offset, err) < 0 ||
	    close_open_tensor(r, g, p, offset, err) < 0)
		return -1;
	if (strcmp(name, "output.weight") == 0)
		g->has_output = true;
	else if (strcmp(name, "token_embd.weight") == 0)
		p->embedding_rows = shape[1];
	if (type >= sizeof blocks / sizeof *blocks || blocks[type].weights == 0) {
		p->open = true;
		p->open_type = type;
		p->open_offset = offset;
		snprintf(p->open_name, sizeof p->open_name, "%s", name);
		return 0;
	}
	if (shape[0] % blocks[type].weights ||
	    __builtin_mul_overflow(weights / blocks[type].weights, (uint64_t)blocks[type].bytes, &bytes))
		return error_set(err, "%s: byte %" PRIu64 ": the rows of tensor %s are no whole blocks of its type",
				 r->path, r->at, name);
	return count_tensor(r, g, p, name, offset, bytes, err);
}

static int take_tensors(struct gguf_reader *r, struct gguf *g, struct progress *p, struct error *err)
{
	uint64_t start;

	if (g->tensors > (r->size - r->at) / TENSOR_LEAST)
		return gguf_wrong(r, err, "there are more tensors than the file has room for");
	for (uint64_t i = 0; i < g->tensors; i++)
		if (take_tensor(r, g, p, err) < 0)
			return -1;
	/* A file without tensors may end right here, before the padding. */
	start = (r->at + p->alignment - 1) & ~(p->alignment - 1);
	if (close_open_tensor(r, g, p, r->size > start ? r->size - start : 0, err) < 0)
		return -1;
	if (p->end > 0 && (start > r->size || p->end > r->size - start))
		return error_set(err,
				 "%s: its tensors end %" PRIu64 " bytes behind the header, which ends at byte %" PRIu64
				 ", but the file ends at byte %" PRIu64 ": it is cut short",
				 r->path, p->end, start, r->size);
	if (g->tensor_bytes > r->size)
		return error_set(err, "%s: its tensors lie over one another", r->path);
	return 0;
}

static int take_header(struct gguf_reader *r, struct gguf *g, struct error *err)
{
	struct progress p = {.alignment = ALIGNMENT_DEFAULT};
	uint32_t version;
	uint64_t keys;
	char magic[4];

	if (gguf_take(r, magic, sizeof magic, err) < 0)
		return -1;
	if (memcmp(magic, "GGUF", sizeof magic) != 0)
		return error_set(err, "%s: it does not begin with GGUF", r->path);
	if (gguf_take_u32(r, &version, err) < 0)
		return -1;
	if (version != 0 && (version & 0xffff) == 0)
		return error_set(err, "%s: it is big-endian, which is not read", r->path);
	if (version != 2 && version != 3)
		return error_set(err, "%s: it is GGUF version %" PRIu32 "; versions 2 and 3 are read", r->path,
				 version);
	g->file_bytes = r->size;
	if (gguf_take_u64(r, &g->tensors, err) < 0 || gguf_take_u64(r, &keys, err) < 0 ||
	    take_keys(r, keys, g, &p, err) < 0 || take_tensors(r, g, &p, err) < 0)
		return -1;
	if (!g->vocabulary)
		g->vocabulary = p.tokens ? p.tokens : p.embedding_rows;
	return 0;
}

/* A regular file, or -errno. Looked at before it is opened, since to open a device can do something; O_NONBLOCK, since
 * a pipe that took its place would hang. */
static int open_regular(const char *path, uint64_t *ret_size)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct stat st;
	int opened;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_size = (uint64_t)st.st_size;
	opened = fd;
	fd = -1;
	return opened;
}

int gguf_is(const char *path)
{
	uint64_t size;
	CLEANUP(fd_cleanup) int fd = open_regular(path, &size);
	char magic[4];

	return fd >= 0 && pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
}

int gguf_read(const char *path, struct gguf *ret, struct error *err)
{
	struct gguf_reader r = {.path = path};
	struct gguf g = {0};
	CLEANUP(fd_cleanup) int fd = open_regular(path, &r.size);

	if (fd < 0)
		return error_set(err, "%s: %s", path, fd == -EINVAL ? "it is not a regular file" : strerror(-fd));
	r.fd = fd;
	if (take_header(&r, &g, err) < 0)
		return -1;
	*ret = g;
	return 0;
}

static void add_bytes(uint64_t *to, uint64_t bytes)
{
	if (__builtin_add_overflow(*to, bytes, to))
		*to = UINT64_MAX;
}

static void take_missing(uint64_t *to, uint64_t value)
{
	if (!*to)
		*to = value;
}

void gguf_add(struct gguf *to, const struct gguf *part)
{
	if (!to->architecture[0])
		memcpy(to->architecture, part->architecture, sizeof to->architecture);
	add_bytes(&to->file_bytes, part->file_bytes);
	add_bytes(&to->tensors, part->tensors);
	add_bytes(&to->tensor_bytes, part->tensor_bytes);
	add_bytes(&to->embedding_bytes, part->embedding_bytes);
	add_bytes(&to->lookup_bytes, part->lookup_bytes);
	add_bytes(&to->expert_bytes, part->expert_bytes);
	add_bytes(&to->prediction_bytes, part->prediction_bytes);
	to->has_output |= part->has_output;
	to->partial_cache |= part->partial_cache;
	to->recurrent |= part->recurrent;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uint64_t mine, value;

		memcpy(&mine, (char *)to + numbers[i].place, sizeof mine);
		memcpy(&value, (const char *)part + numbers[i].place, sizeof value);
		take_missing(&mine, value);
		memcpy((char *)to + numbers[i].place, &mine, sizeof mine);
	}
	take_missing(&to->kv_heads_sum, part->kv_heads_sum);
	take_missing(&to->split_count, part->split_count);
}

double gguf_bytes_per_token(const struct gguf *g)
{
	double rows = g->vocabulary ? (double)g->vocabulary : 1;
	double experts = (double)g->expert_bytes, lookup = (double)g->lookup_bytes;
	double embedding = (double)g->embedding_bytes;
	double dense = (double)g->tensor_bytes - (double)g->prediction_bytes - experts - lookup - embedding;

	if (g->experts && g->experts_used && g->experts_used < g->experts)
		experts *= (double)g->experts_used / (double)g->experts;
	return dense + experts + lookup / rows + (g->has_output ? embedding / rows : embedding);
}

double gguf_kv_bytes_per_position(const struct gguf *g)
{
	double per_head = g->heads ? (double)g->embedding_length / (double)g->heads : 0;
	double keys = g->key_length ? (double)g->key_length : per_head;
	double values = g->value_length ? (double)g->value_length : per_head;
	double layers = (double)g->layers;
	double heads = (double)(g->kv_heads ? g->kv_heads : g->heads);

	if (g->prediction_layers < g->layers)
		layers -= (double)g->prediction_layers;
	heads = g->kv_heads_sum ? (double)g->kv_heads_sum : heads * layers;
	if (g->partial_cache || (g->recurrent && !g->kv_heads_sum) || !(heads * keys * values > 0))
		return NAN;
	return 2 * heads * (keys + values);
}
