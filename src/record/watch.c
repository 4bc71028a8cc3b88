/* The loop of a run: waits for the helper, for signals, for marks and for the next reading, until nothing is left to
 * wait for. Decides when a timeout has passed and when waiting for output has been long enough, not what the results
 * are. */
#include "record/recording.h"

#include <math.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define KILL_AFTER_NS (5 * NS_PER_S)
/* After a timeout or an interrupt: so long for output that nobody may be reading. The helper goes on with it. */
#define DRAIN_NS NS_PER_S
/* CPU samples are looked after so often. */
#define SAMPLING_NS (50 * NS_PER_MS)

static void on_exit_of(struct recording *r, const struct wire_exit *e)
{
	struct run *run = r->run;

	run->cpu_user_s = (isnan(run->cpu_user_s) ? 0 : run->cpu_user_s) + (double)e->user_ns / 1e9;
	run->cpu_system_s = (isnan(run->cpu_system_s) ? 0 : run->cpu_system_s) + (double)e->system_ns / 1e9;
	run->voluntary_switches =
		(isnan(run->voluntary_switches) ? 0 : run->voluntary_switches) + (double)e->voluntary_switches;
	run->involuntary_switches =
		(isnan(run->involuntary_switches) ? 0 : run->involuntary_switches) + (double)e->involuntary_switches;
	if (isnan(run->max_rss_process) || (double)e->max_rss > run->max_rss_process)
		run->max_rss_process = (double)e->max_rss;
	if (e->is_command || (r->command_ended && r->options->wait_tree))
		run->end = e->t;
	if (e->is_command) {
		r->command_ended = true;
		r->exit = *e;
	}
}

static void take_events(struct recording *r)
{
	struct launch_event event;
	struct error err;
	int got;

	while ((got = launch_next(r->launch, &event, &err)) > 0) {
		switch (event.type) {
		case LAUNCH_EXITED:
			on_exit_of(r, &event.exit);
			monitor_reaped(r->monitor, &event.exit, clock_mono_ns());
			if (r->sampling)
				sampling_reaped(r->sampling, &event.exit, clock_mono_ns());
			break;
		case LAUNCH_STOPPED:
			launch_stop_self(event.signo);
			break;
		case LAUNCH_DRAINED:
			r->drained = true;
			r->result->ends_with_newline = event.ends_with_newline;
			r->result->undelivered = event.undelivered;
			break;
		case LAUNCH_CLOSED:
			r->result->undelivered = event.undelivered;
			break;
		case LAUNCH_NO_CHILDREN:
			r->no_children = true;
			break;
		case LAUNCH_TROUBLE:
			warnings_add(&r->run->warnings, "%s", event.text);
			break;
		case LAUNCH_GONE:
			r->gone = true;
			return;
		}
	}
	if (got < 0) {
		warnings_add(&r->run->warnings, "The helper cannot be heard any more: %s.", err.text);
		r->gone = true;
	}
}

/* Whether assay would have ended of it. One that the caller ignores means nothing to assay. */
static bool ends_a_program(int signo)
{
	if (launch_signal_ignored(signo))
		return false;
	return signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT;
}

/* Whether this is the signal that has just ended the command: its news may come before our own copy. */
static bool ended_by(const struct recording *r, int signo)
{
	return !r->interrupted_by && (r->exit.status & 0x7f ? WTERMSIG(r->exit.status) == signo
							    : WEXITSTATUS(r->exit.status) == 128 + signo);
}

static void end_tree(struct recording *r, int64_t now)
{
	r->ending = true;
	r->kill_at = now + KILL_AFTER_NS;
	tree_update(monitor_tree(r->monitor), now);
	tree_signal(monitor_tree(r->monitor), SIGTERM);
	tree_signal(monitor_tree(r->monitor), SIGCONT); /* a stopped process could not act on it */
}

void recording_take_signals(struct recording *r)
{
	struct signalfd_siginfo info;

	while (read(r->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		int signo = (int)info.ssi_signo;

		if (r->command_ended && !ended_by(r, signo)) {
			r->asked_to_finish |= ends_a_program(signo);
			continue;
		}
		if (ends_a_program(signo)) {
			r->interrupted_by = signo;
			r->interrupt_by_terminal = info.ssi_code > 0;
		}
		if (!r->command_ended)
			launch_forward_signal(r->launch, &info);
		if (ends_a_program(signo) && r->options->end_tree && !r->ending)
			end_tree(r, clock_mono_ns());
	}
}

static void check_ending(struct recording *r, int64_t now)
{
	if (r->ending && now >= r->kill_at) {
		tree_update(monitor_tree(r->monitor), now);
		tree_signal(monitor_tree(r->monitor), SIGKILL);
		r->kill_at = now + NS_PER_S / 10; /* again, for those that were forked meanwhile */
	} else if (!r->ending && r->deadline && now >= r->deadline) {
		r->timed_out = true;
		end_tree(r, now);
	}
}

/* Whether there is something left to wait for. */
static bool going_on(const struct recording *r)
{
	if (r->gone || r->asked_to_finish)
		return false;
	if (!r->command_ended)
		return true;
	if ((r->options->wait_tree || r->ending) && !r->no_children)
		return true;
	return !r->drained && !(r->drained_by && clock_mono_ns() >= r->drained_by);
}

void recording_watch(struct recording *r)
{
	struct pollfd fds[] = {
		{.fd = launch_fd(r->launch), .events = POLLIN},
		{.fd = r->signals, .events = POLLIN},
		{.fd = r->markers.notify, .events = POLLIN},
	};

	while (going_on(r)) {
		bool watching = !r->command_ended || r->options->wait_tree;
		int64_t now = clock_mono_ns(), due = watching ? monitor_due(r->monitor) : now + NS_PER_S;
		struct timespec wait;

		if (r->sampling && watching && r->sampling_due < due)
			due = r->sampling_due;
		if (r->deadline && !r->ending && r->deadline < due)
			due = r->deadline;
		if (r->ending && r->kill_at < due)
			due = r->kill_at;
		if (r->command_ended && !r->drained_by && (r->timed_out || r->interrupted_by))
			r->drained_by = now + DRAIN_NS;
		if (r->drained_by && r->drained_by < due)
			due = r->drained_by;
		due = due > now ? due - now : 0;
		wait = (struct timespec){.tv_sec = (time_t)(due / NS_PER_S), .tv_nsec = (long)(due % NS_PER_S)};
		if (ppoll(fds, 3, &wait, NULL) > 0) {
			if (fds[1].revents)
				recording_take_signals(r);
			if (fds[2].revents)
				markers_read(&r->markers, clock_mono_ns());
			if (fds[0].revents)
				take_events(r);
		}
		now = clock_mono_ns();
		if (watching && now >= monitor_due(r->monitor)) {
			monitor_run(r->monitor, now);
			if (r->markers.notify < 0)
				markers_read(&r->markers, clock_mono_ns());
		}
		if (r->sampling && watching && now >= r->sampling_due) {
			sampling_poll(r->sampling, monitor_processes(r->monitor), now);
			r->sampling_due = now + SAMPLING_NS;
		}
		check_ending(r, now);
	}
}
