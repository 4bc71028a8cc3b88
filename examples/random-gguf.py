#!/usr/bin/env python3
"""Writes a model of random weights that llama.cpp loads: GGUF version 3, llama architecture, Q8_0.

It answers nonsense at the speed of a real model of its size, so that an engine can be measured without downloading
one. The same options give the same bytes. Only the standard library is needed.
"""
import argparse
import os
import random
import struct
import sys

U32, F32, STRING, ARRAY, BOOL, I32 = 4, 6, 8, 9, 7, 5  # value types of GGUF
TENSOR_F32, TENSOR_Q8_0 = 0, 8
ALIGNMENT = 32
BLOCK_WEIGHTS, BLOCK_BYTES = 32, 34  # Q8_0: a half-precision scale, then 32 signed bytes
# Uniform bytes have a standard deviation of 73.9; this scale makes it 0.02, as in a model before training.
BLOCK_SCALE = struct.pack("<e", 0.02 / 73.9)
BLOCKS_AT_ONCE = 1 << 18

TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_BYTE = 1, 2, 3, 6
SPECIALS = 3 + 256  # unknown, begin, end, and one token for each byte
WORD_START = "\u2581"


def make_vocabulary(size):
    """(text, score, type) of each token. Every word can be reached by joining two shorter tokens, which is how the
    engine's tokenizer works: letters to syllables, syllables to words."""
    syllables = [c + v for c in "bcdfghjklmnprstvwxyz" for v in "aeiou"]
    texts = [WORD_START] + [chr(c) for c in range(33, 127)] + syllables
    texts += [WORD_START + a for a in syllables]
    texts += [WORD_START + a + b for a in syllables for b in syllables]
    if not SPECIALS + 95 + 200 <= size <= SPECIALS + len(texts):
        sys.exit(f"random-gguf: --vocab {size}: must be between {SPECIALS + 295} and {SPECIALS + len(texts)}")
    tokens = [("<unk>", 0.0, TOKEN_UNKNOWN), ("<s>", 0.0, TOKEN_CONTROL), ("</s>", 0.0, TOKEN_CONTROL)]
    tokens += [(f"<0x{byte:02X}>", 0.0, TOKEN_BYTE) for byte in range(256)]
    tokens += [(text, -float(rank), TOKEN_NORMAL) for rank, text in enumerate(texts)]
    return tokens[:size]


def pack_string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], value)


def pack_entry(key, kind, value):
    return pack_string(key) + struct.pack("<I", kind) + pack_value(kind, value)


def pack_list(key, kind, values):
    head = pack_string(key) + struct.pack("<IIQ", ARRAY, kind, len(values))
    return head + b"".join(pack_value(kind, value) for value in values)


