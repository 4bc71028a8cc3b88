/* One run under way: what record.c sets up and finishes, and watch.c goes through. Known to these two only. */
#ifndef ASSAY_RECORD_RECORDING_H
#define ASSAY_RECORD_RECORDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "exec/launch.h"
#include "record/markers.h"
#include "record/monitor.h"
#include "record/record.h"
#include "record/sampling.h"

struct recording {
	const struct record_options *options;
	struct record_result *result;
	struct run *run;
	struct launch *launch;
	struct monitor *monitor;
	struct sampling *sampling; /* NULL: no CPU samples are taken */
	int64_t sampling_due;
	struct markers_watch markers;
	bool has_dir;
	int signals; /* signalfd */
	pid_t command;
	int64_t start, deadline, kill_at;
	bool command_ended, drained, no_children, gone, timed_out, asked_to_finish;
	bool ending; /* the whole tree is being ended: TERM has been sent, KILL follows at kill_at */
	int interrupted_by;      /* the last of INT, TERM, HUP, QUIT that assay got while the command ran */
	bool interrupt_by_terminal;
	struct wire_exit exit;
	int64_t drained_by; /* when to stop waiting for output that nobody reads; 0: not */
};

/* Until the command has ended, what it wrote has been passed on, and (with wait_tree) its descendants have ended; or
 * until a signal or a timeout says that it is enough. */
void recording_watch(struct recording *r);

/* Acts on the signals that have come: passes them on to the command, or takes them as meant for assay. */
void recording_take_signals(struct recording *r);

#endif
