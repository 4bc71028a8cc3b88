/* Reads the start and end times of a columnar file of regions with libhdf5 alone, chunk after chunk, and adds up what
 * it read: what any reader of the file must at least do.
 *
 *   bench_region_plain_read FILE.h5
 *
 * Prints the calls, the sum of their durations, and the seconds that it took from open to close. */
#include <hdf5.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROWS_AT_ONCE (1u << 20) /* where the columns are not chunked */

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_region_plain_read: %s\n", what);
	exit(1);
}

/* Rows of a chunk; ROWS_AT_ONCE where there are none. */
static hsize_t chunk_of(hid_t set)
{
	hid_t plist = H5Dget_create_plist(set);
	hsize_t rows = ROWS_AT_ONCE;

	if (plist < 0)
		die("a column has no properties");
	if (H5Pget_layout(plist) == H5D_CHUNKED && H5Pget_chunk(plist, 1, &rows) != 1)
		die("a column is no list");
	H5Pclose(plist);
	return rows;
}

static hsize_t length_of(hid_t set)
{
	hid_t space = H5Dget_space(set);
	hsize_t length = 0;

	if (space < 0 || H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &length, NULL) != 1)
		die("a column is no list");
	H5Sclose(space);
	return length;
}

static void read_rows(hid_t set, hsize_t first, hsize_t count, int64_t *out)
{
	hid_t file = H5Dget_space(set), memory = H5Screate_simple(1, &count, NULL);

	if (file < 0 || memory < 0 || H5Sselect_hyperslab(file, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
	    H5Dread(set, H5T_NATIVE_INT64, memory, file, H5P_DEFAULT, out) < 0)
		die("a column cannot be read");
	H5Sclose(memory);
	H5Sclose(file);
}

int main(int argc, char **argv)
{
	int64_t sum = 0, *starts, *ends;
	double begin = seconds_now();
	hid_t file, start, end;
	hsize_t rows, chunk;

	if (argc != 2)
		die("expected one file");
	file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
	start = file < 0 ? -1 : H5Dopen2(file, "events/start_times", H5P_DEFAULT);
	end = start < 0 ? -1 : H5Dopen2(file, "events/end_times", H5P_DEFAULT);
	if (end < 0)
		die("no columnar file of regions");
	rows = length_of(start);
	chunk = chunk_of(start);
	if (length_of(end) != rows)
		die("columns of different lengths");
	starts = malloc(chunk * sizeof *starts);
	ends = malloc(chunk * sizeof *ends);
	if (!starts || !ends)
		die("out of memory");
	for (hsize_t at = 0; at < rows; at += chunk) {
		hsize_t count = rows - at < chunk ? rows - at : chunk;

		read_rows(start, at, count, starts);
		read_rows(end, at, count, ends);
		for (hsize_t i = 0; i < count; i++)
			sum += ends[i] - starts[i];
	}
	free(starts);
	free(ends);
	H5Dclose(start);
	H5Dclose(end);
	H5Fclose(file);
	printf("%" PRIu64 " %" PRId64 " %.6f\n", (uint64_t)rows, sum, seconds_now() - begin);
	return 0;
}
