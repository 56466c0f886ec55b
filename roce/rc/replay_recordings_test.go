package rc_test

import "github.com/gohixl/hixl/roce"

// recording is a capture with RC traffic.
type recording struct {
	file    string
	qpns    [][2]roce.QPN // active and passive end of each connection; nil: as vt printed
	timeout uint8         // of the stock tools
	differs []*tolerance
}

var recordings = []recording{
	{file: "rc-send"},
	{file: "rc-send-pad"},
	{file: "rc-send-zero"},
	{file: "rc-send-multi"},
	{file: "rc-sendimm"},
	{file: "rc-sendimm-multi"},
	{file: "rc-sendinv"},
	{file: "rc-write"},
	{file: "rc-write-pad"},
	{file: "rc-write-zero"},
	{file: "rc-write-multi"},
	{file: "rc-write-many", differs: []*tolerance{coalescedACK}},
	{file: "rc-write-psnwrap"},
	{file: "rc-write-mtu256"},
	{file: "rc-write-mtu512"},
	{file: "rc-writeimm"},
	{file: "rc-writeimm-zero"},
	{file: "rc-writeimm-multi"},
	{file: "rc-read"},
	{file: "rc-read-zero"},
	{file: "rc-read-multi"},
	{file: "rc-read-outstanding"},
	{file: "rc-read-mtu256"},
	{file: "rc-cas"},
	{file: "rc-faa"},
	{file: "v6-write-multi"},
	{file: "mtu4096-send-multi"},
	{file: "mtu4096-write-multi"},
	{file: "mtu4096-write-2048"},

	{file: "err-access-atomic"},
	{file: "err-access-read"},
	{file: "err-access-write"},
	{file: "err-badrkey-cas"},
	{file: "err-badrkey-read"},
	{file: "err-badrkey-sendinv"},
	{file: "err-badrkey-write"},
	{file: "err-badrkey-write-multi"},
	{file: "err-rnr"},
	{file: "err-rnr-exceeded"},
	{file: "err-rnr-writeimm", differs: []*tolerance{rnrFromPSN, silentDuplicate}},
	{file: "err-short-recv", differs: []*tolerance{shortReceive}},

	{file: "loss-ack-send"},
	{file: "loss-ack-write"},
	{file: "loss-all"},
	{file: "loss-atomic-ack"},
	{file: "loss-read-middle", differs: []*tolerance{readAtOnce, readNumbering}},
	{file: "loss-read-req"},
	{file: "loss-send-of-3", differs: []*tolerance{coalescedACK}},
	{file: "loss-write-last", differs: []*tolerance{probe, acknowledgedResend, silentDuplicate}},
	{file: "loss-write-middle"},

	{file: "tool-rc-pingpong", qpns: [][2]roce.QPN{{0x55, 0x5b}}, timeout: 14},
	{file: "tool-ib_write_bw", qpns: [][2]roce.QPN{{0x57, 0x5d}}, timeout: 14, differs: []*tolerance{coalescedACK}},
	{file: "tool-ib_read_bw", qpns: [][2]roce.QPN{{0x58, 0x5e}}, timeout: 14},
	{file: "tool-ib_send_bw", qpns: [][2]roce.QPN{{0x59, 0x5f}}, timeout: 14, differs: []*tolerance{coalescedACK}},
	{
		file: "tool-ib_write_lat", qpns: [][2]roce.QPN{{0x5a, 0x60}}, timeout: 14,
		differs: []*tolerance{silentDuplicate, coalescedACK, probe, punctual, earlyResend},
	},
	{
		file: "tool-ib_send_lat", qpns: [][2]roce.QPN{{0x5b, 0x61}}, timeout: 14,
		differs: []*tolerance{silentDuplicate, coalescedACK, earlyResend},
	},
	{file: "tool-ib_read_lat", qpns: [][2]roce.QPN{{0x5c, 0x62}}, timeout: 14},
	{file: "tool-ib_atomic_bw", qpns: [][2]roce.QPN{{0x5d, 0x63}}, timeout: 14},
	{file: "tool-ib_write_bw-b", qpns: [][2]roce.QPN{{0x65, 0x6b}}, timeout: 14, differs: []*tolerance{coalescedACK}},
	{
		file: "tool-ib_write_bw-R", qpns: [][2]roce.QPN{{0x5f, 0x65}, {0x60, 0x66}}, timeout: 19,
		differs: []*tolerance{coalescedACK},
	},
	{
		file: "tool-ib_send_bw-R", qpns: [][2]roce.QPN{{0x61, 0x67}, {0x62, 0x68}}, timeout: 19,
		differs: []*tolerance{coalescedACK},
	},
	{file: "cm-rping", qpns: [][2]roce.QPN{{0x51, 0x58}}, timeout: 19},
	{file: "cm-ucmatose", qpns: [][2]roce.QPN{{0x52, 0x59}}, timeout: 19, differs: []*tolerance{coalescedACK}},
	{file: "peer-pingpong", qpns: [][2]roce.QPN{{0x11, 0x123}}, timeout: 14},
	{file: "peer-write_bw", qpns: [][2]roce.QPN{{0x12, 0x123}}, timeout: 17},
}

// notReplayed are captures with RC packets that tell nothing to replay.
var notReplayed = map[string]string{
	"rxe_rping_cm_send":     "one SEND of a connection whose other packets are missing",
	"synthetic-all-opcodes": "made for the decoders, no exchange",
}
