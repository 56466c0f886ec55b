package host_test

import (
	"fmt"

	"github.com/gohixl/hixl/device"
	"github.com/gohixl/hixl/device/host"
)

func ExampleAlloc() {
	m, err := host.Alloc(1 << 16)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	if err := device.WriteAt(m, []byte("hello"), 4096); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", m.Bytes()[4096:4101])
	fmt.Println(device.WriteAt(m, []byte("hello"), 1<<16-2))
	// Output:
	// hello
	// device: 5 bytes at offset 65534 reach beyond a memory of 65536 bytes
}
