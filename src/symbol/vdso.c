#include "symbol/vdso.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"

#define VDSO_MAX 262144u /* it has a few pages; some kernels pad it */

/* Its section headers are the last thing in it. */
int vdso_open(struct error *err)
{
	const unsigned char *image = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr header;
	size_t length;
	int fd;

	if (!image)
		return error_set(err, "the kernel gives processes no vdso");
	memcpy(&header, image, sizeof header);
	length = header.e_shoff + (size_t)header.e_shnum * header.e_shentsize;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shoff > VDSO_MAX || length > VDSO_MAX)
		return error_set(err, "the vdso is of no known kind");
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return error_set(err, "the vdso cannot be copied: %s", strerror(errno));
	if (fs_write_all(fd, image, length) < 0) {
		close(fd);
		return error_set(err, "the vdso cannot be copied");
	}
	return fd;
}
