/* Every rule is a function below and a row of `rules`; the thresholds of all of them come first. A rule looks at one
 * phase and either has nothing to say or gives its verdict, the sentence for it and its confidence. The most confident
 * one wins; among equals the one that stands first in the table. A number that was not measured is NaN, and no
 * comparison with it is true: a rule says less then, never something else. */
#include "judge/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "judge/phase_facts.h"
#include "judge/wording.h"

#define MIB 1048576.0

/* Phases. Slow counters are read every 100 ms, and the ends of a phase that an engine's log gives fall between two. */
#define PHASE_SHORTEST_S 0.1
#define PHASE_LOW_S 0.2  /* below it every verdict is low */
#define PHASE_SURE_S 0.5 /* below it none is better than medium */

/* cpu, quota: share of the quota's periods in which the group was held back. */
#define THROTTLED_MEDIUM 0.25
#define THROTTLED_HIGH 0.5
#define QUOTA_USED 0.85 /* of the quota, where the account of the periods is missing */

/* ram: of what was read, this share had been in memory shortly before. */
#define REFAULT_SHARE 0.7
#define REFAULT_LEAST (4 * MIB) /* per second */
#define STALLED_ON_MEMORY 0.10  /* share of the time; counts only ... */
#define MEMORY_FULL 0.9         /* ... where so much of it is in use: a cold start has refaults of earlier days, too */
#define READ_AGAIN 1.5          /* times the size of the input: more than one cold start of it */
#define SWAP_LEAST (4 * MIB)    /* per second */

/* disk */
#define DISK_LEAST (1 * MIB) /* per second, of the tree */
#define STALLED_ON_IO_HIGH 0.5
#define STALLED_ON_IO_MEDIUM 0.3
#define DISK_BUSY 0.7      /* share of the time with a request under way */
#define DISK_OWN 0.5       /* share of the disk's bytes that are the tree's */
#define DISK_CPU_IDLE 0.7  /* cores: below it the CPU is not what it waits for */

/* gpu and pcie, as shares */
#define GPU_COMPUTE 0.8
#define GPU_MEMORY 0.6
#define GPU_LITTLE 0.5
#define GPU_THROTTLED 0.1
#define PCIE_HIGH 0.8
#define PCIE_MEDIUM 0.5

/* memory bandwidth: of the measured peak */
#define STREAM_HIGH 0.7
#define STREAM_MEDIUM 0.5
#define STREAM_TOO_MUCH 1.25    /* more than there is: the number of bytes per token is wrong */
#define PEAKS_AGREE 0.2         /* the two measurements differ by less */
/* Of the pages per second that the looks saw of the streaming probe. Looks understate the fast more than the slow: 0.45
 * was seen at 20 to 40% of the peak, 0.2 at 5%. */
#define TOUCHED_MANY 0.45
#define TOUCHED_FEW 0.2 /* below it the CPU surely computes */
#define STREAM_CORES 0.5        /* the CPU must be busy at all */

/* cpu */
#define WAITING_HIGH 0.2   /* of the time in which its threads wanted a CPU */
#define WAITING_MEDIUM 0.1
#define WAITING_LEAST 0.1  /* threads' worth that waited: less is not worth a verdict */
#define WANTED_HIGH 0.8    /* threads' worth that ran or waited: it hardly slept */
#define WANTED_LEAST 0.3
#define OTHERS_LEAST 0.15  /* CPUs' worth: others are there at all */
#define STOLEN_SHARE 0.1   /* of the CPUs */
#define ALL_CPUS 0.85      /* of the CPUs that it may use */
#define THREAD_BUSY 0.85   /* of a CPU */
#define THREAD_BUSY_HIGH 0.93
#define ONE_THREAD_CORES 1.25 /* all its threads together */
#define IN_TURNS_CORES 1.05   /* so near to one that it is hardly chance */

/* network and wait */
#define NETWORK_LEAST (1 * MIB)
#define NETWORK_FULL 0.8 /* of the link's speed */
#define NETWORK_CORES 0.5
#define IDLE_HIGH 0.05   /* cores */
#define IDLE_MEDIUM 0.3
#define IDLE_LOW 0.6

static bool verdict(struct limit *l, enum limit_kind kind, const char *detail, enum limit_confidence confidence)
{
	l->kind = kind;
	l->detail = detail;
	l->confidence = confidence;
	return true;
}

