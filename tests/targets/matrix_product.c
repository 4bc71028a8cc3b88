/* matrix_product SECONDS: multiplies matrices by OpenBLAS on two threads until so many seconds of CPU time are used.
 * The library is loaded when it runs, so that nothing is needed to build this; without it the status is 77. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SIDE 1000

enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111 }; /* of CBLAS */

typedef void gemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha, const double *a,
		  int lda, const double *b, int ldb, double beta, double *c, int ldc);
typedef void set_threads(int count);

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double until = atof(argc > 1 ? argv[1] : "1");
	void *library = dlopen("libopenblas.so.0", RTLD_NOW);
	gemm *multiply = library ? (gemm *)dlsym(library, "cblas_dgemm") : NULL;
	set_threads *threads = library ? (set_threads *)dlsym(library, "openblas_set_num_threads") : NULL;
	double *matrix = calloc(3 * SIDE * SIDE, sizeof *matrix);

	if (!multiply || !threads) {
		fprintf(stderr, "matrix_product: %s\n", dlerror());
		return 77;
	}
	if (!matrix)
		return 3;
	for (size_t i = 0; i < 2 * SIDE * SIDE; i++)
		matrix[i] = (double)(i % 7);
	threads(2);
	while (cpu_s() < until)
		multiply(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, SIDE, SIDE, SIDE, 1, matrix, SIDE,
			 matrix + SIDE * SIDE, SIDE, 0, matrix + 2 * SIDE * SIDE, SIDE);
	free(matrix);
	return 0;
}
