/* truth_forks SECONDS: a server that forks a child for each of 20 requests, two at a time; the children burn three
 * quarters of so many CPU seconds, the server itself one. */
#include <stdlib.h>
#include <sys/wait.h>

#include "truth.h"

#define REQUESTS 20
#define AT_A_TIME 2

static int64_t server_ns, child_ns;

static APART void serve_request(int64_t ns)
{
	BURN(ns, &child_ns);
	tell("serve_request", child_ns);
}

static APART void accept_request(int64_t ns)
{
	BURN(ns, &server_ns);
}

static int wait_for_one(void)
{
	int status = 0;

	return wait(&status) > 0 && status == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	int64_t ns = (int64_t)(atof(argc > 1 ? argv[1] : "1") * 1e9 / REQUESTS);
	int alive = 0;

	for (int i = 0; i < REQUESTS; i++) {
		if (alive == AT_A_TIME && (alive--, wait_for_one() < 0))
			return 3;
		accept_request(ns / 4);
		switch (fork()) {
		case -1:
			return 3;
		case 0:
			serve_request(ns * 3 / 4);
			_exit(0);
		default:
			alive++;
		}
	}
	for (; alive; alive--)
		if (wait_for_one() < 0)
			return 3;
	tell("accept_request", server_ns);
	return 0;
}
