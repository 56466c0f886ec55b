package hostinfo

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// kernelRelease returns the version and build number of Windows.
func kernelRelease() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}
