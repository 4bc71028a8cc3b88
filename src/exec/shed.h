/* Makes this process's memory map look small: a process that shares the map until its exec has our peak as its own. */
#ifndef ASSAY_EXEC_SHED_H
#define ASSAY_EXEC_SHED_H

/* Gives back every page of program and libraries that was only read, and has the kernel forget the peak so far. What is
 * needed again comes back by itself, from the page cache. Where the kernel does not let us, nothing changes but that
 * the peaks of tiny commands are told as this process's. For a process with one thread. */
void shed_pages(void);

#endif
