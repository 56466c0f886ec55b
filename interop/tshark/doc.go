// Package tshark compares how Wireshark and this project decode the packets of
// captures, field by field. It needs the tshark program.
package tshark
