// Package peerwire is what two contexts say to each other: the private data of the
// connections between them, and the messages (SENDs) on these connections. It is
// a codec of values, without state. Everything it decodes comes from a stranger:
// decoding is total, keeps nothing of the input but strings and bytes that it
// copies, and allocates no more than the input is long.
//
// All numbers are big endian. Reserved bytes are sent as zero and must be zero.
package peerwire
