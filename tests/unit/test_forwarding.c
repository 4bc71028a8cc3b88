#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "exec/forwarding.h"

#define SHELL 100
#define OTHER 200

static int delivered[NSIG];

static void deliver(void *context, int signo)
{
	(void)context;
	delivered[signo]++;
}

static int begin(void **state)
{
	(void)state;
	memset(delivered, 0, sizeof delivered);
	return 0;
}

static void one_sent_to_assay_alone_is_sent_on_once(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_ask(&f, SIGTERM, SHELL, false, 1000);
	assert_true(forwarding_due(&f) > 1000);
	forwarding_run(&f, forwarding_due(&f) - 1, deliver, NULL);
	assert_int_equal(delivered[SIGTERM], 0);
	forwarding_run(&f, forwarding_due(&f), deliver, NULL);
	forwarding_run(&f, NS_PER_S, deliver, NULL);
	assert_int_equal(delivered[SIGTERM], 1);
	assert_int_equal(forwarding_due(&f), 0);
}

static void one_sent_to_the_group_is_not_sent_on_whoever_sees_it_first(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_saw(&f, SIGTERM, SHELL, 1000);
	forwarding_ask(&f, SIGTERM, SHELL, false, 2000);
	assert_int_equal(forwarding_due(&f), 0);
	forwarding_ask(&f, SIGHUP, SHELL, false, 3000);
	forwarding_saw(&f, SIGHUP, SHELL, 4000);
	assert_int_equal(forwarding_due(&f), 0);
	forwarding_run(&f, NS_PER_S, deliver, NULL);
	assert_int_equal(delivered[SIGTERM] + delivered[SIGHUP], 0);
}

static void one_to_the_group_does_not_hide_the_next_to_assay_alone(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_saw(&f, SIGTERM, SHELL, 1000);
	forwarding_ask(&f, SIGTERM, SHELL, false, 1100);
	forwarding_ask(&f, SIGTERM, SHELL, false, 1200);
	forwarding_run(&f, forwarding_due(&f), deliver, NULL);
	assert_int_equal(delivered[SIGTERM], 1);
}

static void another_sender_or_another_signal_is_another_matter(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_saw(&f, SIGTERM, SHELL, 1000);
	forwarding_ask(&f, SIGTERM, OTHER, false, 1100);
	forwarding_ask(&f, SIGUSR1, SHELL, false, 1100);
	forwarding_run(&f, NS_PER_S, deliver, NULL);
	assert_int_equal(delivered[SIGTERM], 1);
	assert_int_equal(delivered[SIGUSR1], 1);
}

static void what_was_seen_is_forgotten_unless_assay_was_stopped(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_saw(&f, SIGTERM, SHELL, 0);
	forwarding_saw(&f, SIGHUP, SHELL, 0);
	forwarding_ask(&f, SIGTERM, SHELL, false, 2 * NS_PER_S);
	forwarding_refresh(&f, 2 * NS_PER_S);
	forwarding_ask(&f, SIGHUP, SHELL, false, 2 * NS_PER_S);
	forwarding_run(&f, 3 * NS_PER_S, deliver, NULL);
	assert_int_equal(delivered[SIGTERM], 1);
	assert_int_equal(delivered[SIGHUP], 0);
}

static void one_that_came_before_the_command_is_sent_on_without_waiting(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_saw(&f, SIGINT, 0, 900);
	forwarding_ask(&f, SIGINT, 0, true, 1000);
	forwarding_run(&f, 1000, deliver, NULL);
	assert_int_equal(delivered[SIGINT], 1);
}

static void a_number_that_is_no_signal_is_ignored(void **state)
{
	struct forwarding f = {0};

	(void)state;
	forwarding_saw(&f, -1, SHELL, 0);
	forwarding_ask(&f, NSIG, SHELL, true, 0);
	forwarding_ask(&f, 0, SHELL, true, 0);
	assert_int_equal(forwarding_due(&f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_sent_to_assay_alone_is_sent_on_once, begin),
		cmocka_unit_test_setup(one_sent_to_the_group_is_not_sent_on_whoever_sees_it_first, begin),
		cmocka_unit_test_setup(one_to_the_group_does_not_hide_the_next_to_assay_alone, begin),
		cmocka_unit_test_setup(another_sender_or_another_signal_is_another_matter, begin),
		cmocka_unit_test_setup(what_was_seen_is_forgotten_unless_assay_was_stopped, begin),
		cmocka_unit_test_setup(one_that_came_before_the_command_is_sent_on_without_waiting, begin),
		cmocka_unit_test_setup(a_number_that_is_no_signal_is_ignored, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
