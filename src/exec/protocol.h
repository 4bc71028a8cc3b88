/* What assay and its helper say to each other: one struct message per packet of a SOCK_SEQPACKET pair.
 *
 * Both ends were forked from one program, so there is no version and no byte order to care for. */
#ifndef ASSAY_EXEC_PROTOCOL_H
#define ASSAY_EXEC_PROTOCOL_H

#include <stdint.h>

#include "wire/records.h"

enum message_type {
	/* From assay. That it is done is told by the end of the file. */
	MESSAGE_GO,      /* let the command exec; t: its timeout_ns */
	MESSAGE_FORWARD, /* number: signal, sender: its pid, flag: 1 where the command cannot have got it */
	MESSAGE_AWAKE,   /* answers MESSAGE_CONTINUED */

	/* From the helper. Between READY and one of STARTED and REFUSED only STOPPED and CONTINUED come. */
	MESSAGE_READY,   /* number: the command's pid, or -1 with text */
	MESSAGE_STARTED, /* t: just before exec */
	MESSAGE_REFUSED, /* t, number: errno of exec */
	MESSAGE_EXITED,
	MESSAGE_STOPPED,   /* number: the signal */
	MESSAGE_CONTINUED, /* the command goes on after a STOPPED; SIGCONT is sent with it until assay answers */
	MESSAGE_DRAINED,   /* flag: the caller's stdout is at the start of a line; undelivered */
	MESSAGE_CLOSED,    /* undelivered */
	MESSAGE_NO_CHILDREN,
	MESSAGE_TROUBLE, /* text */
};

struct message {
	int32_t type;
	int32_t number;
	int32_t flag;
	int32_t sender;
	int64_t t;
	union {
		struct wire_exit exit;
		uint64_t undelivered; /* bytes, of all streams so far */
		char text[256];
	};
};

#endif
