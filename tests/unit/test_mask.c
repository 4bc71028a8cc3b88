#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "model/mask.h"

static void assert_text_masked(const char *text, const char *wanted)
{
	struct buf out, again;

	buf_init(&out);
	buf_init(&again);
	mask_text(&out, text);
	assert_false(out.failed);
	assert_string_equal(out.text, wanted);
	mask_text(&again, out.text);
	assert_string_equal(again.text, wanted);
	buf_release(&out);
	buf_release(&again);
}

/* What is masked stays as it is when it is masked again. */
static void assert_masked(const char *const *argv, const char *wanted)
{
	struct buf out;

	buf_init(&out);
	mask_command(&out, (char *const *)argv);
	assert_false(out.failed);
	assert_string_equal(out.text, wanted);
	buf_release(&out);
	assert_text_masked(wanted, wanted);
}

struct command {
	const char *argv[10];
	const char *wanted;
};

#define COMMAND(...) ((const char *const[]){__VA_ARGS__, NULL})
#define ASSERT_ALL(commands)                                                                                           \
	for (size_t i = 0; i < sizeof(commands) / sizeof *(commands); i++)                                             \
	assert_masked((commands)[i].argv, (commands)[i].wanted)

static void what_has_no_secret_stays_as_it_was(void **state)
{
	static const struct command commands[] = {
		{{"llama-bench", "-m", "a b.gguf", "-n", "16"}, "llama-bench -m 'a b.gguf' -n 16"},
		{{"vllm", "--max-tokens", "512", "--tokenizer", "x", "--author", "Bo", "ntokens=5"},
		 "vllm --max-tokens 512 --tokenizer x --author Bo ntokens=5"},
		{{"echo", "", "it's"}, "echo '' 'it'\\''s'"},
		{{"get", "half_life", "task-runner-of-the-old-kind"}, "get half_life task-runner-of-the-old-kind"},
		{{"x", "--max-token", "256", "--token-limit", "4096"}, "x --max-token 256 --token-limit 4096"},
		{{"x", "n_token=12345678", "token_weight=0.5", "-pass", "1"},
		 "x n_token=12345678 token_weight=0.5 -pass 1"},
		{{"x", "{\"max_tokens\": 256, \"n_token\": 8}"}, "x '{\"max_tokens\": 256, \"n_token\": 8}'"},
		{{"x", "--token-file", "/run/secrets/t", "--api-key-file=keys.txt"},
		 "x --token-file /run/secrets/t --api-key-file=keys.txt"},
		{{"x", "--pwd", "/work", "PWD=/home/bo", "--private-key", "id.pem"},
		 "x --pwd /work PWD=/home/bo --private-key id.pem"},
		{{"sort", "--key", "2,3", "--key", "name", "--ssl-key", "/etc/ssl/private/server.key"},
		 "sort --key 2,3 --key name --ssl-key /etc/ssl/private/server.key"},
		{{"x", "--key", "server-certificate.pem", "--no-auth", "model.gguf"},
		 "x --key server-certificate.pem --no-auth model.gguf"},
		{{"docker", "run", "-u", "1000:1000", "org/auth-token-7b:latest", "-p", "80:80"},
		 "docker run -u 1000:1000 org/auth-token-7b:latest -p 80:80"},
		{{"x", "-p", "Explain what a token is, basic facts"}, "x -p 'Explain what a token is, basic facts'"},
		{{"get", "http://localhost:8080/a@b", "https://bo@host/x:y@z"},
		 "get http://localhost:8080/a@b https://bo@host/x:y@z"},
		{{"curl", "-u", "bo", "--data", "a:b"}, "curl -u bo --data a:b"},
		{{"cd", "pwd;", "ls"}, "cd 'pwd;' ls"},
		{{"x", "TOKEN=", "--password", ""}, "x TOKEN= --password ''"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void values_of_options_and_assignments_with_a_secret_name_are_masked(void **state)
{
	static const struct command commands[] = {
		{{"s", "--api-key", "abc", "--hf-token=xyz", "-hft", "q", "end"},
		 "s --api-key [masked] --hf-token=[masked] -hft [masked] end"},
		{{"env", "HF_TOKEN=abc", "OPENAI_API_KEY=x", "A=b", "run"},
		 "env HF_TOKEN=[masked] OPENAI_API_KEY=[masked] A=b run"},
		{{"s", "--password=correct horse battery", "end"}, "s --password=[masked] end"},
		{{"s", "PASSWORD=a;b 'c\"", "end"}, "s PASSWORD=[masked] end"},
		{{"s", "--env=SECRET=a b c", "end"}, "s --env=SECRET=[masked] end"},
		{{"s", "--password", "my sec1ret phrase", "end"}, "s --password [masked] end"},
		{{"s", "--pass", "hush", "--db-pwd", "h", "pwd=hush", "MyPwd=1"},
		 "s --pass [masked] --db-pwd [masked] pwd=[masked] MyPwd=1"},
		{{"s", "Server=x;Uid=u;Pwd=a b;x=y"}, "s 'Server=x;Uid=u;Pwd=[masked]'"},
		{{"s", "--key", "0123456789abcdef", "--key=ab_cd-ef.gh~ij+kl", "end"},
		 "s --key [masked] --key=[masked] end"},
		{{"s", "--accessKey", "x", "--secretKey=y", "--private-key", "MIIB+abc"},
		 "s --accessKey [masked] --secretKey=[masked] --private-key [masked]"},
		{{"s", "--passphrase", "12345678", "--auth-token", "123456789"},
		 "s --passphrase [masked] --auth-token [masked]"},
		{{"s", "--token", "[masked] or not"}, "s --token [masked]"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void the_value_of_a_secret_option_may_begin_with_a_dash(void **state)
{
	static const struct command commands[] = {
		{{"s", "--token", "-VALUE", "end"}, "s --token [masked] end"},
		{{"s", "--db-password", "-v", "end"}, "s --db-password [masked] end"},
		{{"s", "--api-key", "--a/b", "end"}, "s --api-key [masked] end"},
		{{"s", "--password", "--verbose"}, "s --password --verbose"},
		{{"s", "--token", "--log-level=2", "--token", "--"}, "s --token --log-level=2 --token --"},
		{{"s", "--token-required", "-v"}, "s --token-required -v"},
		{{"sh", "-c", "run --token -VALUE --password --verbose"},
		 "sh -c 'run --token [masked] --password --verbose'"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void tokens_are_known_by_their_form(void **state)
{
	static const struct command commands[] = {
		{{"get", "hf_abcdefghijklmnopqrstuvwx"}, "get [masked]"},
		{{"get", "x=sk-abcdefghijklmnopqrstuvwx,y"}, "get x=[masked],y"},
		{{"get", "a-hf_abcdefghijklmnopqrstuvwx==,b"}, "get a-[masked],b"},
		{{"get", "Bearer", "abc", "end"}, "get Bearer [masked] end"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void headers_are_masked_to_their_end(void **state)
{
	static const struct command commands[] = {
		{{"curl", "-H", "Authorization: Bearer abc.def"}, "curl -H 'Authorization: Bearer [masked]'"},
		{{"curl", "-H", "X-API-Key: abc", "x"}, "curl -H 'X-API-Key: [masked]' x"},
		{{"curl", "-H", "X-Auth-Token:VALUE", "x"}, "curl -H X-Auth-Token:[masked] x"},
		{{"curl", "-HX-Auth-Token: a b", "x"}, "curl '-HX-Auth-Token: [masked]' x"},
		{{"curl", "--header=Authorization: Basic dTpw", "x"},
		 "curl '--header=Authorization: Basic [masked]' x"},
		{{"curl", "-H", "Cookie: a=1; session=xyz; c=d", "x"}, "curl -H 'Cookie: [masked]' x"},
		{{"curl", "-b", "Cookie: a=1\nAccept: y"}, "curl -b 'Cookie: [masked]\nAccept: y'"},
		{{"curl", "-H", "Authorization:", "Token", "abc", "x"}, "curl -H Authorization: Token [masked] x"},
		{{"sh", "-c", "curl -H 'Cookie: a=1; b=2' -o x"},
		 "sh -c 'curl -H '\\''Cookie: [masked]'\\'' -o x'"},
		{{"sh", "-c", "curl -H \"X-Token: a b\" -H 'Authorization: Bearer c d' x"},
		 "sh -c 'curl -H \"X-Token: [masked]\" -H '\\''Authorization: Bearer [masked]'\\'' x'"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void urls_and_queries_and_curl_s_users_are_masked(void **state)
{
	static const struct command commands[] = {
		{{"get", "https://bo:hush@example.org/x"}, "get https://bo:[masked]@example.org/x"},
		{{"get", "postgres://u:p@art@h/db@x"}, "get postgres://u:[masked]@h/db@x"},
		{{"get", "redis://:p:q@h:6379", "http://u:p@h1,http://u:q@h2"},
		 "get redis://:[masked]@h:6379 http://u:[masked]@h1,http://u:[masked]@h2"},
		{{"get", "https://h/?a=b&api_key=V&c=d#e"}, "get 'https://h/?a=b&api_key=[masked]&c=d#e'"},
		{{"get", "https://h/?token=V;W&c=d"}, "get 'https://h/?token=[masked]&c=d'"},
		{{"curl", "-u", "bo:hush now", "x"}, "curl -u bo:[masked] x"},
		{{"/usr/bin/curl", "-ubo:hush", "--user=bo:a:b", "--proxy-user", "p:q"},
		 "/usr/bin/curl -ubo:[masked] --user=bo:[masked] --proxy-user p:[masked]"},
		{{"sh", "-c", "curl -s -u bo:hush x; id -u a:b"}, "sh -c 'curl -s -u bo:[masked] x; id -u a:b'"},
		{{"sh", "-c", "curl -u 'bo:hu sh' x"}, "sh -c 'curl -u '\\''bo:[masked]'\\'' x'"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void members_of_json_and_of_scripts_are_masked(void **state)
{
	static const struct command commands[] = {
		{{"x", "{\"api_key\":\"V\", \"token\": \"V2\", \"n\": 1}"},
		 "x '{\"api_key\":\"[masked]\", \"token\": \"[masked]\", \"n\": 1}'"},
		{{"x", "--json={\"password\": \"a \\\" b, c\", \"n\": 1}"},
		 "x '--json={\"password\": \"[masked]\", \"n\": 1}'"},
		{{"x", "{\"secret\":[\"a\",\"b\"],\"pin_secret\":1234,\"m\":2}"},
		 "x '{\"secret\":[masked],\"pin_secret\":[masked],\"m\":2}'"},
		{{"x", "\"{\\\"api_key\\\": \\\"V W\\\", \\\"b\\\": 1}\""},
		 "x '\"{\\\"api_key\\\": \\\"[masked]\\\", \\\"b\\\": 1}\"'"},
		{{"python3", "-c", "f(api_key='V W', n=1); h['Authorization'] = \"Bearer x\""},
		 "python3 -c 'f(api_key=[masked] n=1); h['\\''Authorization'\\''] = \"[masked]\"'"},
		{{"python3", "-c", "password = 'V W'\nrun()"}, "python3 -c 'password = [masked]\nrun()'"},
		{{"python3", "-c", "f({'token': 'V W', 'n': 'a'})"},
		 "python3 -c 'f({'\\''token'\\'': [masked], '\\''n'\\'': '\\''a'\\''})'"},
		{{"x", "{\"api_key\": \"V of which the end is lost"}, "x '{\"api_key\": \"[masked]'"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void words_inside_a_shell_command_are_masked_one_by_one(void **state)
{
	static const struct command commands[] = {
		{{"sh", "-c", "HF_TOKEN=abc run --api-key k2; echo done"},
		 "sh -c 'HF_TOKEN=[masked] run --api-key [masked]; echo done'"},
		{{"sh", "-c", "PASSWORD=\"a b\" run"}, "sh -c 'PASSWORD=[masked] run'"},
		{{"/bin/bash", "-lc", "PASSWORD='a b' run"}, "/bin/bash -lc 'PASSWORD=[masked] run'"},
		{{"bash", "-euo", "pipefail", "-c", "PASSWORD=a\\ b\" c\"'d e' run"},
		 "bash -euo pipefail -c 'PASSWORD=[masked] run'"},
		{{"docker", "exec", "c", "sh", "-c", "run --token 'a b' -v"},
		 "docker exec c sh -c 'run --token [masked] -v'"},
		{{"sh", "-c", "run '--password=a b' -v"}, "sh -c 'run '\\''--password=[masked]'\\'' -v'"},
		{{"sh", "-c", "run --token \"never closed"}, "sh -c 'run --token [masked] closed'"},
		{{"ssh", "h", "PASSWORD=a b"}, "ssh h PASSWORD=[masked]"},
		{{"python3", "x.py", "-c", "PASSWORD=a b"}, "python3 x.py -c PASSWORD=[masked]"},
	};

	(void)state;
	ASSERT_ALL(commands);
}

static void a_command_line_that_is_one_text_is_masked_too(void **state)
{
	static const struct {
		const char *text, *wanted;
	} texts[] = {
		{"", ""},
		{"s --token abc -v", "s --token [masked] -v"},
		{"s -H Authorization: Bearer abc -o x", "s -H Authorization: Bearer [masked] -o x"},
		{"s -H Cookie: a=1; b=2 -o x", "s -H Cookie: [masked] -o x"},
		{"s --token", "s --token"},
		{"s token:", "s token:"},
		{"s token=", "s token="},
		{"s 'token", "s 'token"},
		{"s \"token\"", "s \"token\""},
		{"s \"token\":", "s \"token\":"},
		{"s \"token\": ", "s \"token\": "},
		{"a://b:@", "a://b:@"},
		{"a://", "a://"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_text_masked(texts[i].text, texts[i].wanted);
}

static void a_long_text_takes_no_longer_than_it_must(void **state)
{
	static const char *const pieces[] = {"'", "\"", "\\\"", "token:\"", "a:", "://", "sk-", "--token '", "x=\"",
					     "token=a ", "&token=", "'\"", "cookie: ;", "token\":["};
	struct buf text, out;

	(void)state;
	buf_init(&text);
	buf_init(&out);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		buf_clear(&text);
		while (text.length < 100000)
			buf_puts(&text, pieces[i]);
		mask_text(&out, text.text);
		mask_command(&out, (char *const *)COMMAND("x", text.text));
	}
	assert_false(out.failed);
	buf_release(&text);
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_secret_stays_as_it_was),
		cmocka_unit_test(values_of_options_and_assignments_with_a_secret_name_are_masked),
		cmocka_unit_test(the_value_of_a_secret_option_may_begin_with_a_dash),
		cmocka_unit_test(tokens_are_known_by_their_form),
		cmocka_unit_test(headers_are_masked_to_their_end),
		cmocka_unit_test(urls_and_queries_and_curl_s_users_are_masked),
		cmocka_unit_test(members_of_json_and_of_scripts_are_masked),
		cmocka_unit_test(words_inside_a_shell_command_are_masked_one_by_one),
		cmocka_unit_test(a_command_line_that_is_one_text_is_masked_too),
		cmocka_unit_test(a_long_text_takes_no_longer_than_it_must),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
