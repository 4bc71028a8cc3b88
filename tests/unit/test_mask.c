#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/mask.h"

static void assert_masked(const char *const *argv, const char *wanted)
{
	struct buf out;

	buf_init(&out);
	mask_command(&out, (char *const *)argv);
	assert_false(out.failed);
	assert_string_equal(out.text, wanted);
	buf_release(&out);
}

#define COMMAND(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_has_no_secret_stays_as_it_was(void **state)
{
	(void)state;
	assert_masked(COMMAND("llama-bench", "-m", "a b.gguf", "-n", "16"), "llama-bench -m 'a b.gguf' -n 16");
	assert_masked(COMMAND("vllm", "--max-tokens", "512", "--tokenizer", "x", "--author", "Bo", "ntokens=5"),
		      "vllm --max-tokens 512 --tokenizer x --author Bo ntokens=5");
	assert_masked(COMMAND("echo", "", "it's"), "echo '' 'it'\\''s'");
}

static void values_of_options_and_assignments_with_a_secret_name_are_masked(void **state)
{
	(void)state;
	assert_masked(COMMAND("s", "--api-key", "abc", "--hf-token=xyz", "-hft", "q", "end"),
		      "s --api-key [masked] --hf-token=[masked] -hft [masked] end");
	assert_masked(COMMAND("env", "HF_TOKEN=abc", "OPENAI_API_KEY=x", "A=b", "run"),
		      "env HF_TOKEN=[masked] OPENAI_API_KEY=[masked] A=b run");
	assert_masked(COMMAND("s", "--password", "--verbose"), "s --password --verbose");
}

static void tokens_are_known_by_their_form(void **state)
{
	(void)state;
	assert_masked(COMMAND("get", "hf_abcdefghijklmnopqrstuvwx"), "get [masked]");
	assert_masked(COMMAND("get", "x=sk-abcdefghijklmnopqrstuvwx,y"), "get x=[masked],y");
	assert_masked(COMMAND("curl", "-H", "Authorization: Bearer abc.def"),
		      "curl -H 'Authorization: Bearer [masked]'");
	assert_masked(COMMAND("curl", "-H", "X-API-Key: abc", "x"), "curl -H 'X-API-Key: [masked]' x");
	assert_masked(COMMAND("get", "https://bo:hush@example.org/x"), "get https://bo:[masked]@example.org/x");
	assert_masked(COMMAND("get", "half_life", "task-runner-of-the-old-kind"),
		      "get half_life task-runner-of-the-old-kind");
}

static void words_inside_a_shell_command_are_masked_too(void **state)
{
	(void)state;
	assert_masked(COMMAND("sh", "-c", "HF_TOKEN=abc run --api-key k2; echo done"),
		      "sh -c 'HF_TOKEN=[masked] run --api-key [masked]; echo done'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_secret_stays_as_it_was),
		cmocka_unit_test(values_of_options_and_assignments_with_a_secret_name_are_masked),
		cmocka_unit_test(tokens_are_known_by_their_form),
		cmocka_unit_test(words_inside_a_shell_command_are_masked_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
