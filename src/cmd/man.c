/* Man pages as roff, from the tables that also make the help. */
#include "cmd/help.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"

/* One character of UTF-8 as roff's \[uXXXX], so that no locale and no preconv is needed. */
static void put_wide(const char *text, size_t length, FILE *out)
{
	unsigned code = (unsigned char)*text & (0xffu >> (length + 1));

	for (size_t i = 1; i < length; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3fu);
	fprintf(out, "\\[u%04X]", code);
}

/* Text that means itself. Dashes and quotes are escaped so that what is copied from the page works in a shell. */
static void put_text(const char *text, size_t length, FILE *out)
{
	static const char *const escapes[128] = {
		['\\'] = "\\e",	 ['-'] = "\\-",	  ['\''] = "\\(aq", ['`'] = "\\(ga",
		['^'] = "\\(ha", ['~'] = "\\(ti", ['"'] = "\\(dq",
	};

	if (length && *text == '.')
		fputs("\\&", out);
	for (size_t i = 0, step; i < length; i += step) {
		unsigned char c = (unsigned char)text[i];

		step = utf8_character(text + i, length - i);
		if (step > 1)
			put_wide(text + i, step, out);
		else if (step == 1 && escapes[c])
			fputs(escapes[c], out);
		else
			fputc(step == 1 ? c : '?', out);
		step += step == 0;
	}
}

static void put_string(const char *text, FILE *out)
{
	put_text(text, strlen(text), out);
}

/* Lines that flow; an empty line starts a paragraph, an indented one stays as it is, by roff's own rules. */
static void put_paragraphs(const char *text, FILE *out)
{
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t length = strcspn(line, "\n");

		if (length == 0) {
			fputs(".PP\n", out);
			continue;
		}
		put_text(line, length, out);
		fputc('\n', out);
	}
}

static void put_lines(const char *text, FILE *out)
{
	fputs(".nf\n", out);
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		put_text(line, strcspn(line, "\n"), out);
		fputc('\n', out);
	}
	fputs(".fi\n", out);
}

static void put_title(const char *name, const char *summary, FILE *out)
{
	fputs(".TH ASSAY", out);
	if (*name)
		fputs("\\-", out);
	for (const char *c = name; *c; c++)
		fputc(toupper((unsigned char)*c), out);
	fprintf(out, " 1 \"\" \"assay %s\" \"User Commands\"\n.nh\n.SH NAME\nassay%s", ASSAY_VERSION,
		*name ? "\\-" : "");
	put_string(name, out);
	fputs(" \\- ", out);
	put_string(summary, out);
	fputc('\n', out);
}

static void put_exit_status(FILE *out)
{
	fputs(".SH EXIT STATUS\n", out);
	for (const struct help_status *s = help_statuses; s->meaning; s++) {
		fprintf(out, ".TP\n.B %d\n", (int)s->status);
		put_string(s->meaning, out);
		fputc('\n', out);
	}
	fputs(".PP\n", out);
	put_string(help_status_note, out);
	fputc('\n', out);
}

static void put_option(const struct option *o, FILE *out)
{
	char name[128], text[512];

	options_spell(o, name, sizeof name);
	options_explain(o, text, sizeof text);
	fputs(".TP\n\\fB", out);
	put_string(name + strspn(name, " "), out);
	fputs("\\fR\n", out);
	put_string(text, out);
	fputc('\n', out);
}

void man_command(const struct command *cmd, FILE *out)
{
	put_title(cmd->name, cmd->summary, out);
	fprintf(out, ".SH SYNOPSIS\n\\fBassay %s\\fR ", cmd->name);
	put_string(cmd->usage, out);
	fputs("\n.SH DESCRIPTION\n", out);
	put_paragraphs(cmd->description, out);
	fputs(".SH OPTIONS\n", out);
	for (const struct option *o = cmd->options; o->name; o++)
		put_option(o, out);
	put_option(&options_help_row, out);
	fputs(".SH EXAMPLES\n", out);
	put_lines(cmd->examples, out);
	put_exit_status(out);
	fputs(".SH SEE ALSO\n.BR assay (1)\n", out);
}

void man_overview(FILE *out)
{
	put_title("", "what a command costs, phase by phase", out);
	fputs(".SH SYNOPSIS\n\\fBassay\\fR COMMAND [options] ...\n.br\n\\fBassay\\fR \\-\\-help | \\-\\-version\n"
	      ".SH DESCRIPTION\n", out);
	put_paragraphs(help_purpose, out);
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; i < command_count; i++) {
		fprintf(out, ".TP\n.BR assay\\-%s (1)\n", commands[i]->name);
		put_string(commands[i]->summary, out);
		fputc('\n', out);
	}
	put_exit_status(out);
	fputs(".SH FILES\n.TP\n.I assay\\-runs/\nwhere run directories go, below the folder of the call\n.TP\n.I ",
	      out);
	put_string(ASSAY_DOC_DIR, out);
	fputs("\nthe pages of the documentation\n", out);
}
