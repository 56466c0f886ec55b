package engine_test

import (
	"context"
	"fmt"
	"log"
	"time"
	"unsafe"

	"github.com/gohixl/hixl/engine"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A client writes into the memory of a server and tells it so in the same call.
func Example() {
	server, err := engine.Initialize("127.97.40.2:16000", nil)
	check(err)
	defer server.Finalize()
	client, err := engine.Initialize("127.97.40.1", map[string]string{engine.OptionBufferPool: "0:0"})
	check(err)
	defer client.Finalize()

	cache := make([]byte, 4096)
	target, err := server.RegisterMem(engine.MemDesc{Bytes: cache}, engine.MemHost)
	check(err)
	local := []byte("a block of the key-value cache")
	_, err = client.RegisterMem(engine.MemDesc{Bytes: local}, engine.MemHost)
	check(err)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	check(client.Connect(ctx, "127.97.40.2:16000"))
	req, err := client.TransferAsync("127.97.40.2:16000", engine.Write,
		[]engine.TransferOpDesc{{Local: local, RemoteAddr: target.Addr() + 64}}, // an address that the server has passed on
		engine.TransferArgs{Notify: &engine.NotifyDesc{Name: "block", Msg: "64:30"}})
	check(err)

	var notes []engine.NotifyDesc
	for len(notes) == 0 { // the server needs nothing but this
		notes, err = server.GetNotifies()
		check(err)
		time.Sleep(time.Millisecond)
	}
	fmt.Println(notes[0].Name, notes[0].Msg, string(cache[64:94]))
	status := engine.TransferWaiting
	for status == engine.TransferWaiting {
		status, err = client.GetTransferStatus(req)
		check(err)
	}
	fmt.Println(status)
	// Output:
	// block 64:30 a block of the key-value cache
	// COMPLETED
}

// With AutoConnect nobody connects, and memory that is not registered goes through
// the buffer pool.
func ExampleEngine_TransferSync() {
	server, err := engine.Initialize("127.97.41.2:16000", nil)
	check(err)
	defer server.Finalize()
	client, err := engine.Initialize("127.97.41.1", map[string]string{engine.OptionAutoConnect: "1"})
	check(err)
	defer client.Finalize()

	weights := []byte("weights of layer 7")
	_, err = server.RegisterMem(engine.MemDesc{Bytes: weights}, engine.MemHost)
	check(err)
	got := make([]byte, 7)
	check(client.TransferSync(context.Background(), "127.97.41.2:16000", engine.Read,
		[]engine.TransferOpDesc{{Local: got, RemoteAddr: uintptr(unsafe.Pointer(&weights[0]))}}))
	fmt.Println(string(got))
	// Output: weights
}

// Errors have HIXL's codes.
func ExampleStatusOf() {
	e, err := engine.Initialize("127.97.42.1", nil)
	check(err)
	defer e.Finalize()
	err = e.SendNotify(context.Background(), "127.97.42.2:16000", engine.NotifyDesc{Name: "hello"})
	fmt.Println(err)
	fmt.Println(engine.StatusOf(err), uint32(engine.StatusOf(err)))
	// Output:
	// engine: SendNotify 127.97.42.2:16000: NOT_CONNECTED (103902): there is no link to it; Connect first
	// NOT_CONNECTED 103902
}
