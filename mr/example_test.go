package mr_test

import (
	"context"
	"fmt"

	"github.com/gohixl/hixl/device/host"
	"github.com/gohixl/hixl/mr"
)

func ExamplePD_Register() {
	table, err := mr.NewTable(mr.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pd := table.AllocPD()
	region, err := pd.Register(host.New(make([]byte, 4096)), mr.Options{Access: mr.LocalWrite | mr.RemoteWrite})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The peer is told region.Addr() and region.RKey(), and writes:
	span, err := pd.Remote(region.RKey(), region.Addr()+100, 8, mr.RemoteWrite)
	fmt.Println(span.Off, span.Len, err)
	// It may not read.
	_, err = pd.Remote(region.RKey(), region.Addr()+100, 8, mr.RemoteRead)
	fmt.Println(err)

	fmt.Println(region.Deregister(context.Background()), pd.Dealloc())
	// Output:
	// 100 8 <nil>
	// mr: access not granted
	// <nil> <nil>
}
