#include "exec/forwarding.h"

#include "base/clock.h"

#define WAIT_NS (20 * NS_PER_MS)
#define FORGET_NS NS_PER_S /* of two signals that became one in assay, the helper may have seen both */

static bool is_signal(int signo)
{
	return signo > 0 && signo < NSIG;
}

void forwarding_saw(struct forwarding *f, int signo, pid_t sender, int64_t now)
{
	if (!is_signal(signo))
		return;
	if (f->waiting[signo].due && f->waiting[signo].sender == sender) {
		f->waiting[signo].due = 0;
		return;
	}
	if (f->seen[signo].sender != sender || now - f->seen[signo].t > FORGET_NS)
		f->seen[signo].count = 0;
	f->seen[signo].sender = sender;
	f->seen[signo].t = now;
	f->seen[signo].count++;
}

void forwarding_ask(struct forwarding *f, int signo, pid_t sender, bool surely, int64_t now)
{
	if (!is_signal(signo))
		return;
	if (!surely && f->seen[signo].count && f->seen[signo].sender == sender && now - f->seen[signo].t <= FORGET_NS) {
		f->seen[signo].count--;
		return;
	}
	/* One that already waits becomes one with it, as pending signals do. */
	if (!f->waiting[signo].due || surely)
		f->waiting[signo].due = surely ? now : now + WAIT_NS;
	f->waiting[signo].sender = sender;
}

void forwarding_run(struct forwarding *f, int64_t now, void (*deliver)(void *context, int signo), void *context)
{
	for (int signo = 1; signo < NSIG; signo++) {
		if (!f->waiting[signo].due || now < f->waiting[signo].due)
			continue;
		f->waiting[signo].due = 0;
		deliver(context, signo);
	}
}

int64_t forwarding_due(const struct forwarding *f)
{
	int64_t due = 0;

	for (int signo = 1; signo < NSIG; signo++)
		if (f->waiting[signo].due && (!due || f->waiting[signo].due < due))
			due = f->waiting[signo].due;
	return due;
}

void forwarding_refresh(struct forwarding *f, int64_t now)
{
	for (int signo = 1; signo < NSIG; signo++)
		if (f->seen[signo].count)
			f->seen[signo].t = now;
}
