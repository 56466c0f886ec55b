// Package pages maps memory outside the Go heap: page-aligned, zeroed, and on
// huge pages where the system has them and the size is worth it. It owns no
// state; whoever maps unmaps. device/host makes regions of it, internal/nic its
// packet buffers. Any goroutine may call it.
package pages
