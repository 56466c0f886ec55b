package bench

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// haveShared: memory can be shared with the peer's process.
const haveShared = true

// ringSeals keep a ring's length what it is, so that no access can fault.
const ringSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// sharedMemory is memory that another process can map.
type sharedMemory struct {
	file *os.File
	mem  []byte
}

// shareMemory makes size bytes.
func shareMemory(size int) (*sharedMemory, error) {
	fd, err := unix.MemfdCreate("hixl-bench", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shm baseline: %w", err)
	}
	f := os.NewFile(uintptr(fd), "ring")
	err = f.Truncate(int64(size))
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, ringSeals)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("shm baseline: %w", err)
	}
	return mapShared(f, size)
}

// openShared maps what another process of this machine made, which must be
// sealed memory of that size.
func openShared(pid, fd, size int) (*sharedMemory, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("shm baseline: %w", err)
	}
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	info, statErr := f.Stat()
	if err != nil || statErr != nil || seals != ringSeals || info.Size() != int64(size) {
		_ = f.Close()
		return nil, fmt.Errorf("shm baseline: file %d of process %d is no ring", fd, pid)
	}
	return mapShared(f, size)
}

// mapShared takes f over.
func mapShared(f *os.File, size int) (*sharedMemory, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("shm baseline: %w", err)
	}
	return &sharedMemory{file: f, mem: mem}, nil
}

// fd is the number by which another process opens it.
func (m *sharedMemory) fd() int { return int(m.file.Fd()) }

// close unmaps it; nobody may use it any more.
func (m *sharedMemory) close() { _, _ = unix.Munmap(m.mem), m.file.Close() }

// yield lets another thread run.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
