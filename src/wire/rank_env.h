/* Variables by which launchers of parallel programs tell a process its rank, the number of ranks, and its job.
 *
 * RANK_ENV(RANK, SIZE, JOB), the surest row first; "" where a launcher does not say it. Expanded by the library, for
 * the rank of a program without libassay-mpi, and by the recorder, for a job of many recorders. */

RANK_ENV("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE")
RANK_ENV("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "")
RANK_ENV("PMI_RANK", "PMI_SIZE", "PMI_JOBID")
RANK_ENV("FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_JOB_ID")
/* Not SLURM_NTASKS: a batch script has that, and SLURM_PROCID=0, without being one of many. */
RANK_ENV("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID")
RANK_ENV("PMIX_RANK", "", "PMIX_NAMESPACE")
RANK_ENV("ALPS_APP_PE", "", "ALPS_APP_ID")
