#include "store/hdf5_common.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define METADATA_CACHE_MAX ((size_t)2 << 20)
#define FREE_MAX 65536 /* bytes of each kind that HDF5 keeps for later instead of freeing them */

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

void hdf5_lock(void)
{
	pthread_mutex_lock(&library);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* some builds of the library print for each thread by itself */
}

void hdf5_unlock(void)
{
	pthread_mutex_unlock(&library);
}

/* HDF5 tells its trouble as a stack; the deepest entry is the cause, and names errno's text where there was one. */
static herr_t keep_deepest(unsigned depth, const H5E_error2_t *entry, void *cause)
{
	static const char marker[] = "error message = '";
	const char *system = entry->desc ? strstr(entry->desc, marker) : NULL;
	size_t length = system ? strcspn(system + strlen(marker), "'") : 0;

	(void)depth;
	if (length)
		snprintf(cause, 256, "%.*s", (int)length, system + strlen(marker));
	else if (entry->desc)
		snprintf(cause, 256, "%s", entry->desc);
	return 1; /* enough */
}

int hdf5_failed(const char *what, const char *of, struct error *err)
{
	char cause[256] = "no reason given";

	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_deepest, cause);
	H5Eclear2(H5E_DEFAULT);
	return error_set(err, "HDF5 cannot %s %s: %s", what, of, cause);
}

int hdf5_start(char *text, size_t size, struct error *err)
{
	unsigned major = 0, minor = 0, release = 0;

	H5dont_atexit();
	H5set_free_list_limits(FREE_MAX, FREE_MAX, FREE_MAX, FREE_MAX, FREE_MAX, FREE_MAX);
	if (H5get_libversion(&major, &minor, &release) < 0 || H5open() < 0)
		return error_set(err, "the HDF5 library does not start");
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR)
		return error_set(err, "the HDF5 library is version %u.%u.%u, but the plug-in was built for %d.%d.%d",
				 major, minor, release, H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
	if (H5Zfilter_avail(H5Z_FILTER_DEFLATE) <= 0)
		return error_set(err, "the HDF5 library %u.%u.%u was built without compression (zlib)", major, minor,
				 release);
	snprintf(text, size, "HDF5 %u.%u.%u", major, minor, release);
	return 0;
}

/* No locks: what is written has a name that nobody else knows, what is read is complete, and some network file systems
 * cannot lock. The format of HDF5 1.10 (2016), whose index of chunks takes half the memory. A small cache for metadata:
 * the default grows to 32 MiB. */
hid_t hdf5_access_list(void)
{
	hid_t list = H5Pcreate(H5P_FILE_ACCESS);
	H5AC_cache_config_t cache = {.version = H5AC__CURR_CACHE_CONFIG_VERSION};

	if (list < 0)
		return list;
#if H5_VERSION_GE(1, 10, 7)
	H5Pset_file_locking(list, false, true);
#endif
	H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_LATEST);
	if (H5Pget_mdc_config(list, &cache) >= 0) {
		cache.set_initial_size = true;
		cache.initial_size = METADATA_CACHE_MAX / 2;
		cache.max_size = METADATA_CACHE_MAX;
		H5Pset_mdc_config(list, &cache);
	}
	return list;
}

void hdf5_close(hid_t *id)
{
	if (*id >= 0)
		H5Idec_ref(*id);
	*id = H5I_INVALID_HID;
}

hid_t hdf5_text_type(void)
{
	hid_t type = H5Tcopy(H5T_C_S1);

	if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0))
		hdf5_close(&type);
	return type;
}

int hdf5_put_text(hid_t at, hid_t type, const char *name, const char *value, struct error *err)
{
	CLEANUP(hdf5_close) hid_t space = H5Screate(H5S_SCALAR);
	CLEANUP(hdf5_close) hid_t attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);

	if (attribute < 0 || H5Awrite(attribute, type, &value) < 0)
		return hdf5_failed("write the attribute", name, err);
	return 0;
}