static double gb(double bytes)
{
	return bytes / 1e9;
}

static bool rule_quota(const struct phase_facts *p, struct limit *l)
{
	bool counted = p->throttled >= THROTTLED_MEDIUM;

	if (isnan(p->f->quota) || p->f->quota >= p->run->cpus)
		return false;
	if (!counted &&
	    !(isnan(p->throttled) && p->cores >= QUOTA_USED * p->f->quota && p->wait_share >= WAITING_MEDIUM))
		return false;
	note(l, "quota_cpus", p->f->quota);
	note(l, "throttled_periods_share", p->throttled);
	note(l, "throttled_s", p->f->throttled_s);
	say(l, "The control group's CPU quota of %.3g CPU%s is used up: %s in use", p->f->quota,
	    p->f->quota == 1 ? "" : "s", wording_cores(p->cores).text);
	if (counted)
		say(l, ", and held back in %s of the quota's periods", units_percent(p->throttled).text);
	say(l, ". Against it would speak: threads that are held back only because they spin while they wait.");
	return verdict(l, LIMIT_CPU, "quota",
		       p->throttled >= THROTTLED_HIGH && p->cores >= 0.7 * p->f->quota ? CONFIDENCE_HIGH
										       : CONFIDENCE_MEDIUM);
}

static void say_limit_of_group(const struct phase_facts *p, struct limit *l)
{
	note(l, "memory_limit_mib", p->f->memory_limit / MIB);
	if (p->f->memory_limit < p->run->memory_bytes)
		say(l, ", under the control group's limit of %s", units_bytes(p->f->memory_limit).text);
}

static double times_read_again(const struct phase_facts *p)
{
	return p->refault_rate * p->seconds / p->input_bytes;
}

static bool short_of_memory(const struct phase_facts *p)
{
	return p->refault_share >= REFAULT_SHARE && p->refault_rate >= REFAULT_LEAST &&
	       ((p->psi_memory >= STALLED_ON_MEMORY && p->memory_used >= MEMORY_FULL) ||
		times_read_again(p) >= READ_AGAIN);
}

