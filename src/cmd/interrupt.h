/* Signals that ask a command to stop while it works by itself: the first one is noted, for the work to look at. */
#ifndef ASSAY_CMD_INTERRUPT_H
#define ASSAY_CMD_INTERRUPT_H

/* The number of the signal that came; 0: none. */
extern volatile int interrupted_by;

/* For INT, TERM and HUP, unless the caller has them ignored. One that comes more than a second after the first ends the
 * program: timeout(1) sends its signal to the program and to its group, which is one request.
 * flags: of sigaction: SA_RESTART where the work waits for nothing that could last. */
void interrupt_catch(int flags);

/* The command that was run died of a Ctrl-C at the terminal. So do we, or the shell's loop around us would go on. */
void interrupt_die(void);

#endif