def metadata(o):
    texts, scores, types = zip(*make_vocabulary(o.vocab))
    return [
        pack_entry("general.architecture", STRING, "llama"),
        pack_entry("general.name", STRING, "random weights"),
        pack_entry("general.file_type", U32, 7),  # mostly Q8_0
        pack_entry("general.quantization_version", U32, 2),
        pack_entry("llama.vocab_size", U32, o.vocab),
        pack_entry("llama.context_length", U32, o.context),
        pack_entry("llama.embedding_length", U32, o.width),
        pack_entry("llama.block_count", U32, o.layers),
        pack_entry("llama.feed_forward_length", U32, o.inner),
        pack_entry("llama.attention.head_count", U32, o.heads),
        pack_entry("llama.attention.head_count_kv", U32, o.kv_heads),
        pack_entry("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        pack_entry("llama.rope.dimension_count", U32, o.width // o.heads),
        pack_entry("llama.rope.freq_base", F32, 10000.0),
        pack_entry("tokenizer.ggml.model", STRING, "llama"),
        pack_entry("tokenizer.ggml.pre", STRING, "default"),
        pack_list("tokenizer.ggml.tokens", STRING, texts),
        pack_list("tokenizer.ggml.scores", F32, scores),
        pack_list("tokenizer.ggml.token_type", I32, types),
        pack_entry("tokenizer.ggml.unknown_token_id", U32, 0),
        pack_entry("tokenizer.ggml.bos_token_id", U32, 1),
        pack_entry("tokenizer.ggml.eos_token_id", U32, 2),
        pack_entry("tokenizer.ggml.add_bos_token", BOOL, True),
        pack_entry("tokenizer.ggml.add_eos_token", BOOL, False),
    ]


def tensors(o):
    """(name, dimensions) in the order of the file; the first dimension is the length of a row."""
    kv_width = o.width // o.heads * o.kv_heads
    yield "token_embd.weight", (o.width, o.vocab)
    for layer in range(o.layers):
        prefix = f"blk.{layer}."
        yield prefix + "attn_norm.weight", (o.width,)
        yield prefix + "attn_q.weight", (o.width, o.width)
        yield prefix + "attn_k.weight", (o.width, kv_width)
        yield prefix + "attn_v.weight", (o.width, kv_width)
        yield prefix + "attn_output.weight", (o.width, o.width)
        yield prefix + "ffn_norm.weight", (o.width,)
        yield prefix + "ffn_gate.weight", (o.width, o.inner)
        yield prefix + "ffn_up.weight", (o.width, o.inner)
        yield prefix + "ffn_down.weight", (o.inner, o.width)
    yield "output_norm.weight", (o.width,)
    yield "output.weight", (o.width, o.vocab)


def tensor_bytes(dimensions):
    if len(dimensions) == 1:
        return dimensions[0] * 4
    return dimensions[0] * dimensions[1] // BLOCK_WEIGHTS * BLOCK_BYTES


def padding(length):
    return b"\0" * (-length % ALIGNMENT)


def pack_header(o):
    entries, infos, offset, count = metadata(o), [], 0, 0
    for name, dimensions in tensors(o):
        kind = TENSOR_F32 if len(dimensions) == 1 else TENSOR_Q8_0
        infos.append(pack_string(name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions))
        infos.append(struct.pack("<IQ", kind, offset))
        size = tensor_bytes(dimensions)
        offset += size + len(padding(size))
        count += 1
    header = b"GGUF" + struct.pack("<IQQ", 3, count, len(entries)) + b"".join(entries + infos)
    return header + padding(len(header))


def write_blocks(out, count, generator):
    while count:
        now = min(count, BLOCKS_AT_ONCE)
        blocks = bytearray(generator.randbytes(now * BLOCK_BYTES))
        blocks[0::BLOCK_BYTES] = BLOCK_SCALE[:1] * now
        blocks[1::BLOCK_BYTES] = BLOCK_SCALE[1:] * now
        out.write(blocks)
        count -= now


def write_tensor(out, name, dimensions, generator):
    if len(dimensions) == 1:  # norms
        out.write(struct.pack("<f", 1.0) * dimensions[0])
    else:
        blocks = dimensions[0] * dimensions[1] // BLOCK_WEIGHTS
        if name == "output.weight":
            # Special tokens always score 0 and never win: no early end, no broken UTF-8.
            silent = SPECIALS * dimensions[0] // BLOCK_WEIGHTS
            out.write(bytes(silent * BLOCK_BYTES))
            blocks -= silent
        write_blocks(out, blocks, generator)
    out.write(padding(tensor_bytes(dimensions)))


def write_model(o):
    """Writes beside the target and renames, so that a killed run leaves no half model under the real name."""
    generator = random.Random(o.seed)
    beside = f"{o.out}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as out:
            out.write(pack_header(o))
            for name, dimensions in tensors(o):
                write_tensor(out, name, dimensions, generator)
        os.replace(beside, o.out)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="FILE.gguf")
    for name, default, meaning in [
        ("layers", 12, "transformer blocks"),
        ("width", 1024, "embedding length, a multiple of 32"),
        ("inner", 2816, "feed-forward length, a multiple of 32"),
        ("heads", 16, "attention heads"),
        ("kv-heads", 8, "key and value heads"),
        ("vocab", 4096, "tokens"),
        ("context", 4096, "context length the model claims"),
        ("seed", 1, "of the weights"),
    ]:
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{meaning} (default {default})")
    o = parser.parse_args()
    if min(o.layers, o.width, o.inner, o.heads, o.kv_heads, o.context) < 1:
        parser.error("sizes must be at least 1")
    if o.width % BLOCK_WEIGHTS or o.inner % BLOCK_WEIGHTS:
        parser.error(f"--width and --inner must be multiples of {BLOCK_WEIGHTS}")
    if o.width % o.heads or o.heads % o.kv_heads or o.width // o.heads % 2:
        parser.error("--heads must divide --width into an even number, --kv-heads must divide --heads")
    return o


def main():
    o = parse_options()
    try:
        write_model(o)
    except OSError as trouble:
        sys.exit(f"random-gguf: {o.out}: {trouble.strerror}")


if __name__ == "__main__":
    main()
