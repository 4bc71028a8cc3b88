/* Whether somebody else is measuring on this machine. */
#ifndef ASSAY_EXEC_OTHERS_H
#define ASSAY_EXEC_OTHERS_H

/* The pid of a process called assay that has a living child called measure-helper, and is neither this process nor
 * above or below it; 0 where there is none. A helper that has outlived its assay records nothing any more. */
int others_find_recording(void);

#endif
