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

/* ram: a process killed for want of memory says it all; else, of what was read, this share had been in memory shortly
 * before. */
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
#define STALLED_ON_IO_LOW 0.15
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
#define TOUCHED_FEW 0.2      /* below it the CPU surely computes */
#define TOUCHED_TOO_MUCH 4.0 /* no reader of whole pages is so fast: single values, at the pace of memory's answers */
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
#define OVERSUBSCRIBED 1.5    /* threads that run or are ready, for each CPU that they may use ... */
#define OVERSUBSCRIBED_USE 0.7 /* ... so much of which they use */
#define IN_KERNEL 0.5         /* of its CPU time: copying, page faults, file systems */
#define DISK_MUCH (50 * MIB)  /* per second beside a busy CPU: not to be left unsaid */
#define SAME_THREAD 0.8       /* of the busiest thread's share: it is the same one all the time */
#define IN_TURNS_CORES 1.05   /* so near to one that it is hardly chance */

/* network and wait */
#define NETWORK_LEAST (1 * MIB)
#define NETWORK_FULL 0.8 /* of the link's speed */
#define NETWORK_HALF 0.5
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

static bool rule_ram_killed(const struct phase_facts *p, struct limit *l)
{
	if (!(p->f->oom_kills >= 0.5))
		return false;
	note(l, "oom_kills", p->f->oom_kills);
	say_short_of_memory(p, l);
	say(l,
	    "the kernel killed %.0f process%s for want of memory. Against it would speak: a process of the group that "
	    "is "
	    "none of the command's.",
	    p->f->oom_kills, p->f->oom_kills < 1.5 ? "" : "es");
	return verdict(l, LIMIT_RAM, NULL, CONFIDENCE_HIGH);
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
	say_short_of_memory(p, l);
	say(l, "%s of file pages dropped and read again (%s of all that was read)", wording_rate(p->refault_rate).text,
	    units_percent(fmin(1, p->refault_share)).text);
	if (!isnan(p->psi_memory))
		say(l, ", tasks stalled on memory %s of the time", units_percent(p->psi_memory).text);
	if (times >= READ_AGAIN)
		say(l, ", the input read again %.1f times over", times);
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
	say_short_of_memory(p, l);
	say(l, "%s swapped in and out", wording_rate(p->swap_rate).text);
	if (!isnan(p->psi_memory))
		say(l, ", tasks stalled on memory %s of the time", units_percent(p->psi_memory).text);
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
	if (!busy && !(p->psi_io >= STALLED_ON_IO_MEDIUM) && !(p->psi_io >= STALLED_ON_IO_LOW && idle))
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

static bool rule_token_stream(const struct phase_facts *p, struct limit *l)
{
	double sure = p->stream_rate / p->peak_high, at_most = p->stream_rate / p->peak_low;

	if (!(at_most >= STREAM_MEDIUM && sure <= STREAM_TOO_MUCH) ||
	    p->run->weights.file_bytes < p->run->cache_bytes || p->cores < STREAM_CORES)
		return false;
	note(l, "tokens_per_s", p->token_rate);
	note(l, "mb_per_token", p->token_bytes / 1e6);
	note(l, "read_gb_per_s", p->stream_rate / 1e9);
	note(l, "share_of_peak", sure);
	say(l, "%.4g tokens/s times %.1f MB that each token reads are %.1f GB/s, %s of the ", p->token_rate,
	    p->token_bytes / 1e6, p->stream_rate / 1e9, units_percent(sure).text);
	say_peak(p, l);
	say(l, ". Against it would speak: a batch or a draft model, which share one reading among several tokens.");
	return verdict(l, LIMIT_MEMORY_BANDWIDTH, NULL,
		       sure >= STREAM_HIGH && peaks_agree(p) ? CONFIDENCE_HIGH
		       : sure >= STREAM_MEDIUM		     ? CONFIDENCE_MEDIUM
							     : CONFIDENCE_LOW);
}

static bool rule_touched(const struct phase_facts *p, struct limit *l)
{
	if (!isnan(p->stream_rate) || !(p->touched_share >= TOUCHED_MANY && p->touched_share <= TOUCHED_TOO_MUCH) ||
	    p->fits_cache || p->cores < STREAM_CORES)
		return false;
	note(l, "touched_gb_per_s", p->f->touched_rate / 1e9);
	note(l, "touched_share_of_peak", p->touched_share);
	say(l,
	    "Its memory (%s) is gone through so fast that %.1f GB of distinct pages a second were seen to be touched, "
	    "%s of what the same look sees of a program that does nothing but read, at the ",
	    units_bytes(p->f->rss_peak).text, p->f->touched_rate / 1e9, units_percent(p->touched_share).text);
	say_peak(p, l);
	say(l, ". Against it would speak: use of a few bytes of each page, which waits for memory as long without "
	       "filling the bus and looks the same here.");
	return verdict(l, LIMIT_MEMORY_BANDWIDTH, NULL, CONFIDENCE_LOW);
}

/* Whether memory bandwidth is ruled out, so that a busy CPU computes. */
static bool surely_computes(const struct phase_facts *p)
{
	if (p->in_kernel >= IN_KERNEL)
		return false;
	return p->fits_cache || p->stream_rate / p->peak_low < STREAM_MEDIUM;
}

/* All that it may use is in use by it: then its threads wait for each other, whoever else there is. */
static bool uses_all(const struct phase_facts *p)
{
	return p->cores >= ALL_CPUS * p->cpus;
}

static bool rule_contended(const struct phase_facts *p, struct limit *l)
{
	double wanted = p->cores + (isnan(p->waiting) ? 0 : p->waiting);
	bool waits = p->wait_share >= WAITING_MEDIUM && p->waiting >= WAITING_LEAST;
	bool pressed = isnan(p->wait_share) && p->psi_cpu >= WAITING_MEDIUM;
	bool others = p->others >= OTHERS_LEAST;
	bool stolen = p->run->cpus > 0 && p->stolen >= STOLEN_SHARE * p->run->cpus;

	if (!(wanted >= WANTED_LEAST) || (!stolen && (!(others && (waits || pressed)) || uses_all(p))))
		return false;
	note_cpu(p, l);
	note(l, "stolen_cores", p->stolen);
	if (stolen) {
		say(l,
		    "The hypervisor gave %s of this machine's %d CPUs to others. Against it would speak: a command "
		    "that "
		    "waits for something else.",
		    wording_cores(p->stolen).text, p->run->cpus);
		return verdict(l, LIMIT_CPU, "contended", waits ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
	}
	if (waits)
		say(l, "Of the time in which its threads could have run they waited %s for a CPU",
		    units_percent(p->wait_share).text);
	else
		say(l, "Some task waited for a CPU %s of the time", units_percent(p->psi_cpu).text);
	say(l, ", while other programs used %s of %d CPUs (it got %s of the %.3g that it may use)",
	    wording_cores(p->others).text, p->run->cpus, wording_cores(p->cores).text, p->cpus);
	say(l, ". Against it would speak: %s",
	    waits ? "the others keeping to CPUs that it may not use." : "that pressure is the whole machine's.");
	return verdict(l, LIMIT_CPU, "contended",
		       p->wait_share >= WAITING_HIGH && wanted >= WANTED_HIGH ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM);
}

/* How sure one can be that a busy CPU computes and does not wait for memory, nor for what the disk brings. */
static enum limit_confidence computing(const struct phase_facts *p)
{
	if (p->touched_share >= TOUCHED_MANY)
		return CONFIDENCE_LOW;
	return surely_computes(p) && !(p->read_rate >= DISK_MUCH) ? CONFIDENCE_HIGH : CONFIDENCE_MEDIUM;
}

/* What stands behind "busy", and what would speak against it. */
static void say_rest(const struct phase_facts *p, struct limit *l, const char *against)
{
	if (p->in_kernel >= IN_KERNEL)
		say(l, "; %s of it in the kernel", units_percent(p->in_kernel).text);
	if (p->copied_rate > COPIES_MUCH)
		say(l, ", which copied %s", wording_rate(p->copied_rate).text);
	if (p->stream_rate / p->peak_low < STREAM_MEDIUM) {
		note(l, "read_gb_per_s", p->stream_rate / 1e9);
		say(l, "; its tokens read %.1f GB/s, %s of what memory gives", p->stream_rate / 1e9,
		    units_percent(p->stream_rate / p->peak_low).text);
	}
	say(l, ". Against it would speak: ");
	if (p->read_rate >= DISK_MUCH)
		say(l, "that %s came from disk, which the page cache would spare.", wording_rate(p->read_rate).text);
	else if (surely_computes(p) || (p->touched_share < TOUCHED_FEW && !(p->in_kernel >= IN_KERNEL)))
		say(l, "%s.", against);
	else
		say(l, "that it waits for memory, which looks as busy%s.",
		    p->touched_share > TOUCHED_TOO_MUCH ? " (pages are touched faster than whole ones can be read)"
		    : isnan(p->touched_share) && isnan(p->stream_rate) ? " and was not measured"
								       : "");
}

static bool rule_all_threads(const struct phase_facts *p, struct limit *l)
{
	double wanted = p->cores + (isnan(p->waiting) ? 0 : p->waiting);
	bool several = p->f->threads_max > 1 || p->cores > ONE_THREAD_CORES;
	bool crowded = wanted >= OVERSUBSCRIBED * p->cpus && p->cores >= OVERSUBSCRIBED_USE * p->cpus && p->waiting > 0;
	bool all_cpus = several && uses_all(p) && (p->cpus > 1 || crowded);
	bool all_busy = p->busy_threads >= 2 && p->busy_cores >= THREAD_BUSY * p->busy_threads &&
			p->busy_cores >= THREAD_BUSY * p->cores;

	if (!all_cpus && !all_busy && !(several && crowded))
		return false;
	note_cpu(p, l);
	if (!all_cpus && all_busy)
		say(l, "Its %.0f working threads use %s, all they can, of the %.3g CPUs that it may use",
		    p->busy_threads, wording_cores(p->busy_cores).text, p->cpus);
	else if (p->cpus > 1)
		say(l, "It uses %s of the %.3g CPUs that it may use", wording_cores(p->cores).text, p->cpus);
	else
		say(l, "It uses all of the one CPU that it may use");
	if (crowded)
		say(l, ", and %.1f of its threads were ready to run at a time: they wait for each other", wanted);
	say_rest(p, l, "threads that only spin while they wait for each other");
	return verdict(l, LIMIT_CPU, "all threads", all_cpus || all_busy ? computing(p) : CONFIDENCE_MEDIUM);
}

static bool rule_one_thread(const struct phase_facts *p, struct limit *l)
{
	bool alone = p->f->threads_max <= 1 && p->f->processes_max <= 1, sure = p->busiest >= THREAD_BUSY_HIGH;
	bool one = p->cores >= THREAD_BUSY && p->cores <= ONE_THREAD_CORES;
	bool in_turns = p->cores >= THREAD_BUSY_HIGH && p->cores <= IN_TURNS_CORES && p->wait_share < WAITING_MEDIUM;
	bool same = alone || (p->busiest >= THREAD_BUSY && p->top_thread >= SAME_THREAD * p->busiest);
	enum limit_confidence confidence = computing(p);

	if (!(p->busiest >= THREAD_BUSY) && !one)
		return false;
	note_cpu(p, l);
	if (same)
		say(l, "One thread%s%s%s is busy %s of the time", *p->busiest_name ? " (" : "", p->busiest_name,
		    *p->busiest_name ? ")" : "", units_percent(fmin(1, alone ? p->cores : p->busiest)).text);
	else if (p->busiest >= THREAD_BUSY)
		say(l, "One thread is busy %s of the time, not always the same one",
		    units_percent(fmin(1, p->busiest)).text);
	else
		say(l, "Its threads and processes together use %s, as if only one could run at a time",
		    wording_cores(p->cores).text);
	if (same && p->f->threads_max > 1 && p->cores - p->busiest < 0.3)
		say(l, " while %.0f other%s mostly wait%s", p->f->threads_max - 1, p->f->threads_max > 2 ? "s" : "",
		    p->f->threads_max > 2 ? "" : "s");
	say(l, "; it may use %.3g CPU%s", p->cpus, p->cpus == 1 ? "" : "s");
	say_rest(p, l,
		 same ? "a thread that only spins while it waits"
		      : "chance: nothing else shows that they wait for each other");
	if (!one || (!same && !in_turns))
		confidence = CONFIDENCE_LOW;
	else if (!(sure || alone) && confidence > CONFIDENCE_MEDIUM)
		confidence = CONFIDENCE_MEDIUM;
	return verdict(l, LIMIT_CPU, "one thread", confidence);
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
		       share >= NETWORK_FULL   ? CONFIDENCE_HIGH
		       : share >= NETWORK_HALF ? CONFIDENCE_MEDIUM
					       : CONFIDENCE_LOW);
}

static bool rule_wait(const struct phase_facts *p, struct limit *l)
{
	bool quiet = !(p->wait_share >= WAITING_MEDIUM && p->cores >= IDLE_HIGH) &&
		     !(p->psi_io >= STALLED_ON_IO_MEDIUM) && !(p->gpu.busy >= GPU_LITTLE);
	/* Without the stalls on I/O, what moves may be what it waits for. */
	bool known = !isnan(p->psi_io) || p->moved_rate < DISK_LEAST;
	double network = fmax(p->network.read_rate, p->network.write_rate);

	if (!(p->cores <= IDLE_LOW))
		return false;
	note_cpu(p, l);
	note(l, "pressure_io_some", p->psi_io);
	say(l, "It used %s", wording_cores(p->cores).text);
	if (isnan(p->moved_rate))
		say(l, " (what it moved from or to disk was not measured)");
	else
		say(l, " and moved %s from or to disk", wording_rate(p->moved_rate).text);
	if (network >= NETWORK_LEAST)
		say(l, ", while %s went over %s", wording_rate(network).text, p->network.name);
	say(l, ": its threads slept%s, on ", p->cores <= IDLE_MEDIUM ? "" : " part of the time");
	if (!(p->moved_rate < DISK_LEAST))
		say(l, "the disk, ");
	say(l, "a timer, a lock, a pipe, another process or the network; which of these, the counters do not tell. "
	       "Against it would speak: work that others do for it, outside of its processes.");
	return verdict(l, LIMIT_WAIT, NULL,
		       !known ? CONFIDENCE_LOW : p->cores <= IDLE_HIGH && quiet	  ? CONFIDENCE_HIGH
		       : p->cores <= IDLE_MEDIUM && quiet ? CONFIDENCE_MEDIUM
							  : CONFIDENCE_LOW);
}

typedef bool rule(const struct phase_facts *p, struct limit *l);

static rule *const rules[] = {
	rule_ram_killed,   rule_quota,	 rule_ram_files, rule_ram_swap,	   rule_disk,	    rule_pcie,	  rule_gpu,
	rule_token_stream, rule_touched, rule_contended, rule_all_threads, rule_one_thread, rule_network, rule_wait,
};

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