static bool rule_ram_files(const struct phase_facts *p, struct limit *l)
{
	bool stalled = p->psi_memory >= STALLED_ON_MEMORY;
	double times = times_read_again(p);

	if (!short_of_memory(p))
		return false;
	note(l, "refault_mib_per_s", p->refault_rate / MIB);
	note(l, "refault_share_of_read", p->refault_share);
	note(l, "pressure_memory_some", p->psi_memory);
	note(l, "memory_used_share", p->memory_used);
	note(l, "input_read_again_times", times);
	say(l, "Host RAM is short: %s of file pages dropped and read again (%s of all that was read)",
	    wording_rate(p->refault_rate).text, units_percent(fmin(1, p->refault_share)).text);
	if (!isnan(p->psi_memory))
		say(l, ", tasks stalled on memory %s of the time", units_percent(p->psi_memory).text);
	if (times >= READ_AGAIN)
		say(l, ", the input read again %.1f times over", times);
	say_limit_of_group(p, l);
	say(l, ". Against it would speak: %s", p->refaults_of_group ? "another program in that group that reads files."
								   : "another program on this machine that runs short "
								     "of memory (refaults are the machine's).");
	return verdict(l, LIMIT_RAM, NULL, stalled ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
}

static bool rule_ram_swap(const struct phase_facts *p, struct limit *l)
{
	if (!(p->swap_rate >= SWAP_LEAST) || p->psi_memory < STALLED_ON_MEMORY)
		return false;
	note(l, "swap_mib_per_s", p->swap_rate / MIB);
	note(l, "pressure_memory_some", p->psi_memory);
	say(l, "Host RAM is short: %s swapped in and out", wording_rate(p->swap_rate).text);
	if (!isnan(p->psi_memory))
		say(l, ", tasks stalled on memory %s of the time", units_percent(p->psi_memory).text);
	say_limit_of_group(p, l);
	say(l, ". Against it would speak: another program on this machine that is being swapped.");
	return verdict(l, LIMIT_RAM, NULL, isnan(p->psi_memory) ? CONFIDENCE_MEDIUM : CONFIDENCE_HIGH);
}

static bool rule_disk(const struct phase_facts *p, struct limit *l)
{
	double own = p->moved_rate, disk = p->disk.moved_rate;
	bool idle = p->cores < DISK_CPU_IDLE, busy = p->disk.busy >= DISK_BUSY;
	enum limit_confidence confidence = CONFIDENCE_LOW;

	if (isnan(own))
		own = disk;
	if (!(own >= DISK_LEAST) || short_of_memory(p) || own < DISK_OWN * disk)
		return false;
	if (!busy && !(p->psi_io >= STALLED_ON_IO_MEDIUM))
		return false;
	if (p->psi_io >= STALLED_ON_IO_HIGH && idle)
		confidence = CONFIDENCE_HIGH;
	else if (p->psi_io >= STALLED_ON_IO_MEDIUM || (busy && idle))
		confidence = CONFIDENCE_MEDIUM;
	note(l, "read_mib_per_s", p->read_rate / MIB);
	note(l, "write_mib_per_s", p->write_rate / MIB);
	note(l, "disk_busy_share", p->disk.busy);
	note(l, "pressure_io_some", p->psi_io);
	if (!(p->write_rate > p->read_rate))
		say(l, "Reading from %s: %s", *p->disk.name ? p->disk.name : "disk", wording_rate(p->read_rate).text);
	else
		say(l, "Writing to %s: %s", *p->disk.name ? p->disk.name : "disk", wording_rate(p->write_rate).text);
	if (*p->disk.kind)
		say(l, " (%s disk)", p->disk.kind);
	if (!isnan(p->disk.busy))
		say(l, ", with a request under way %s of the time", units_percent(fmin(1, p->disk.busy)).text);
	if (!isnan(p->psi_io))
		say(l, ", tasks stalled on I/O %s of the time", units_percent(p->psi_io).text);
	say(l, ", while %s %s in use. Against it would speak: %s", wording_cores(p->cores).text,
	    p->cores >= 0.995 && p->cores < 1.005 ? "was" : "were",
	    idle ? "a rate that does not change on a faster disk." : "the CPU, which was busy as well.");
	return verdict(l, LIMIT_DISK, NULL, confidence);
}

/* A GPU that the command does not use says nothing of it. Where its processes are not told (containers), less is sure.
 */
static bool verdict_gpu(const struct phase_facts *p, struct limit *l, enum limit_kind kind, const char *detail,
			enum limit_confidence confidence)
{
	if (isnan(p->gpu.target_memory)) {
		say(l, " That the GPU was busy with this command is not known.");
		confidence = confidence > CONFIDENCE_LOW ? confidence - 1 : confidence;
	}
	return verdict(l, kind, detail, confidence);
}

static bool rule_pcie(const struct phase_facts *p, struct limit *l)
{
	if (!(p->gpu.pcie >= PCIE_MEDIUM && p->gpu.busy < GPU_LITTLE) || p->gpu.target_memory <= 0)
		return false;
	note(l, "pcie_share_of_peak", p->gpu.pcie);
	note(l, "pcie_mib_per_s", p->gpu.pcie_rate / MIB);
	note(l, "gpu_busy_share", p->gpu.busy);
	say(l,
	    "%s moved over PCIe to or from the %s, %s of what the link can carry, while the GPU ran kernels %s of the "
	    "time. Against it would speak: samples of 20 ms that met a burst.",
	    wording_rate(p->gpu.pcie_rate).text, p->gpu.name, units_percent(p->gpu.pcie).text,
	    units_percent(p->gpu.busy).text);
	return verdict_gpu(p, l, LIMIT_PCIE, NULL, p->gpu.pcie >= PCIE_HIGH ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
}

static bool rule_gpu(const struct phase_facts *p, struct limit *l)
{
	bool power = p->gpu.throttled_power >= GPU_THROTTLED, heat = p->gpu.throttled_heat >= GPU_THROTTLED;

	if (!(p->gpu.busy >= GPU_LITTLE) || p->gpu.target_memory <= 0)
		return false;
	note(l, "gpu_busy_share", p->gpu.busy);
	note(l, "gpu_memory_busy_share", p->gpu.memory_busy);
	note(l, "gpu_throttled_power_share", p->gpu.throttled_power);
	note(l, "gpu_throttled_heat_share", p->gpu.throttled_heat);
	say(l, "The %s ran kernels %s of the time", p->gpu.name, units_percent(p->gpu.busy).text);
	if (power || heat) {
		say(l, ", and lowered its clock for %s %s of the time. Against it would speak: the same speed at a "
		       "higher power limit.",
		    heat ? "heat" : "its power limit",
		    units_percent(heat ? p->gpu.throttled_heat : p->gpu.throttled_power).text);
		return verdict_gpu(p, l, LIMIT_GPU, heat ? "heat" : "power", CONFIDENCE_HIGH);
	}
	if (p->gpu.memory_busy >= GPU_MEMORY) {
		say(l,
		    " and its memory was busy %s. Against it would speak: many small transfers, which keep it as busy.",
		    units_percent(p->gpu.memory_busy).text);
		return verdict_gpu(p, l, LIMIT_GPU, "memory", CONFIDENCE_HIGH);
	}
	if (!(p->gpu.busy >= GPU_COMPUTE))
		return false;
	say(l, ", its memory was busy %s: computing, or small kernels one after the other, which this counter does not "
	       "tell apart.",
	    units_percent(p->gpu.memory_busy).text);
	return verdict_gpu(p, l, LIMIT_GPU, "compute", CONFIDENCE_MEDIUM);
}

/* How sure one can be of the peak itself: it was measured before and after, and both agree. */
static bool peaks_agree(const struct phase_facts *p)
{
	return p->run->bandwidth[0].one > 0 && p->run->bandwidth[1].one > 0 &&
	       p->peak_high - p->peak_low <= PEAKS_AGREE * p->peak_high;
}

static void say_peak(const struct phase_facts *p, struct limit *l)
{
	bool two = p->run->bandwidth[0].one > 0 && p->run->bandwidth[1].one > 0;
	const struct bandwidth *b = &p->run->bandwidth[p->run->bandwidth[1].one > 0];

	note(l, "peak_low_gb_per_s", gb(p->peak_low));
	note(l, "peak_high_gb_per_s", gb(p->peak_high));
	if (two && p->peak_high - p->peak_low > 0.02 * p->peak_high)
		say(l, "%.1f to %.1f GB/s", gb(p->peak_low), gb(p->peak_high));
	else
		say(l, "%.1f GB/s", gb(p->peak_high));
	say(l, " that %s can read here (measured %s, rounds within %s)",
	    p->peak_threads > 1 ? "as many threads" : "one thread", two ? "before and after" : "once",
	    units_percent(p->peak_threads > 1 ? b->all_spread : b->one_spread).text);
}

static bool rule_token_stream(const struct phase_facts *p, struct limit *l)
{
	double sure = p->stream_rate / p->peak_high, at_most = p->stream_rate / p->peak_low;

	if (!(at_most >= STREAM_MEDIUM && sure <= STREAM_TOO_MUCH) ||
	    p->run->weights.file_bytes < p->run->cache_bytes || p->cores < STREAM_CORES)
		return false;
	note(l, "tokens_per_s", p->token_rate);
	note(l, "mb_per_token", p->token_bytes / 1e6);
	note(l, "read_gb_per_s", gb(p->stream_rate));
	note(l, "share_of_peak", sure);
	say(l, "%.4g tokens/s times %.1f MB that each token reads are %.1f GB/s, %s of the ", p->token_rate,
	    p->token_bytes / 1e6, gb(p->stream_rate), units_percent(sure).text);
	say_peak(p, l);
	say(l, ". Against it would speak: a batch or a draft model, which share one reading among several tokens.");
	return verdict(l, LIMIT_MEMORY_BANDWIDTH, NULL,
		       sure >= STREAM_HIGH && peaks_agree(p) ? CONFIDENCE_HIGH
		       : sure >= STREAM_MEDIUM		     ? CONFIDENCE_MEDIUM
							     : CONFIDENCE_LOW);
}

static bool rule_touched(const struct phase_facts *p, struct limit *l)
{
	if (!isnan(p->stream_rate) || !(p->touched_share >= TOUCHED_MANY) || p->fits_cache || p->cores < STREAM_CORES)
		return false;
	note(l, "touched_gb_per_s", gb(p->f->touched_rate));
	note(l, "touched_share_of_peak", p->touched_share);
	say(l,
	    "Its memory (%s) is gone through so fast that %.1f GB of distinct pages a second were seen to be touched, "
	    "%s of what the same look sees of a program that does nothing but read, at the ",
	    units_bytes(p->f->rss_peak).text, gb(p->f->touched_rate), units_percent(p->touched_share).text);
	say_peak(p, l);
	say(l, ". Against it would speak: use of a few bytes of each page, which waits for memory as long without "
	       "filling the bus and looks the same here.");
	return verdict(l, LIMIT_MEMORY_BANDWIDTH, NULL, CONFIDENCE_LOW);
}

/* Whether memory bandwidth is ruled out, so that a busy CPU computes. */
static bool surely_computes(const struct phase_facts *p)
{
	return p->fits_cache || p->touched_share < TOUCHED_FEW || p->stream_rate / p->peak_low < STREAM_MEDIUM;
}

static void note_cpu(const struct phase_facts *p, struct limit *l)
{
	note(l, "cores", p->cores);
	note(l, "cpus", p->cpus);
	note(l, "busiest_thread_share", p->busiest);
	note(l, "busy_threads", p->busy_threads);
	note(l, "waiting_share", p->wait_share);
	note(l, "others_cores", p->others);
	note(l, "pressure_cpu_some", p->psi_cpu);
}

static bool rule_contended(const struct phase_facts *p, struct limit *l)
{
	double waiting = p->f->runqueue_wait_s / p->seconds, wanted = p->cores + (isnan(waiting) ? 0 : waiting);
	bool waits = p->wait_share >= WAITING_MEDIUM && waiting >= WAITING_LEAST;
	bool pressed = isnan(p->wait_share) && p->psi_cpu >= WAITING_MEDIUM;
	bool others = p->others >= OTHERS_LEAST, stolen = p->stolen >= STOLEN_SHARE * p->run->cpus;

	if (!(wanted >= WANTED_LEAST) || (!stolen && !(others && (waits || pressed))))
		return false;
	note_cpu(p, l);
	note(l, "stolen_cores", p->stolen);
	if (stolen) {
		say(l, "The hypervisor gave %s of this machine's %d CPUs to others. Against it would speak: a command "
		       "that waits for something else.",
		    wording_cores(p->stolen).text, p->run->cpus);
		return verdict(l, LIMIT_CPU, "contended", waits ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	}
	if (waits)
		say(l, "Of the time in which its threads could have run they waited %s for a CPU",
		    units_percent(p->wait_share).text);
	else
		say(l, "Some task waited for a CPU %s of the time", units_percent(p->psi_cpu).text);
	say(l, ", while other programs used %s of %d CPUs (it got %s)", wording_cores(p->others).text, p->run->cpus,
	    wording_cores(p->cores).text);
	say(l, ". Against it would speak: %s",
	    waits ? "more threads of its own than CPUs." : "that pressure is the whole machine's.");
	return verdict(l, LIMIT_CPU, "contended",
		       p->wait_share >= WAITING_HIGH && wanted >= WANTED_HIGH ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
}

static const char *unsure_of_memory(const struct phase_facts *p)
{
	return isnan(p->touched_share) && isnan(p->stream_rate)
		       ? "that they wait for memory, which looks as busy and was not measured."
		       : "that they wait for memory, which looks as busy.";
}

/* How sure one can be that a busy CPU computes and does not wait for memory. */
static enum limit_confidence computing(const struct phase_facts *p)
{
	return surely_computes(p)		  ? CONFIDENCE_HIGH
	       : p->touched_share >= TOUCHED_MANY ? CONFIDENCE_LOW
						  : CONFIDENCE_MEDIUM;
}

/* What the tokens ask of memory, where that is known and rules it out. */
static void say_stream(const struct phase_facts *p, struct limit *l)
{
	if (!(p->stream_rate / p->peak_low < STREAM_MEDIUM))
		return;
	note(l, "read_gb_per_s", gb(p->stream_rate));
	say(l, "; its tokens read %.1f GB/s, %s of what memory gives", gb(p->stream_rate),
	    units_percent(p->stream_rate / p->peak_low).text);
}

static bool rule_all_threads(const struct phase_facts *p, struct limit *l)
{
	bool all_cpus = p->cpus > 1 && p->cores >= ALL_CPUS * p->cpus;
	bool all_busy = p->busy_threads >= 2 && p->busy_cores >= THREAD_BUSY * p->busy_threads &&
			p->busy_cores >= THREAD_BUSY * p->cores;

	if (!all_cpus && !all_busy)
		return false;
	note_cpu(p, l);
	if (all_cpus)
		say(l, "%s of the %.3g CPUs that it may use are busy with it", wording_cores(p->cores).text, p->cpus);
	else
		say(l, "Its %.0f working threads use %s, all they can, of the %.3g CPUs that it may use",
		    p->busy_threads, wording_cores(p->busy_cores).text, p->cpus);
	if (p->wait_share >= WAITING_MEDIUM && p->f->threads_max > p->cpus)
		say(l, "; it has up to %.0f threads, which wait for each other's CPU %s of the time", p->f->threads_max,
		    units_percent(p->wait_share).text);
	say_stream(p, l);
	say(l, ". Against it would speak: %s",
	    surely_computes(p) ? "threads that only spin while they wait for each other." : unsure_of_memory(p));
	return verdict(l, LIMIT_CPU, "all threads", computing(p));
}

static bool rule_one_thread(const struct phase_facts *p, struct limit *l)
{
	bool alone = p->f->threads_max <= 1 && p->f->processes_max <= 1, sure = p->busiest >= THREAD_BUSY_HIGH;
	bool one = p->cores >= THREAD_BUSY && p->cores <= ONE_THREAD_CORES;
	bool in_turns = p->cores >= THREAD_BUSY_HIGH && p->cores <= IN_TURNS_CORES && p->wait_share < WAITING_MEDIUM;

	if (!(p->busiest >= THREAD_BUSY) && !one)
		return false;
	note_cpu(p, l);
	if (p->busiest >= THREAD_BUSY || (isnan(p->busiest) && alone)) {
		say(l, "One thread%s%s%s is busy %s of the time", *p->busiest_name ? " (" : "", p->busiest_name,
		    *p->busiest_name ? ")" : "", units_percent(fmin(1, alone ? p->cores : p->busiest)).text);
		if (p->f->threads_max > 1)
			say(l, " while the others (%.0f threads at most) mostly wait", p->f->threads_max);
		say(l, "; it may use %.3g CPU%s", p->cpus, p->cpus == 1 ? "" : "s");
		say_stream(p, l);
		say(l, ". Against it would speak: %s",
		    surely_computes(p) ? "a thread that only spins while it waits." : unsure_of_memory(p));
		return verdict(l, LIMIT_CPU, "one thread",
			       !one				       ? CONFIDENCE_LOW
			       : !(sure || alone) && surely_computes(p) ? CONFIDENCE_MEDIUM
								       : computing(p));
	}
	say(l, "Its threads and processes together use %s, as if only one could run at a time%s",
	    wording_cores(p->cores).text, isnan(p->busiest) ? "" : ", though not always the same one");
	say_stream(p, l);
	say(l, ". Against it would speak: chance, since nothing else shows that they wait for each other.");
	return verdict(l, LIMIT_CPU, "one thread", in_turns && surely_computes(p) ? CONFIDENCE_MEDIUM : CONFIDENCE_LOW);
}

static bool rule_network(const struct phase_facts *p, struct limit *l)
{
	double most = fmax(p->network.read_rate, p->network.write_rate), share = most / p->network.speed;

	if (!(most >= NETWORK_LEAST && p->cores < NETWORK_CORES))
		return false;
	note(l, "network_mib_per_s", most / MIB);
	note(l, "network_share_of_link", share);
	say(l, "%s %s over %s", wording_rate(most).text,
	    p->network.read_rate >= p->network.write_rate ? "came" : "went", p->network.name);
	if (!isnan(share))
		say(l, ", %s of the link's speed,", units_percent(share).text);
	say(l, " while %s were in use. Against it would speak: traffic of other programs, which is counted too.",
	    wording_cores(p->cores).text);
	return verdict(l, LIMIT_NETWORK, NULL,
		       share >= NETWORK_FULL	    ? CONFIDENCE_HIGH
		       : p->cores < IDLE_MEDIUM ? CONFIDENCE_MEDIUM
						: CONFIDENCE_LOW);
}

static bool rule_wait(const struct phase_facts *p, struct limit *l)
{
	bool quiet = !(p->wait_share >= WAITING_MEDIUM && p->cores >= IDLE_HIGH) &&
		     !(p->psi_io >= STALLED_ON_IO_MEDIUM) && !(p->gpu.busy >= GPU_LITTLE);

	if (!(p->cores <= IDLE_LOW))
		return false;
	note_cpu(p, l);
	note(l, "pressure_io_some", p->psi_io);
	say(l,
	    "It used %s and moved %s from or to disk: its threads slept%s, on a timer, a lock, a pipe, another "
	    "process or the network; which of these, the counters do not tell. Against it would speak: work that "
	    "others do for it, outside of its processes.",
	    wording_cores(p->cores).text,
	    wording_rate(isnan(p->moved_rate) ? 0 : p->moved_rate).text,
	    p->cores <= IDLE_MEDIUM ? "" : " part of the time");
	return verdict(l, LIMIT_WAIT, NULL,
		       p->cores <= IDLE_HIGH && quiet	? CONFIDENCE_HIGH
		       : p->cores <= IDLE_MEDIUM && quiet ? CONFIDENCE_MEDIUM
							: CONFIDENCE_LOW);
}

typedef bool rule(const struct phase_facts *p, struct limit *l);

static rule *const rules[] = {
	rule_quota,	   rule_ram_files, rule_ram_swap,    rule_disk,	      rule_pcie,    rule_gpu, rule_token_stream,
	rule_touched, rule_contended, rule_all_threads, rule_one_thread, rule_network, rule_wait,
};

static void say_missing(const struct phase_facts *p, struct limit *l)
{
	const char *names[PHASE_FACTS_WANTED];
	size_t count = phase_facts_missing(p, names);

	if (count == 0)
		say(l, " All counters that the rules ask for were there.");
	for (size_t i = 0; i < count; i++)
		say(l, "%s%s%s", i ? ", " : " Not measured: ", names[i], i + 1 == count ? "." : "");
}

static void unknown(const struct phase_facts *p, struct limit *l)
{
	verdict(l, LIMIT_UNKNOWN, NULL, CONFIDENCE_LOW);
	note_cpu(p, l);
	say(l, "Nothing stands out");
	if (!isnan(p->cores))
		say(l, ": %s in use", wording_cores(p->cores).text);
	say(l, ".");
	say_missing(p, l);
}

static void too_short(const struct phase_facts *p, struct limit *l)
{
	verdict(l, LIMIT_UNKNOWN, NULL, CONFIDENCE_LOW);
	note(l, "phase_s", p->seconds);
	say(l, "The phase lasted %s, too short for counters that are read every 100 ms.",
	    units_seconds(p->seconds).text);
}

static void judge_phase(const struct phase_facts *p, struct limit *l)
{
	bool any = false;

	*l = (struct limit){.phase = p->index};
	if (p->seconds < PHASE_SHORTEST_S) {
		too_short(p, l);
		return;
	}
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		struct limit one = {.phase = p->index};
		enum limit_confidence most;

		if (!rules[i](p, &one))
			continue;
		most = p->seconds < PHASE_LOW_S	   ? CONFIDENCE_LOW
		       : p->seconds < PHASE_SURE_S ? CONFIDENCE_MEDIUM
						   : CONFIDENCE_HIGH;
		one.confidence = one.confidence < most ? one.confidence : most;
		if (!any || one.confidence > l->confidence)
			*l = one;
		any = true;
	}
	if (!any)
		unknown(p, l);
}

int limits_judge(struct run *run, struct error *err)
{
	size_t count = run->figures ? run->phases.count : 0;
	struct limit *limits = calloc(count + 1, sizeof *limits);

	if (!limits)
		return error_set(err, "out of memory for the limits of %zu phases", count);
	for (size_t i = 0; i < count; i++) {
		struct phase_facts p;

		phase_facts_find(run, i, &p);
		judge_phase(&p, &limits[i]);
	}
	free(run->limits);
	run->limits = limits;
	run->limit_count = count;
	return 0;
}

bool limits_want_bandwidth(const struct run *run)
{
	for (size_t i = 0; run->figures && i < run->phases.count; i++) {
		struct phase_facts p;

		phase_facts_find(run, i, &p);
		if (p.seconds >= PHASE_SHORTEST_S && p.cores >= STREAM_CORES && !p.fits_cache &&
		    (p.stream_rate > 0 || p.f->touched_rate > 0))
			return true;
	}
	return false;
}
