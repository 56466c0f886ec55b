//go:build !windows && (!unix || aix || solaris || illumos)

package hostinfo

// kernelRelease is not known here.
func kernelRelease() string { return "" }
