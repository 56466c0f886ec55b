// R0 over the R1 bytes at R2, into R0: 16 bytes a round, then what the bits of
// the length below 16 say. Included by crc_arm64.s. CRC32X and its smaller
// kin take and give the register as it is, in the order of bits of CRC-32.

	SUBS $16, R1
	BLT  below16

loop:
	READ16
	CRC32X R4, R0
	CRC32X R5, R0
	SUBS   $16, R1
	BGE    loop

below16:
	// R1 is the bytes left minus 16: its lower four bits are the bytes left.
	TBZ $3, R1, below8
	READ8
	CRC32X R4, R0

below8:
	TBZ $2, R1, below4
	READ4
	CRC32W R4, R0

below4:
	TBZ $1, R1, below2
	READ2
	CRC32H R4, R0

below2:
	TBZ $0, R1, done
	READ1
	CRC32B R4, R0

done:
