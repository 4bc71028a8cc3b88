#include "report/json_stream.h"

#include <math.h>
#include <string.h>

#include "base/decimal.h"
#include "base/utf8.h"

#define DIGITS_MAX 20 /* of 2^64 - 1 */
#define WHOLE_MAX 0x1p53 /* beyond it a double does not hold every whole number */

void json_stream_raw(FILE *out, const char *text)
{
	fputs_unlocked(text, out);
}

static void put_escape(FILE *out, unsigned char c)
{
	static const char letters[] = "\"\"\\\\\nn\tt\rr\bb\ff";

	for (const char *l = letters; *l; l += 2) {
		if ((unsigned char)*l == c) {
			putc_unlocked('\\', out);
			putc_unlocked(l[1], out);
			return;
		}
	}
	fprintf(out, "\\u%04x", c);
}

static size_t plain_until(const char *text, size_t from, size_t length)
{
	while (from < length && (unsigned char)text[from] >= ' ' && text[from] != '"' && text[from] != '\\')
		from++;
	return from;
}

void json_stream_text(FILE *out, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	putc_unlocked('"', out);
	for (size_t at = 0; at < length;) {
		size_t plain = plain_until(text, at, length), valid = utf8_valid_until(text, at, plain);

		fwrite_unlocked(text + at, 1, valid - at, out);
		at = valid;
		if (valid < plain) {
			fputs_unlocked("\xef\xbf\xbd", out);
			at++;
		} else if (plain < length) {
			put_escape(out, (unsigned char)text[at]);
			at++;
		}
	}
	putc_unlocked('"', out);
}

void json_stream_number(FILE *out, uint64_t value)
{
	char digits[DIGITS_MAX];
	size_t at = sizeof digits;

	/* Profiles have tens of millions of these: fprintf would be most of the time. */
	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	fwrite_unlocked(digits + at, 1, sizeof digits - at, out);
}

void json_stream_real(FILE *out, double value)
{
	if (!isfinite(value))
		fputs_unlocked("null", out);
	else if (fabs(value) < WHOLE_MAX && value == trunc(value))
		fprintf(out, "%.0f", value + 0.0); /* + 0.0: no -0 */
	else
		fputs_unlocked(decimal_shortest(value).text, out);
}

void json_stream_us(FILE *out, int64_t ns)
{
	uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	if (ns < 0)
		putc_unlocked('-', out);
	json_stream_number(out, size / 1000);
	putc_unlocked('.', out);
	putc_unlocked((int)('0' + size / 100 % 10), out);
	putc_unlocked((int)('0' + size / 10 % 10), out);
	putc_unlocked((int)('0' + size % 10), out);
}

void json_stream_key(FILE *out, const char *before, const char *key)
{
	json_stream_raw(out, before);
	json_stream_text(out, key);
	json_stream_raw(out, ": ");
}

void json_stream_key_number(FILE *out, const char *before, const char *key, uint64_t value)
{
	json_stream_key(out, before, key);
	json_stream_number(out, value);
}

void json_stream_key_real(FILE *out, const char *before, const char *key, double value)
{
	json_stream_key(out, before, key);
	json_stream_real(out, value);
}
