//go:build unix && !aix && !solaris && !illumos

package hostinfo

import "golang.org/x/sys/unix"

// kernelRelease returns what uname calls the release.
func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
