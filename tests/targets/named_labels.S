/* Labels as hand-written assembler has them: with a size, without one, without unwind data; and code behind them that
 * none of them is. */
	.text
	.p2align 4
	.globl sized_label
sized_label:
	.cfi_startproc
	nop
	nop
	ret
	.cfi_endproc
	.size sized_label, . - sized_label
	.byte 0x90, 0x90, 0x90, 0x90 /* no man's land */

	.p2align 4
	.globl bare_label
bare_label:
	.cfi_startproc
	nop
	nop
	ret
	.cfi_endproc
	.byte 0x90, 0x90, 0x90, 0x90 /* behind its unwind entry */

	.p2align 4
	.globl naked_label
naked_label: /* no size and no unwind entry: nobody knows where it ends */
	nop
	ret
	.p2align 4
	.cfi_startproc /* an entry that no symbol begins */
	nop
	ret
	.cfi_endproc
	.section .note.GNU-stack, "", @progbits
