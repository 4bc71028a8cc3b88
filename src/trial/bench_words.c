#include "trial/bench_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

/* What a shell does itself. Those that are also programs that do the same (echo, test, true, ...) are not here. */
static const char *const shell_words[] = {
	"!",	    "(",	".",	  ":",	   "alias", "bg",     "break",	"case",	    "cd",
	"command",  "continue", "eval",	  "exec",  "exit",  "export", "fc",	"fg",	    "for",
	"function", "getopts",	"hash",	  "if",	   "jobs",  "local",  "read",	"readonly", "return",
	"set",	    "shift",	"source", "times", "trap",  "type",   "ulimit", "umask",    "unalias",
	"unset",    "until",	"wait",	  "while", "{",
};

/* Walks over one line. */
struct splitter {
	const char *at;
	size_t words;     /* finished ones */
	bool in_word;
	bool special;     /* something that only a shell understands was seen */
	bool open;        /* a quote that does not end */
	struct buf text;  /* the words so far, each with its NUL */
};

static void single_quoted(struct splitter *s)
{
	const char *end = strchr(s->at, '\'');

	s->open = !end;
	buf_append(&s->text, s->at, end ? (size_t)(end - s->at) : strlen(s->at));
	s->at = end ? end + 1 : s->at + strlen(s->at);
}

static void double_quoted(struct splitter *s)
{
	for (; *s->at && *s->at != '"'; s->at++) {
		if (*s->at == '\\' && s->at[1] && strchr("$`\"\\", s->at[1]))
			s->at++;
		else if (*s->at == '$' || *s->at == '`')
			s->special = true;
		buf_putc(&s->text, *s->at);
	}
	s->open = !*s->at;
	s->at += *s->at == '"';
}

static void end_word(struct splitter *s)
{
	if (!s->in_word)
		return;
	buf_putc(&s->text, '\0');
	s->words++;
	s->in_word = false;
}

static void plain(struct splitter *s, char c)
{
	bool first = !s->in_word;

	if (strchr("|&;<>()$`*?[{}\n", c) || (first && (c == '~' || c == '#')) || (c == '=' && s->words == 0))
		s->special = true;
	buf_putc(&s->text, c);
}

static void split(struct splitter *s, const char *line)
{
	*s = (struct splitter){.at = line};
	buf_init(&s->text);
	while (*s->at) {
		char c = *s->at++;

		if (c == ' ' || c == '\t') {
			end_word(s);
			continue;
		}
		if (c == '\'')
			single_quoted(s);
		else if (c == '"')
			double_quoted(s);
		else if (c == '\\' && *s->at)
			buf_putc(&s->text, *s->at++);
		else
			plain(s, c);
		s->in_word = true;
	}
	end_word(s);
}

int bench_words_split(const char *line, char ***ret, struct error *err)
{
	struct splitter s;
	CLEANUP(buf_release) struct buf text;
	char **words;
	const char *at;

	split(&s, line);
	text = s.text;
	if (s.open)
		return error_set(err, "'%.80s': a quote in it is not closed", line);
	if (s.words == 0)
		return error_set(err, "an empty command cannot be run");
	words = calloc(s.words + 1, sizeof *words);
	if (!words || text.failed) {
		free(words);
		return error_set(err, "out of memory for the words of a command");
	}
	at = text.text;
	for (size_t i = 0; i < s.words; i++) {
		words[i] = strdup(at);
		if (!words[i]) {
			bench_words_free(words);
			return error_set(err, "out of memory for the words of a command");
		}
		at += strlen(at) + 1;
	}
	*ret = words;
	return 0;
}

void bench_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

bool bench_words_need_shell(const char *line)
{
	struct splitter s;
	CLEANUP(buf_release) struct buf text;

	split(&s, line);
	text = s.text;
	if (s.special || s.open)
		return true;
	for (size_t i = 0; s.words && i < sizeof shell_words / sizeof *shell_words; i++)
		if (strcmp(text.text, shell_words[i]) == 0)
			return true;
	return false;
}
