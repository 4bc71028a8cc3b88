#include "model/limit.h"

const char *limit_kind_name(enum limit_kind kind)
{
	static const char *const names[] = {
		[LIMIT_CPU] = "cpu",   [LIMIT_MEMORY_BANDWIDTH] = "memory bandwidth",
		[LIMIT_RAM] = "ram",   [LIMIT_DISK] = "disk",
		[LIMIT_GPU] = "gpu",   [LIMIT_PCIE] = "pcie",
		[LIMIT_WAIT] = "wait", [LIMIT_NETWORK] = "network",
		[LIMIT_UNKNOWN] = "unknown",
	};

	return names[kind];
}

const char *limit_confidence_name(enum limit_confidence confidence)
{
	static const char *const names[] = {
		[CONFIDENCE_LOW] = "low", [CONFIDENCE_MEDIUM] = "medium", [CONFIDENCE_HIGH] = "high"};

	return names[confidence];
}

const char *movement_level_name(enum movement_level level)
{
	static const char *const names[] = {
		[MOVEMENT_INFO] = "info", [MOVEMENT_NOTE] = "note", [MOVEMENT_WARNING] = "warning"};

	return names[level];
}
